"""Etags are times: none is used twice, however fast an entity is written."""

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from backends.table import TablePlace
from eventhub_checkpoints.conformance.clients import Client

Make = Callable[..., Client]
WRITES = 1_000


@pytest.mark.long
def test_a_thousand_writes_in_a_row_have_a_thousand_etags(client: Make, table: TablePlace) -> None:
    """Each is sent as soon as the one before was answered, which is what a writer can do."""
    ours = client(table.url)
    row = ours.take("0", "a")
    etags = [row["etag"]]
    for _ in range(WRITES):
        [row] = ours.claim_ownership([row])
        etags.append(row["etag"])
    assert len(set(etags)) == len(etags)


def test_the_etags_of_many_partitions_are_those_of_their_own_entities(
    client: Make, table: TablePlace
) -> None:
    """In one transaction, entities may be written in the same tick; each condition is its own."""
    ours = client(table.url)
    rows = ours.claim_ownership([ours.proposal(str(number), "a") for number in range(100)])
    seen: dict[str, Counter[str]] = {row["partition_id"]: Counter() for row in rows}
    for _ in range(10):
        rows = ours.claim_ownership(rows)
        for row in rows:
            seen[row["partition_id"]][row["etag"]] += 1
    assert len(rows) == 100
    assert max(itertools.chain.from_iterable(each.values() for each in seen.values())) == 1


def test_an_entity_that_is_deleted_and_made_again_has_another_etag(
    client: Make, table: TablePlace
) -> None:
    ours = client(table.url)
    etags = set()
    for _ in range(50):
        etags.add(ours.take("0", "a")["etag"])
        assert ours.call("delete_partition", *ours.scope, "0") == 1
    assert len(etags) == 50
