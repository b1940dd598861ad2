"""Earlier checkpoints: which are kept on request, at what cost, and where."""

from collections.abc import Callable
from typing import Any

import pytest

from backends.table import TablePlace
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores import history_entries
from eventhub_checkpoints.stores.table._async import history as aio_history
from eventhub_checkpoints.stores.table._sync import history as sync_history
from eventhub_checkpoints.stores.table.history import stored_time
from fault_proxy import FaultProxy

Make = Callable[..., Client]


@pytest.fixture
def keeping(client: Make, proxied: str) -> Client:
    return client(proxied, keep_history=True)


def history(client: Client, **settings: Any) -> list[dict[str, Any]]:
    return list(client.call("list_history", *client.scope, **settings))


def entries(client: Client, **settings: Any) -> list[tuple[str, Any]]:
    """Kinds and numbers, oldest first."""
    rows = history(client, **settings)
    return [(row["kind"], row["sequence_number"]) for row in reversed(rows)]


def test_nothing_is_kept_unless_it_is_asked_for(client: Make, proxied: str, proxy) -> None:
    ours = client(proxied)
    ours.save("0", 1)
    ours.save("0", 0, force=True)
    # The list after a rewind finds out whether a live owner will undo it.
    assert [request.method for request in proxy.requests] == ["POST", "PUT", "GET"]
    assert history(ours) == []


def test_what_a_tool_marks_is_kept_in_any_case(client: Make, table: TablePlace) -> None:
    ours = client(table.url)
    ours.save("0", 1)
    ours.store.keep_next_write(ours.scope, "0")
    ours.save("0", 7)
    ours.save("0", 8)
    assert entries(ours) == [("replaced", 1), ("rewind", 7)]


def test_the_first_checkpoint_has_an_entry_and_those_of_the_same_minute_have_none(
    keeping: Client,
) -> None:
    for number in range(5):
        keeping.save("0", number)
    assert entries(keeping) == [("checkpoint", 0)]


def test_a_checkpoint_after_a_minute_has_an_entry(
    keeping: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping.save("0", 1)
    monkeypatch.setattr(history_entries, "ENTRY_INTERVAL", 0.0)
    keeping.save("0", 2)
    assert entries(keeping) == [("checkpoint", 1), ("checkpoint", 2)]


def test_an_entry_holds_the_checkpoint_its_time_and_its_writer(
    keeping: Client, table: TablePlace
) -> None:
    keeping.save("0", 4)
    [entry] = history(keeping)
    assert {**keeping.saved("0"), **entry} == entry
    assert entry["writer"] == keeping.store.writer
    [stored] = keeping.call("read_history", keeping.scope, "0", 10).rows
    key = f"{' '.join(keeping.scope)} History"
    [entity] = table.table.query_entities(f"PartitionKey eq '{key}'")
    modified = entity.metadata["timestamp"].timestamp()
    assert stored.checkpoint.last_modified_time == pytest.approx(modified, abs=1e-5)


def test_a_row_that_is_replaced_keeps_its_time(keeping: Client, table: TablePlace) -> None:
    keeping.save("0", 1)
    key = f"{' '.join(keeping.scope)} Checkpoint"
    stored = table.table.get_entity(key, "0").metadata["timestamp"].timestamp()
    keeping.save("0", 0, force=True)
    found = keeping.call("read_history", keeping.scope, "0", 10)
    times = {entry.kind: entry.checkpoint.last_modified_time for entry in found.rows}
    assert times["replaced"] == pytest.approx(stored, abs=1e-5)
    assert times["rewind"] > times["replaced"]
    assert {entry.kind: entry.writer for entry in found.rows}["replaced"] == ""


def test_a_rewind_keeps_the_row_it_replaces_and_the_one_it_stores(keeping: Client) -> None:
    keeping.save("0", 1)
    keeping.save("0", 9)
    keeping.save("0", 3, force=True)
    keeping.save("0", 5, force=True)
    keeping.save("1", 0, force=True)
    assert entries(keeping, partition_id="0") == [
        ("checkpoint", 1),
        ("replaced", 9),
        ("rewind", 3),
        ("replaced", 3),
        ("rewind", 5),
    ]
    assert entries(keeping, partition_id="1") == [("rewind", 0)]
    assert entries(keeping, limit=2) == [("rewind", 5), ("rewind", 0)]


def test_a_marked_write_is_kept_like_a_rewind_and_only_once(keeping: Client) -> None:
    keeping.save("0", 1)
    keeping.call("list_checkpoints", *keeping.scope)
    keeping.store.keep_next_write(keeping.scope, "0")
    keeping.save("0", 7)
    keeping.save("0", 8)
    assert entries(keeping) == [("checkpoint", 1), ("replaced", 1), ("rewind", 7)]


def test_a_checkpoint_that_is_refused_has_no_entry(
    keeping: Client, client: Make, table: TablePlace
) -> None:
    keeping.save("0", 5)
    client(table.url).save("0", 9)
    keeping.store.keep_next_write(keeping.scope, "0")
    keeping.save("0", 7)
    assert entries(keeping) == [("checkpoint", 5)]


def test_an_entry_that_cannot_be_stored_fails_no_checkpoint(
    keeping: Client, proxy: FaultProxy
) -> None:
    keeping.save("0", 1)
    fault = proxy.on("POST").refuse(403, "AuthorizationPermissionMismatch")
    keeping.save("0", 0, force=True)
    assert keeping.position("0") == 0
    assert fault.hits == 1
    keeping.save("0", 3, force=True)
    assert fault.hits == 1, "without the right, no other is tried"
    assert entries(keeping) == [("checkpoint", 1)]


def test_an_entry_that_is_not_answered_costs_no_checkpoint(
    keeping: Client, proxy: FaultProxy
) -> None:
    keeping.save("0", 1)
    proxy.on("POST").drop()
    keeping.save("0", 0, force=True)
    assert keeping.position("0") == 0
    proxy.heal()
    keeping.save("0", 3, force=True)
    assert entries(keeping) == [("checkpoint", 1), ("replaced", 0), ("rewind", 3)]


def test_a_full_history_is_pruned_and_keeps_the_newest(
    keeping: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (aio_history, sync_history):
        monkeypatch.setattr(module, "FULL", 6)
        monkeypatch.setattr(module, "KEPT", 4)
    keeping.save("1", 1)
    for number in range(1, 6):
        keeping.save("0", number, force=True)
    assert entries(keeping, partition_id="0")[-3:] == [
        ("rewind", 4),
        ("replaced", 4),
        ("rewind", 5),
    ]
    assert 4 <= len(history(keeping, partition_id="0")) <= 6
    assert entries(keeping, partition_id="1") == [("checkpoint", 1)]


def test_deleting_a_partition_or_a_group_deletes_its_entries(keeping: Client) -> None:
    for partition_id in ("0", "1", "2"):
        keeping.save(partition_id, 1)
    assert keeping.call("delete_partition", *keeping.scope, "1") == 1
    assert {row["partition_id"] for row in history(keeping)} == {"0", "2"}
    assert keeping.call("delete_scope", *keeping.scope) == 2
    assert history(keeping) == []
    keeping.save("0", 1)
    assert entries(keeping) == [("checkpoint", 1)]


def test_entries_are_no_rows_of_a_group(
    keeping: Client, client: Make, table: TablePlace, scope: Scope
) -> None:
    """They have a partition key of their own, which nobody lists who looks for checkpoints."""
    keeping.save("0", 1)
    assert [row["partition_id"] for row in client(table.url).list_checkpoints()] == ["0"]
    assert {*client(table.url).call("list_scopes")} >= {scope}
    keys = {entity["PartitionKey"] for entity in table.table.list_entities()}
    assert f"{' '.join(scope)} History" in keys


@pytest.mark.parametrize(
    ("text", "time"), [(None, 7.0), ("", 7.0), ("x", 7.0), ("nan", 7.0), ("5.5", 5.5)]
)
def test_a_time_that_is_none_is_that_of_the_entry(text: str | None, time: float) -> None:
    assert stored_time(text, 7.0) == time


def test_what_is_no_entry_is_left_out(keeping: Client, table: TablePlace, scope: Scope) -> None:
    keeping.save("0", 1)
    key = f"{' '.join(scope)} History"
    table.table.create_entity({"PartitionKey": key, "RowKey": "a"})
    table.table.create_entity({"PartitionKey": key, "RowKey": "b", "partitionid": "0"})
    assert entries(keeping) == [("checkpoint", 1)]
