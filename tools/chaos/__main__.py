"""Kill workers while they process, and report what happened to the events and positions.

    python -m chaos --rounds 50
    python -m chaos --seed 7 --rounds 1          repeat a round that has failed
    python -m chaos --store redis://127.0.0.1:6379/0
    python -m chaos --rounds 10 --outage 60

Run it with PYTHONPATH=src:tools. In each round some workers process the events of two partitions,
one after another or two at once: by a `Checkpointer` with a pool or sequentially, an
`EventProcessor`, or a `CoalescingCheckpointStore`, with either client, and with a policy and limits
chosen by the seed. They are killed, or stopped gracefully; sometimes connections to the hub are
lost, or the storage is unavailable. The last worker processes the rest. `judge.py` and `claimed.py`
have the rules.

Round n of seed s is that of seed s + n; the seed decides what happens, and the timing depends on
the machine.
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

from chaos.claimed import Replay, largest
from chaos.rounds import run_round
from chaos.storage import storage_of
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub

TOLD = (
    *("rounds", "events", "claims", "kills", "graceful stops", "steals"),
    *("lost connections", "outages", "lost events"),
)


def run_rounds(
    seed: int, rounds: int, url: str | None, longest_outage: float
) -> tuple[Counter[str], list[Replay], int]:
    """Run the rounds on one hub and one storage; return what occurred, and the failed rounds."""
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
    """Return a table of the session of each kind that came nearest to its bound."""
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
    """Run the rounds; return the exit status."""
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
    print(f"chaos: seed {chosen.seed}, {chosen.rounds} rounds", flush=True)
    began = time.monotonic()
    seen, replays, wrong = run_rounds(chosen.seed, chosen.rounds, chosen.store, chosen.outage)
    print(f"{wrong} failures in {time.monotonic() - began:.0f} s:", end=" ")
    print(", ".join(f"{seen[kind]} {kind}" for kind in TOLD))
    print(table(replays))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
