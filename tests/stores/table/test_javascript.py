"""The official JavaScript store and ours on one table, in both directions, and in both variants."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends.table import Table, TablePlace
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope
from javascript_store import JavaScriptMissingError, JavaScriptStore

Make = Callable[..., Client]


class Javascript:
    """A store of JavaScript that is asked about one group."""

    def __init__(self, store: JavaScriptStore, scope: Scope) -> None:
        self._store = store
        names = ("fullyQualifiedNamespace", "eventHubName", "consumerGroup")
        self._scope = dict(zip(names, scope, strict=True))

    def ownerships(self) -> dict[str, Any]:
        rows = self._store.call("listOwnership", *self._scope.values())
        return {row["partitionId"]: row for row in rows}

    def owners(self) -> dict[str, str]:
        return {name: row["ownerId"] for name, row in self.ownerships().items()}

    def claim(self, partition_id: str, owner_id: str, etag: str | None = None) -> Any:
        """The row if the claim is won, else None."""
        row = self._scope | {"partitionId": partition_id, "ownerId": owner_id}
        won = self._store.call("claimOwnership", [row | ({"etag": etag} if etag else {})])
        return won[0] if won else None

    def checkpoints(self) -> dict[str, tuple[str, int]]:
        rows = self._store.call("listCheckpoints", *self._scope.values())
        return {row["partitionId"]: (row["offset"], row["sequenceNumber"]) for row in rows}

    def save(self, partition_id: str, offset: str, number: int) -> None:
        position = {"partitionId": partition_id, "offset": offset, "sequenceNumber": number}
        self._store.call("updateCheckpoint", self._scope | position)


@pytest.fixture(scope="module")
def process(table: TablePlace, server: Table) -> Iterator[JavaScriptStore]:
    try:
        store = JavaScriptStore(server.url, table.url.rpartition("/")[2])
    except JavaScriptMissingError as missing:
        pytest.skip(str(missing))
    with store:
        yield store


@pytest.fixture
def javascript(process: JavaScriptStore, scope: Scope) -> Javascript:
    return Javascript(process, scope)


@pytest.fixture
def ours(client: Make, table: TablePlace) -> Client:
    return client(table.url)


def test_each_reads_what_the_other_owns_and_has_released(
    ours: Client, javascript: Javascript
) -> None:
    ours.take("0", "python")
    ours.release(ours.take("1", "python"))
    assert javascript.claim("2", "javascript")
    theirs = javascript.claim("3", "javascript")
    javascript.claim("3", "", theirs["etag"])
    expected = {"0": "python", "1": "", "2": "javascript", "3": ""}
    assert javascript.owners() == expected
    assert {row["partition_id"]: row["owner_id"] for row in ours.list_ownership()} == expected


def test_the_entities_are_equal(
    ours: Client, javascript: Javascript, table: TablePlace, scope: Scope
) -> None:
    ours.take("0", "somebody")
    javascript.claim("1", "somebody")
    ours.call("update_checkpoint", ours.scope.as_dict() | POSITION | {"partition_id": "0"})
    javascript.save("1", "149:0:1234", 7)
    for kind in ("Ownership", "Checkpoint"):
        own, other = (
            dict(table.table.get_entity(" ".join([*scope, kind]), name)) for name in ("0", "1")
        )
        assert {**own, "RowKey": "1"} == other


POSITION = {"offset": "149:0:1234", "sequence_number": 7}


def test_python_takes_over_from_javascript_with_the_listed_etag(
    ours: Client, javascript: Javascript
) -> None:
    theirs = javascript.claim("0", "javascript")
    assert ours.claim("0", "python") is None
    assert ours.claim("0", "python", ours.row("0")["etag"])
    assert javascript.owners() == {"0": "python"}
    assert javascript.claim("0", "javascript", theirs["etag"]) is None
    assert ours.owner("0") == "python"


def test_javascript_takes_over_from_python_with_the_listed_etag(
    ours: Client, javascript: Javascript
) -> None:
    row = ours.take("0", "python")
    assert javascript.claim("0", "javascript") is None
    assert javascript.claim("0", "javascript", javascript.ownerships()["0"]["etag"])
    assert ours.claim_ownership([row]) == []
    assert javascript.owners() == {"0": "javascript"}


def test_of_first_claims_at_the_same_time_one_wins(ours: Client, javascript: Javascript) -> None:
    """Each proposes all partitions, at the same moment, and from another end."""
    names = [str(number) for number in range(20)]
    barrier, won = threading.Barrier(2), {}

    def race(owner: str, claim: Callable[[str], Any], order: list[str]) -> None:
        barrier.wait()
        won[owner] = {name for name in order if claim(name)}

    racers = [
        threading.Thread(
            target=race, args=("python", lambda name: ours.claim(name, "python"), names)
        ),
        threading.Thread(
            target=race,
            args=("javascript", lambda name: javascript.claim(name, "javascript"), names[::-1]),
        ),
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert not won["python"] & won["javascript"]
    assert won["python"] | won["javascript"] == {*names}
    assert javascript.owners() == {
        name: owner for owner, claimed in won.items() for name in claimed
    }


def test_the_etags_and_times_that_both_list_are_equal(ours: Client, javascript: Javascript) -> None:
    ours.take("0", "python")
    javascript.claim("1", "javascript")
    listed = javascript.ownerships()
    assert {row["partition_id"]: row["etag"] for row in ours.list_ownership()} == {
        name: row["etag"] for name, row in listed.items()
    }
    stored = ours.call("read_ownerships", ours.scope).rows
    assert {row.partition_id: int(row.last_modified_time * 1000) for row in stored} == {
        name: row["lastModifiedTimeInMs"] for name, row in listed.items()
    }


def test_a_renewal_in_a_transaction_is_one_that_javascript_reads(
    ours: Client, javascript: Javascript
) -> None:
    rows = ours.claim_ownership([ours.proposal(str(number), "python") for number in range(8)])
    assert javascript.claim("5", "javascript", rows[5]["etag"])
    won = ours.claim_ownership(rows)
    assert len(won) == 7
    listed = javascript.ownerships()
    assert all(listed[row["partition_id"]]["etag"] == row["etag"] for row in won)
    assert listed["5"]["ownerId"] == "javascript"


def test_each_reads_the_others_checkpoints(ours: Client, javascript: Javascript) -> None:
    ours.call("update_checkpoint", ours.scope.as_dict() | POSITION | {"partition_id": "0"})
    javascript.save("1", "1:AAA:7", 0)
    expected = {"0": ("149:0:1234", 7), "1": ("1:AAA:7", 0)}
    assert javascript.checkpoints() == expected
    assert {
        row["partition_id"]: (row["offset"], row["sequence_number"])
        for row in ours.list_checkpoints()
    } == expected


def test_a_checkpoint_that_javascript_has_moved_is_noticed(
    ours: Client, javascript: Javascript
) -> None:
    ours.save("0", 5)
    javascript.save("0", "900", 9)
    ours.save("0", 7)
    assert ours.position("0") == 9
    assert ours.store.counters["stale_checkpoints"] == 1
    javascript.save("0", "300", 3)  # it writes over a later one: it compares nothing
    ours.save("0", 10)
    assert javascript.checkpoints()["0"][1] == 10


def test_javascript_lists_no_row_that_this_package_writes_for_itself(
    client: Make, javascript: Javascript, table: TablePlace
) -> None:
    ours = client(table.url, keep_history=True)
    ours.take("0", "python")
    ours.save("0", 5)
    ours.save("0", 5, force=True)
    ours.call("verify")
    requests = ours.within(ours.scope.handover_requests)
    requests.take("0", "asks for it")
    requests.save("0", 1)
    assert javascript.owners() == {"0": "python"}
    assert [*javascript.checkpoints()] == ["0"]
    keys = {entity["PartitionKey"] for entity in table.table.list_entities()}
    assert "eventhub-checkpoints verify probe Ownership" in keys
    assert f"{' '.join(ours.scope)}~wishes Ownership" in keys
    assert f"{' '.join(ours.scope)} History" in keys
