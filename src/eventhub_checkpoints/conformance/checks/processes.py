"""Claims and checkpoints at the same moment, from several processes."""

from collections.abc import Mapping
from functools import partial
from itertools import chain

from eventhub_checkpoints.conformance.clients import Client, Row
from eventhub_checkpoints.conformance.contract import PROCESSES, check
from eventhub_checkpoints.conformance.harness import Subject
from eventhub_checkpoints.conformance.processes import RACERS, in_step

PARTITIONS = [str(number) for number in range(64)]
Etags = Mapping[str, str | None]


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


def save_all(number: int, client: Client, start: float) -> None:
    """Store one checkpoint of each partition; each process has the highest of every other one."""
    for partition_id in in_step(start, PARTITIONS):
        client.save_or_be_refused(partition_id, 10 + (number + int(partition_id)) % RACERS)


def one_won_each(s: Subject, won: list[list[Row]], kind: str) -> dict[str, str | None]:
    """The etags of the winners, of which each partition must have exactly one."""
    owners: dict[str, list[str]] = {one: [] for one in PARTITIONS}
    for row in chain.from_iterable(won):
        owners[row["partition_id"]].append(row["owner_id"])
    several = sum(len(one) > 1 for one in owners.values())
    none = sum(not one for one in owners.values())
    assert not several, f"of {len(owners)} {kind}, {several} were won by more than one process"
    assert not none, f"of {len(owners)} {kind}, {none} were won by none of {RACERS} processes"
    listed = {row["partition_id"]: [row["owner_id"]] for row in s.client.list_ownership()}
    assert listed == owners, f"of {len(owners)} {kind}, not all winners are listed as owners"
    return {row["partition_id"]: row["etag"] for row in chain.from_iterable(won)}


@check("G1", needs=(PROCESSES,))
def one_of_several_processes_wins(s: Subject) -> None:
    """Of claims of one partition by several processes at the same moment, exactly one wins."""
    etags: Etags = dict.fromkeys(PARTITIONS)
    for claim, kind in (
        (claim_together, "first claims in batches"),
        (claim_together, "batched claims with the same etag"),
        (claim_singly, "claims with the same etag"),
    ):
        won = s.race_processes([partial(claim, f"owner-{n}", etags) for n in range(RACERS)])
        etags = one_won_each(s, won, kind)


@check("G3", needs=(PROCESSES,))
def racing_processes_keep_the_highest_checkpoint(s: Subject) -> None:
    """Of checkpoints that several processes store at the same moment, the highest stays."""
    s.race_processes([partial(save_all, number) for number in range(RACERS)])
    saved = {row["partition_id"]: row["sequence_number"] for row in s.client.list_checkpoints()}
    highest = 10 + RACERS - 1
    lower = [one for one in PARTITIONS if saved.get(one) != highest]
    assert not lower, f"of {len(PARTITIONS)} races, {len(lower)} did not keep the highest"
