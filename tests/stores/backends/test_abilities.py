"""What stores can do beyond the SDK's four methods, on every backend and in both variants."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends import Place, Variant
from eventhub_checkpoints import abilities
from eventhub_checkpoints.aio import abilities as aio_abilities
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.records import Scope

ABILITIES = {"sync": abilities, "aio": aio_abilities}


@pytest.fixture
def groups() -> list[Scope]:
    """Groups whose names nobody else uses, the first one in upper case too."""
    name = f"ns-{uuid.uuid4().hex[:12]}"
    return [
        Scope(f"{name}.Servicebus.windows.net", "Orders", "$Default"),
        Scope(f"{name}.servicebus.windows.net", "orders", "other"),
        Scope(f"{name}.servicebus.windows.net", "orders2", "$default"),
        Scope(f"{name}2.servicebus.windows.net", "orders", "$default"),
    ]


@pytest.fixture
def client(opened: Callable[..., Client], groups: list[Scope]) -> Client:
    """A store over the place that all tests share, asked about the first group."""
    return opened(groups[0])


@pytest.fixture
def alone(place: Place, variant: Variant, loop: Loop, groups: list[Scope]) -> Iterator[Client]:
    """A store over a place of this test's own."""
    made = Client(place.open(variant), groups[0], loop)
    yield made
    made.close()


def fill(client: Client) -> None:
    """Two owned partitions, and a checkpoint in one of them and in a third."""
    client.take("0", "a")
    client.take("1", "a")
    client.save("1", 7)
    client.save("2", 7)


def names(scope: Scope) -> tuple[str, ...]:
    return tuple(scope.as_dict().values())


def test_the_abilities_are_declared(client: Client, variant: str) -> None:
    assert isinstance(client.store, ABILITIES[variant].ListsScopes)
    assert isinstance(client.store, ABILITIES[variant].Deletes)
    assert isinstance(client.store, ABILITIES[variant].Replaces)


def test_the_groups_that_have_rows_are_listed_as_they_are_stored_and_nothing_else(
    alone: Client, groups: list[Scope]
) -> None:
    assert alone.call("list_scopes") == []
    alone.call("verify")
    assert alone.call("list_scopes") == [], "what verify has written is no group"
    for scope in groups[:2]:
        alone.within(scope).take("0", "a")
    for scope in groups[1:]:
        alone.within(scope).save("0", 7)
    alone.within(groups[3]).release(alone.within(groups[3]).take("0", "a"))
    alone.call("list_ownership", "ns.servicebus.windows.net", "asked-for-only", "$Default")
    assert alone.call("list_scopes") == sorted(map(alone.store.identity, groups), key=str)


def test_a_partition_is_deleted_with_both_rows_and_nothing_else(
    alone: Client, place: Place
) -> None:
    fill(alone)
    assert alone.call("delete_partition", *names(alone.scope), "1") == 2
    assert set(place.rows("ownership")) == {"0"}
    assert set(place.rows("checkpoint")) == {"2"}
    assert alone.call("delete_partition", *names(alone.store.identity(alone.scope)), "2") == 1


def test_a_partition_of_another_group_stays(client: Client, groups: list[Scope]) -> None:
    for scope in groups:
        client.within(scope).take("0", "a")
    assert client.call("delete_partition", *names(client.scope), "0") == 1
    assert [client.within(scope).owner("0") for scope in groups] == [None, "a", "a", "a"]


def test_a_group_is_deleted_and_no_other(client: Client, groups: list[Scope]) -> None:
    for scope in groups:
        fill(client.within(scope))
    assert client.call("delete_scope", *names(client.scope)) == 4
    ours = {*map(client.store.identity, groups)}
    rest = ours - {client.store.identity(groups[0])}
    assert ours & {*client.call("list_scopes")} == rest
    assert client.list_ownership() == client.list_checkpoints() == []
    assert [len(client.within(scope).list_ownership()) for scope in groups[1:]] == [2, 2, 2]
    assert [len(client.within(scope).list_checkpoints()) for scope in groups[1:]] == [2, 2, 2]


def test_what_is_not_there_is_deleted_without_a_word(client: Client) -> None:
    assert client.call("delete_partition", *names(client.scope), "0") == 0
    assert client.call("delete_scope", *names(client.scope)) == 0
    fill(client)
    assert client.call("delete_scope", *names(client.scope)) == 4
    assert client.call("delete_scope", *names(client.scope)) == 0


def test_rows_of_strangers_are_listed_and_deleted_too(client: Client, shared_place: Place) -> None:
    scope = client.scope
    shared_place.put_raw("ownership", scope, "0", {"ownerid": "stranger"})
    shared_place.put_raw("checkpoint", scope, "0", {"offset": "12", "sequencenumber": "7"})
    assert client.store.identity(scope) in client.call("list_scopes")
    assert client.call("delete_partition", *names(scope), "0") == 2
    assert client.store.identity(scope) not in client.call("list_scopes")


@pytest.mark.parametrize("forget", ["delete_partition", "delete_scope"])
def test_a_store_that_had_claimed_goes_on_after_it(
    client: Client, opened: Callable[..., Client], forget: str
) -> None:
    mine = client.take_listed("0", "a")
    client.save("0", 7)
    client.call(forget, *names(client.scope), *(["0"] if forget == "delete_partition" else []))
    again = client.claim("0", "a", mine["etag"])
    assert again is not None, "the claim after it did not create the row"
    assert again["etag"] != mine["etag"]
    client.save("0", 3)
    assert client.position("0") == 3, "the lower checkpoint after it was refused"
    rival = opened(client.scope)
    assert rival.claim("0", "b") is None
    assert rival.claim("0", "b", mine["etag"]) is None


def test_a_deletion_by_one_store_is_met_by_another(
    client: Client, opened: Callable[..., Client]
) -> None:
    mine = client.take_listed("0", "a")
    client.save("0", 7)
    opened(client.scope).call("delete_scope", *names(client.scope))
    assert client.claim("0", "a", mine["etag"])
    client.list_checkpoints()
    client.save("0", 8)
    assert client.position("0") == 8


def test_a_group_that_was_listed_can_be_deleted_by_its_scope(
    alone: Client, groups: list[Scope]
) -> None:
    fill(alone)
    (scope,) = alone.call("list_scopes")
    assert len(alone.call("list_checkpoints", *scope)) == 2
    assert alone.call("delete_partition", *scope, "1") == 2
    assert alone.call("delete_scope", *scope) == 2
    assert alone.call("list_scopes") == []


# The base class refuses it before a hook is called.
@pytest.mark.parametrize("backend", ["memory"], indirect=True)
@pytest.mark.parametrize("name", ["", "a/b"])
def test_an_unusable_name_is_refused(client: Client, name: str) -> None:
    with pytest.raises(InvalidRecordError):
        client.call("delete_scope", "ns", name, "$Default")
    with pytest.raises(InvalidRecordError):
        client.call("delete_partition", "ns", "orders", "$Default", name)


def test_many_partitions_are_deleted_at_once(client: Client) -> None:
    ids = [str(number) for number in range(40)]
    rows: list[dict[str, Any]] = [client.proposal(partition_id, "a") for partition_id in ids]
    assert len(client.claim_ownership(rows)) == len(ids)
    assert client.call("delete_scope", *names(client.scope)) == len(ids)


def since(moment: float) -> float:
    """Seconds from a moment to now."""
    return time.time() - moment


def test_a_checkpoint_has_the_time_of_its_write_on_this_clock(client: Client) -> None:
    client.save("1", 7)
    [row] = client.list_checkpoints(with_times=True)
    assert abs(since(row["last_modified_time"])) < 1000, "it is on another clock"
    [row] = client.list_checkpoints()
    assert "last_modified_time" not in row


def test_a_checkpoint_is_replaced_only_if_it_is_the_one_that_was_read(
    client: Client, opened: Callable[..., Client]
) -> None:
    def replace(number: int, stored: dict[str, Any] | None) -> bool:
        row = {"partition_id": "1", "sequence_number": number, "offset": f"o{number}"}
        replaced: bool = client.call(
            "replace_checkpoint", {**client.scope.as_dict(), **row}, stored
        )
        return replaced

    assert replace(7, None)
    assert not replace(9, None)
    [first] = client.list_checkpoints()
    opened(client.scope).save("1", 8)
    assert not replace(9, first)
    assert client.position("1") == 8
    [second] = client.list_checkpoints()
    assert replace(3, second), "a lower position was refused"
    assert client.position("1") == 3
    client.save("1", 4)
    assert client.position("1") == 4
    opened(client.scope).save("1", 6)
    assert not replace(9, first)
    assert client.position("1") == 6
