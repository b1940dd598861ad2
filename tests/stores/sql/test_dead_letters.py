"""The table of dead letters, in each database and both variants."""

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData

from eventhub_checkpoints.errors import StoreNotReadyError

CONTEXT = SimpleNamespace(
    fully_qualified_namespace="ns.example.net",
    eventhub_name="orders",
    consumer_group="$Default",
    partition_id="0",
)


@pytest.fixture
def table(variant: Any, place: Any) -> Iterator[Any]:
    """A table that is not created yet."""
    module = import_module(f"eventhub_checkpoints{'.aio' * (variant.name == 'aio')}.sql")
    made = module.DeadLetterTable(place.url)
    yield made
    variant.finished(made.close())
    place.execute(f"DROP TABLE IF EXISTS {place.tables.dead_letters}")


def test_a_dead_letter_is_kept_marked_replaced_and_discarded(table: Any, variant: Any) -> None:
    with pytest.raises(StoreNotReadyError, match="create"):
        variant.finished(table.dead_letters())
    variant.finished(table.create())
    variant.finished(table.create())
    # Longer than the column types that end at 64 KB, and a character that PostgreSQL refuses.
    event, error = EventData(b"x" * 100_000), ValueError("no\0price")
    variant.finished(table(CONTEXT, event, error))
    [stored] = variant.finished(table.dead_letters())
    assert (stored.dead_letter.body, stored.dead_letter.error_message) == (
        b"x" * 100_000,
        "no\0price",
    )

    variant.finished(table.mark_redriven(stored, "ns.example.net/orders"))
    [redriven] = variant.finished(table.dead_letters())
    assert redriven.redriven_to == "ns.example.net/orders"
    assert redriven.redriven_time >= stored.dead_letter.time

    variant.finished(table(CONTEXT, event, ValueError("again")))
    variant.finished(table.discard([redriven]))
    [again] = variant.finished(table.dead_letters())
    assert (again.dead_letter.error_message, again.redriven_time) == ("again", None)
    variant.finished(table.discard([again]))
    assert variant.finished(table.dead_letters()) == []
