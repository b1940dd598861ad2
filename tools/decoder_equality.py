"""Compare the decoder with the azure-eventhub client's, in all nine columns, on random events.

Producers of many templates write at random; their events go through `Deliveries` in frames and
pieces of any size, and through the client's decoder and the public path's columns.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from amqp_deliveries import CHANNEL, HANDLE, MAX_FRAME_SIZE, client_columns, disturbed, pieces
from amqp_spelling import Spelling
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.batches import record_batch

LARGEST = 1_000_000
BATCH = 500


class DifferenceError(AssertionError):
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


def run_rounds(seed: int, rounds: int, events: int = 50_000, producers: int = 120) -> Counter[str]:
    """Compare in rounds; return what was compared, and the largest body.

    Raises:
        DifferenceError: a row differs.
    """
    totals: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        try:
            found = compare(number, events, producers)
        except DifferenceError as difference:
            raise DifferenceError(f"seed {number}: {difference}") from None
        largest = max(totals["largest body"], found["largest body"])
        totals += found
        totals["largest body"] = largest
    return totals
