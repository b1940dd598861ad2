"""Wrong calls of what users call first: one sentence of this package, with what was meant."""

from typing import Any

import pytest

import eventhub_checkpoints as sync
from eventhub_checkpoints import aio, arrow, spark
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.dead_letters import DeadLetterFile
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.sql import SqlCheckpointStore

STORE = sync.MemoryCheckpointStore()
SCOPE = sync.Scope("ns.servicebus.windows.net", "orders", "$Default")
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (sync.every, (), {"event": 5}, "every has no argument event; did you mean events?"),
    (sync.every, (5,), {}, "every takes these arguments by name only: events=, seconds="),
    (sync.every, (), {"zzz": 5}, "every has no argument zzz; it has events, seconds"),
    (sync.trailing, (), {"events": 5}, "trailing needs seconds="),
    (sync.Checkpointer, (), {}, "Checkpointer needs store="),
    (aio.Checkpointer, (STORE,), {"polcy": 1}, "has no argument polcy; did you mean policy?"),
    (sync.CoalescingCheckpointStore, (), {}, "CoalescingCheckpointStore needs store="),
    (aio.CoalescingCheckpointStore, (STORE, 1, 2), {}, "takes these arguments by name only: "),
    (sync.HandoverStore, (STORE,), {}, "HandoverStore needs expires_after="),
    (aio.HandoverStore, (), {}, "HandoverStore needs store= and expires_after="),
    (sync.EventProcessor, (print, print), {}, "EventProcessor needs store="),
    (aio.EventProcessor, (), {"stor": 1}, "EventProcessor has no argument stor; did you mean"),
    (sync.open_store, (), {}, "open_store needs url="),
    (aio.open_store, (), {"credential": 1}, "open_store needs url="),
    (arrow.read_batches, (), {"strt": 1}, "read_batches has no argument strt; did you mean start?"),
    (aio_arrow.read_batches, (), {}, "read_batches needs hub="),
    (SqlCheckpointStore, (), {}, "SqlCheckpointStore needs url_or_engine="),
    (DeadLetterFile, (), {"file": "a"}, "DeadLetterFile has no argument file; it has path"),
    (spark.CheckpointPublisher, (), {}, "CheckpointPublisher needs store_or_url= and scope="),
    (spark.starting_positions, ("memory:",), {}, "starting_positions needs scope="),
    (spark.gap_report, (), {"hubb": 1}, "gap_report has no argument hubb; did you mean hub?"),
    (STORE.list_ownership, (SCOPE,), {}, "one by one; call list_ownership(*scope)"),
    (STORE.delete_partition, (SCOPE,), {}, "call delete_partition(*scope, partition_id)"),
    (STORE.examine, (), {}, "examine needs fully_qualified_namespace= and eventhub_name= and"),
    (STORE.examine, (*SCOPE, "0"), {}, "no more arguments than fully_qualified_namespace, event"),
]


@pytest.mark.parametrize(("call", "args", "kwargs", "said"), CALLS)
def test_a_wrong_call_says_what_was_meant(
    call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        call(*args, **kwargs)
    assert said in str(wrong.value)


def test_an_error_in_the_function_stays_as_it_is() -> None:
    def fails(value: object) -> None:
        raise TypeError("its own")

    with pytest.raises(TypeError, match="its own"):
        with_checked_arguments(fails)(1)


@pytest.mark.parametrize("module", [sync, aio])
@pytest.mark.parametrize(
    "make",
    [
        lambda module, store: module.Checkpointer(store),
        lambda module, store: module.CoalescingCheckpointStore(store),
        lambda module, store: module.HandoverStore(store, expires_after=180),
        lambda module, store: module.EventProcessor(print, lambda *_: None, store=store),
    ],
)
def test_a_class_is_not_a_store(module: Any, make: Any) -> None:
    said = "store is the class MemoryCheckpointStore, not a store of this class; expected"
    with pytest.raises(ConfigurationError, match=said):
        make(module, module.MemoryCheckpointStore)


class Given:
    """Processor with the parameters that another package passes."""

    def __init__(self, *_: object) -> None:
        """Take what `PartitionProcessor` takes."""

    def process_events(self, context: object, events: list[Any]) -> None:
        """Never called."""


class Closed(Given):
    """Processor whose optional method has too few parameters."""

    @staticmethod
    def process_events(events: list[Any]) -> None:  # type: ignore[override]
        """As it should be."""

    def close(self) -> None:
        """Never called."""


@pytest.mark.parametrize("module", [sync, aio])
@pytest.mark.parametrize(("kind", "name"), [(Given, "process_events"), (Closed, "close")])
def test_a_handler_that_cannot_be_called_is_refused_at_once(
    module: Any, kind: Any, name: str
) -> None:
    def client(checkpoint_store: object) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=f"^{name} of .* cannot be called with a "):
        module.EventProcessor(client, kind, store=module.MemoryCheckpointStore())
