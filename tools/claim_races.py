"""Races of many sync and aio stores for the first claims of many partitions of one backend."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from backends import VARIANTS, Place, Variant
from eventhub_checkpoints.conformance.clients import Client, Loop, Row
from eventhub_checkpoints.records import Scope
from waiting import LIMIT

RACERS = 16
PARTITIONS = 64
HANDICAPS = (0.0, 0.01, 0.1, 1.0)
"""Seconds that sync stores wait: otherwise aio stores, which start more slowly, seldom win."""
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class RaceError(AssertionError):
    """A race without a winner, or with more than one."""


@dataclass(frozen=True)
class Racer:
    """Store with its own connections and owner id."""

    client: Client
    variant: Variant
    owner_id: str

    def claim_all(self, scope: Scope, partition_ids: Sequence[str]) -> dict[str, Row]:
        """Claim every partition in one batch; return what was won, by partition."""
        client = self.client.within(scope)
        batch = [client.proposal(partition_id, self.owner_id) for partition_id in partition_ids]
        return {row["partition_id"]: row for row in client.claim_ownership(batch)}


@contextmanager
def racers(place: Place) -> Iterator[list[Racer]]:
    """Yield the stores that race, alternating sync and aio."""
    with ExitStack() as opened:
        loop = opened.enter_context(Loop())
        made = []
        for number in range(RACERS):
            variant = VARIANTS[number % 2]
            client = Client(place.open(variant), SCOPE, loop)
            opened.callback(client.close)
            client.list_ownership()  # connects before the start
            made.append(Racer(client, variant, f"owner-{number}"))
        yield made


def race(
    started: Sequence[Racer], scope: Scope, partitions: Sequence[str], order: random.Random
) -> list[dict[str, Row]]:
    """Claim all partitions with all stores at once; return what each has won, in their order."""
    barrier = threading.Barrier(len(started))
    handicap = order.choice(HANDICAPS)
    # With the same order for all, the first to get one partition would get them all.
    batches = [order.sample(partitions, len(partitions)) for _ in started]

    def claim(racer: Racer, batch: Sequence[str]) -> dict[str, Row]:
        barrier.wait(LIMIT)
        time.sleep(0.0 if racer.variant == "aio" else handicap)
        return racer.claim_all(scope, batch)

    with ThreadPoolExecutor(len(started)) as pool:
        return list(pool.map(claim, started, batches))


def run_races(place: Place, seed: int, rounds: int, partitions: int = PARTITIONS) -> Counter[str]:
    """Run `rounds` races, each in its own group; return how many claims won, sync and aio.

    Raises:
        RaceError: a partition did not have exactly one winner, or it is not the stored owner.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    ids = [*map(str, range(partitions))]
    with racers(place) as all_racers:
        for number in range(rounds):
            scope = SCOPE._replace(consumer_group=f"round-{number}")
            started = order.sample(all_racers, len(all_racers))
            won = race(started, scope, ids, order)
            seen.update(judged(started, scope, ids, won))
    return seen


def judged(
    started: Sequence[Racer],
    scope: Scope,
    partitions: Sequence[str],
    won: Sequence[dict[str, Row]],
) -> Iterator[str]:
    """Yield sync or aio for the only winner of each partition."""
    listed = started[0].client.within(scope).list_ownership()
    stored = {row["partition_id"]: (row["owner_id"], row["etag"]) for row in listed}
    for partition_id in partitions:
        where = f"{scope}, partition {partition_id}"
        given = zip(started, won, strict=True)
        pairs = [(one, rows[partition_id]) for one, rows in given if partition_id in rows]
        if len(pairs) != 1:
            raise RaceError(f"{where}: {len(pairs)} of {len(started)} have won")
        [(winner, row)] = pairs
        if stored.get(partition_id) != (winner.owner_id, row["etag"]):
            raise RaceError(f"{where}: {row} has won, and {stored.get(partition_id)} is stored")
        yield f"won by {winner.variant} stores"
