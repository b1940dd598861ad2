"""What every backend shows of a group for diagnosis."""

from collections.abc import Callable

from backends import Place
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.hook_results import Examination


def test_rows_and_those_that_cannot_be_read_are_shown(
    opened: Callable[..., Client], shared_place: Place, scope: Scope
) -> None:
    client = opened(scope)
    assert client.take("0", "me")
    client.save("0", 7)
    shared_place.put_raw("checkpoint", scope, "1", {"offset": None})
    found = client.call("examine", *scope)
    assert isinstance(found, Examination)
    assert found.rows.scope == scope
    assert [row.owner_id for row in found.rows.ownerships.rows] == ["me"]
    assert [row.sequence_number for row in found.rows.checkpoints.rows] == [7]
    assert len(found.rows.checkpoints.skipped) == 1
    assert not found.spellings
    # It was not logged, as a list would have done.
    assert client.store.counters["skipped_rows"] == 0
