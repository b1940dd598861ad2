"""Let everything go wrong while workers process, and report what happened to events and positions.

    python -m chaos --store all --rounds 50
    python -m chaos --store all --rounds 170 --parallel 8         several rounds at once
    python -m chaos --store redis --seed 7 --rounds 1             repeat a round that has failed
    python -m chaos --store redis --seed 7 --rounds 1 --without fault-0,worker-2

Run it with PYTHONPATH=src:tools. In each round some workers process the events of two partitions,
one after another or two at once, with either client and every way of saving: a write for each
event, a `CoalescingCheckpointStore`, a `Checkpointer` with a pool or sequentially, an
`EventProcessor`, on Blob also the official store, with policies and limits chosen by the seed. Half
of them are behind a `HandoverStore`. Some workers' clocks are an hour off. The workers are killed,
stopped, or suspended for longer than an ownership lasts; the storage is away, silent, slow, killed
and started again, without room on its disk, or loses its answers; the hub drops or refuses
connections, is busy, or is created again. In every 50th round a Spark stream reads the hub beside
them, and publishes its progress. The last worker processes the rest. `judge.py` and
`claimed.py` have the rules, `plan.py` and `storage.py` what goes wrong.

Round n of seed s is that of seed s + n; the seed decides what happens, and the timing depends on
the machine. A failing round is run again with ever fewer faults and workers, as long as it still
fails, and printed as a command.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from backends import ServerMissingError
from chaos.claimed import Replay, largest, nearest
from chaos.shares import Share, Total, results, shared
from chaos.storage import SINGLE, STORES

Rows = Iterable[Sequence[str]]
JUDGED = ("lost", "back", "two owners", "replay")
COLUMNS = (
    *("events", "sessions", "kills", "stops", "pauses", "outages", "hub faults", "re-creations"),
    *("clocks off", "steals", *JUDGED),
)
OF_WAYS = ("rounds", "events", "sessions", "kills", "steals", *JUDGED)
RULES = (
    *("streams", "streams killed", "passed", "left out", "graceful", "back by official"),
    *("fail-overs", "claims forgotten", "checkpoints forgotten"),
)
"""Kinds that have a column only if they occurred."""
BOUNDED = ("nearest to its bound", "most read again")


def tables(totals: Mapping[str, Total]) -> str:
    """Return Markdown tables by store, by way of saving, and of the sessions near their bounds."""
    return "\n\n".join(map(aligned, (by_store(totals), by_way(totals), by_kind(totals))))


def by_store(totals: Mapping[str, Total]) -> Rows:
    """Return a row for each store."""
    more = [kind for kind in RULES if any(total.seen[kind] for total in totals.values())]
    columns = (*COLUMNS, *more)
    yield ("store", "rounds", "failed", *columns, *BOUNDED)
    for store, total in totals.items():
        counts = (total.rounds, len(total.failed), *(total.seen[kind] for kind in columns))
        yield (store, *map(str, counts), *bounds(total.replays))


def by_way(totals: Mapping[str, Total]) -> Rows:
    """Return a row for each store and way of saving, and for each way on all of several stores."""
    parts = dict(totals)
    if len(totals) > 1:
        parts["all"] = sum(totals.values(), Total())
    more = [kind for kind in RULES if any(seen[kind] for seen in counters(parts.values()))]
    columns = (*OF_WAYS, *more)
    yield ("store", "way", *columns, *BOUNDED)
    for store, total in parts.items():
        for way, seen in sorted(total.ways.items()):
            replays = [replay for replay in total.replays if replay.way == way]
            yield (store, way, *(str(seen[kind]) for kind in columns), *bounds(replays))


def counters(totals: Iterable[Total]) -> list[Counter[str]]:
    """Return the counts of all ways."""
    return [seen for total in totals for seen in total.ways.values()]


def by_kind(totals: Mapping[str, Total]) -> Rows:
    """Return a row for each store and kind of its workers."""
    yield ("store", "kind", "followed sessions", *BOUNDED)
    for store, total in totals.items():
        for kind in largest(total.replays):
            replays = [replay for replay in total.replays if replay.kind == kind]
            yield (store, kind, str(len(replays)), *bounds(replays))


def bounds(replays: Sequence[Replay]) -> tuple[str, str]:
    """Return the counted events and the bound of the session nearest to it, and the most events."""
    if not (found := nearest(replays)):
        return "", ""
    return f"{found.counted} of {found.bound}", str(max(replay.events for replay in replays))


def aligned(rows: Rows) -> str:
    """Return a table in Markdown, with its columns aligned."""
    head, *others = rows
    widths = [max(map(len, column)) for column in zip(head, *others, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (head, rule, *others)
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("all", *STORES), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="rounds at once")
    parser.add_argument("--without", metavar="NAMES", default="", help="faults and workers")
    parser.add_argument("--no-shrink", action="store_true", help="do not make failures smaller")
    chosen = parser.parse_args(arguments)
    print(f"chaos: seed {chosen.seed}, {chosen.rounds} rounds of {chosen.store}", flush=True)
    without = [name for name in chosen.without.split(",") if name]
    shrinks = not (without or chosen.no_shrink)
    stores = SINGLE if chosen.store == "all" else (chosen.store,)
    totals = {store: Total() for store in stores}
    shares = [
        Share(store, share.start, len(share), without, shrinks)
        for share in shared(chosen.seed, chosen.rounds, chosen.parallel)
        for store in stores
    ]
    try:
        for share, total in zip(shares, results(shares, chosen.parallel), strict=True):
            totals[share.store] += total
    except ServerMissingError as missing:
        print(missing)
        return 1
    print(tables(totals))
    return 1 if any(total.failed for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
