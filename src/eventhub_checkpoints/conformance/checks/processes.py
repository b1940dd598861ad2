"""Checks of concurrent claims and checkpoints from several processes."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, count, cycle

from eventhub_checkpoints.conformance.clients import Client, Row
from eventhub_checkpoints.conformance.contract import PROCESSES, check
from eventhub_checkpoints.conformance.harness import Subject
from eventhub_checkpoints.conformance.processes import RACERS, in_step

LEAST, MOST = 8, 64
"""Number of partitions of the first race and of the largest."""
SECONDS = 1.5
"""Seconds in which races are started: the faster the store, the more races it takes to hit a race
condition."""
Etags = Mapping[str, str | None]
Claim = Callable[[str, Etags, Client, float], list[Row]]


def races() -> Iterator[list[str]]:
    """Yield the partitions of one race after another until the time is over; at least twice.

    The first races are small, because a slow store takes long for them.
    """
    end, first, size = time.monotonic() + SECONDS, 0, LEAST
    for number in count():
        yield [str(one) for one in range(first, first + size)]
        first += size
        if number % 2:
            size = min(2 * size, MOST)
            if time.monotonic() >= end:
                return


def claim_together(owner_id: str, etags: Etags, client: Client, start: float) -> list[Row]:
    """Claim all partitions in one batch; the rows that were won."""
    batch = [client.proposal(one, owner_id, etag) for one, etag in etags.items()]
    for _ in in_step(start, [None]):
        won: list[Row] = list(client.claim_ownership(batch))
    return won


def claim_singly(owner_id: str, etags: Etags, client: Client, start: float) -> list[Row]:
    """Claim one partition after another; the rows that were won."""
    won = [client.claim(one, owner_id, etags[one]) for one in in_step(start, list(etags))]
    return [row for row in won if row is not None]


def save_all(number: int, partition_ids: list[str], client: Client, start: float) -> None:
    """Store one checkpoint of each partition; each process has the highest of every other one."""
    for partition_id in in_step(start, partition_ids):
        client.save_or_be_refused(partition_id, 10 + (number + int(partition_id)) % RACERS)


def winners(s: Subject, claim: Claim, etags: Etags, kind: str) -> Etags:
    """Race for some partitions, each of which must be won by one process; the new etags."""
    won = s.race_processes([partial(claim, f"owner-{n}", etags) for n in range(RACERS)])
    owners: dict[str, list[str]] = {partition_id: [] for partition_id in etags}
    for row in chain.from_iterable(won):
        owners[row["partition_id"]].append(row["owner_id"])
    several = sum(len(one) > 1 for one in owners.values())
    none = sum(not one for one in owners.values())
    assert not several, f"of {len(owners)} {kind}, {several} were won by more than one process"
    assert not none, f"of {len(owners)} {kind}, {none} were won by none of {RACERS} processes"
    listed = {row["partition_id"]: [row["owner_id"]] for row in s.client.list_ownership()}
    assert listed.items() >= owners.items(), f"of {len(owners)} {kind}, not all winners are listed"
    return {row["partition_id"]: row["etag"] for row in chain.from_iterable(won)}


WAYS: tuple[Claim, ...] = (claim_singly, claim_together)


@check("G1", needs=(PROCESSES,))
def one_of_several_processes_wins(s: Subject) -> None:
    """Of claims of one partition by several processes at the same moment, exactly one wins."""
    for claim, partition_ids in zip(cycle(WAYS), races(), strict=False):
        etags = winners(s, claim, dict.fromkeys(partition_ids), "first claims")
        winners(s, claim, etags, "claims with the same etag")


@check("G3", needs=(PROCESSES,))
def racing_processes_keep_the_highest_checkpoint(s: Subject) -> None:
    """Of checkpoints that several processes store at the same moment, the highest stays."""
    highest = 10 + RACERS - 1
    for partition_ids in races():
        s.race_processes([partial(save_all, number, partition_ids) for number in range(RACERS)])
        saved = {row["partition_id"]: row["sequence_number"] for row in s.client.list_checkpoints()}
        lower = [one for one in partition_ids if saved.get(one) != highest]
        assert not lower, f"of {len(partition_ids)} races, {len(lower)} did not keep the highest"
