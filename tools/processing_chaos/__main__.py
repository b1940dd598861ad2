"""Kill workers while they process, and print what became of the events and positions.

    python -m processing_chaos --rounds 50
    python -m processing_chaos --seed 7 --rounds 1          the round that has failed, again
    python -m processing_chaos --store redis://127.0.0.1:6379/0
    python -m processing_chaos --rounds 10 --outage 60

Run it with PYTHONPATH=src:tools. In each round some workers process the events of two partitions,
one after another or two at once: by a `Checkpointer` with a pool or in turn, an `EventProcessor`,
or a `CoalescingCheckpointStore`, with either client, and with a policy and limits of the seed's
choice. They are killed, or stopped in good order; now and then connections to the hub are lost,
or the storage is away. The last one processes the rest. What may be is said in `judge.py`
and `claimed.py`.

Round n of seed s is that of seed s + n; the seed says what happens, and the moment is up to the
machine.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from processing_chaos.claimed import Replay, largest
from processing_chaos.rounds import run_round
from processing_chaos.storage import storage_of

TOLD = (
    *("rounds", "events", "claims", "kills", "graceful stops", "steals"),
    *("lost connections", "outages", "lost events"),
)


def run_rounds(
    seed: int, rounds: int, url: str | None, longest_outage: float
) -> tuple[Counter[str], list[Replay], int]:
    """Run the rounds on one hub and one storage; what was met, and how many went wrong."""
    seen: Counter[str] = Counter(dict.fromkeys(TOLD, 0))
    replays: list[Replay] = []
    wrong = 0
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="chaos-store-")))
        storage = opened.enter_context(storage_of(url, folder))
        with open_store(storage.url) as store:
            store.create()
        hub = opened.enter_context(LocalHub({"none": 1}))
        for number in range(seed, seed + rounds):
            outcome = run_round(hub, storage, number, longest_outage)
            seen.update(outcome.seen)
            replays += outcome.replays
            wrong += bool(outcome.problems)
            if outcome.problems:
                print(f"seed {number} failed:", *outcome.problems, sep="\n  ", flush=True)
    return seen, replays, wrong


def table(replays: Sequence[Replay]) -> str:
    """The claim of each kind that came nearest to its bound."""
    heads = ("nearest to its bound, by kind", "claims", "counted", "bound", "most read again")
    rows: list[tuple[str, ...]] = [heads]
    for kind, one in largest(replays).items():
        own = [replay.events for replay in replays if replay.kind == kind]
        rows.append((kind, *map(str, (len(own), one.counted, one.bound, max(own)))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--store", metavar="URL", help="of a server on this machine; else SQLite")
    parser.add_argument(
        "--outage", metavar="SECONDS", type=float, default=2.0, help="the longest (default 2)"
    )
    chosen = parser.parse_args(arguments)
    print(f"processing_chaos: seed {chosen.seed}, {chosen.rounds} rounds", flush=True)
    began = time.monotonic()
    seen, replays, wrong = run_rounds(chosen.seed, chosen.rounds, chosen.store, chosen.outage)
    print(f"{wrong} failures in {time.monotonic() - began:.0f} s:", end=" ")
    print(", ".join(f"{seen[kind]} {kind}" for kind in TOLD))
    print(table(replays))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
