"""Compare the decoder with the azure-eventhub client's, in all nine columns, on random events.

Producers of many templates write at random; their events go through `Deliveries` in frames and
pieces of any size, and through the client's decoder and the public path's columns. Prints the seed,
what was compared, and the first row that differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random

from amqp_deliveries import CHANNEL, HANDLE, MAX_FRAME_SIZE, client_columns, disturbed, pieces
from amqp_spelling import Spelling
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.batches import record_batch

LARGEST = 1_000_000
BATCH = 500


class DifferenceError(Exception):
    """A row differs from the client's."""


def payloads(chance: Random, seeds: list[int], first: int, count: int) -> list[bytes]:
    """Return events of producers; each seed is one template, and some events have a random one."""
    made = []
    for number in range(first, first + count):
        seed = chance.choice(seeds) if chance.random() < 0.98 else chance.randrange(2**32)
        largest = LARGEST if chance.random() < 0.002 else chance.choice([20, 200, 200, 2000])
        made.append(Spelling(Random(seed), chance).event(number, largest))
    return made


def compare(seed: int, events: int, producers: int) -> Counter[str]:
    """Compare `events` events.

    Raises:
        DifferenceError: a row differs.
    """
    chance, totals = Random(seed), Counter[str]()
    seeds = [chance.randrange(2**32) for _ in range(producers)]
    link = Deliveries(channel=CHANNEL, handle=HANDLE, max_frame_size=MAX_FRAME_SIZE)
    while totals["events"] < events:
        made = payloads(chance, seeds, totals["events"], min(BATCH, events - totals["events"]))
        frames = disturbed(made, chance, totals["events"])
        for piece in pieces(b"".join(frames), chance):
            totals["other frames"] += len(link.feed(piece))
        found = record_batch("0", link.take())
        expected = record_batch("0", client_columns(made))
        if not found.equals(expected):
            raise DifferenceError(first_difference(found.to_pylist(), expected.to_pylist()))
        totals["bytes of bodies"] += sum(map(len, found.column("body").to_pylist()))
        totals["largest body"] = max(
            totals["largest body"], *map(len, found.column("body").to_pylist())
        )
        totals["events"] += len(made)
        totals["frames"] += len(frames)
    totals["events of which only the head was known"] = link.heads_only
    totals["events read the generic way"] = link.generic
    return totals


def first_difference(found: list[object], expected: list[object]) -> str:
    """Describe which row differs, and how."""
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    pairs = enumerate(zip(found, expected, strict=True))
    place, (one, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    return f"row {place} is {one!r:.2000}\ninstead of {other!r:.2000}"


def main() -> int:
    """Compare, and print counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--producers", type=int, default=120)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = Random().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    try:
        totals = compare(seed, given.events, given.producers)
    except DifferenceError as difference:
        print(difference)
        return 1
    for name, count in totals.items():
        print(f"{count:>14,} {name}")
    print("equal in all nine columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
