"""Races of many stores, sync and aio, for the first claims of many partitions of one backend."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from backends import COLOURS, Colour, Place
from eventhub_checkpoints.conformance.clients import Client, Loop, Row
from eventhub_checkpoints.records import Scope

RACERS = 16
PARTITIONS = [str(number) for number in range(64)]
BARRIER_SECONDS = 60.0
HANDICAPS = (0.0, 0.01, 0.1, 1.0)
"""Seconds that sync stores wait: without it aio stores, which are slower to begin, seldom win."""
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class RaceError(AssertionError):
    """A race that had no winner, or more than one."""


@dataclass(frozen=True)
class Racer:
    """A store with connections of its own, in the hands of an owner."""

    client: Client
    colour: Colour
    owner_id: str

    def claim_all(self, scope: Scope, partition_ids: Sequence[str]) -> dict[str, Row]:
        """Claim every partition in one batch; what was won, by partition."""
        client = self.client.within(scope)
        batch = [client.proposal(partition_id, self.owner_id) for partition_id in partition_ids]
        return {row["partition_id"]: row for row in client.claim_ownership(batch)}


@contextmanager
def racers(place: Place) -> Iterator[list[Racer]]:
    """As many stores as race, every second one an aio store."""
    with ExitStack() as opened:
        loop = opened.enter_context(Loop())
        made = []
        for number in range(RACERS):
            colour = COLOURS[number % 2]
            client = Client(place.open(colour), SCOPE, loop)
            opened.callback(client.close)
            client.list_ownership()  # connected before the start
            made.append(Racer(client, colour, f"owner-{number}"))
        yield made


def race(started: Sequence[Racer], scope: Scope, order: random.Random) -> list[dict[str, Row]]:
    """All claim all partitions at the same moment; what each has won, in their order."""
    barrier = threading.Barrier(len(started))
    handicap = order.choice(HANDICAPS)
    # In the same order, whoever is first with the first partition would be with all.
    batches = [order.sample(PARTITIONS, len(PARTITIONS)) for _ in started]

    def claim(racer: Racer, batch: Sequence[str]) -> dict[str, Row]:
        barrier.wait(BARRIER_SECONDS)
        time.sleep(0.0 if racer.colour == "aio" else handicap)
        return racer.claim_all(scope, batch)

    with ThreadPoolExecutor(len(started)) as pool:
        return list(pool.map(claim, started, batches))


def run_races(place: Place, seed: int, rounds: int) -> Counter[str]:
    """Run so many rounds, each in a group of its own; how many claims won, by colour.

    Raises:
        RaceError: a partition did not have exactly one winner, or it is not the stored owner.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with racers(place) as all_racers:
        for number in range(rounds):
            scope = SCOPE._replace(consumer_group=f"round-{number}")
            started = order.sample(all_racers, len(all_racers))
            won = race(started, scope, order)
            seen.update(judged(started, scope, won))
    return seen


def judged(started: Sequence[Racer], scope: Scope, won: Sequence[dict[str, Row]]) -> Iterator[str]:
    """The colour of each partition's one winner."""
    listed = started[0].client.within(scope).list_ownership()
    stored = {row["partition_id"]: (row["owner_id"], row["etag"]) for row in listed}
    for partition_id in PARTITIONS:
        where = f"{scope}, partition {partition_id}"
        given = zip(started, won, strict=True)
        pairs = [(one, rows[partition_id]) for one, rows in given if partition_id in rows]
        if len(pairs) != 1:
            raise RaceError(f"{where}: {len(pairs)} of {len(started)} have won")
        [(winner, row)] = pairs
        if stored.get(partition_id) != (winner.owner_id, row["etag"]):
            raise RaceError(f"{where}: {row} has won, and {stored.get(partition_id)} is stored")
        yield f"won by {winner.colour} stores"
