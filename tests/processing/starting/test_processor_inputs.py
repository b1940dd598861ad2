"""What an event processor cannot work with is refused: at once, or where it is met first."""

import inspect
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import (
    ConfigurationError,
    EventProcessor,
    MemoryCheckpointStore,
    PartitionProcessor,
    StoreNotReadyError,
)
from eventhub_checkpoints.aio import EventProcessor as AioEventProcessor
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.aio import PartitionProcessor as AioPartitionProcessor
from eventhub_checkpoints.aio.dead_letters import DeadLetterFile as AioDeadLetterFile
from eventhub_checkpoints.processing.options import RULES
from variants import ONLY_CODE, SIMULATED


class Async:
    def __init__(self, *args: object) -> None:
        """As `PartitionProcessor` is called."""

    async def process_events(self, events: list[Any]) -> None:
        """Nobody in a sync client waits for it."""


class Plain(Async):
    def process_events(self, events: list[Any]) -> None:  # type: ignore[override]
        """An aio client may call it too."""


class Attribute(Plain):
    def __init__(self, *args: object) -> None:
        """Its attribute stands where the client's partition is opened."""
        self.initialize = 5


class Nothing:
    def __init__(self, *args: object) -> None:
        """It can be made, and is good for nothing."""


async def coroutine(*args: object) -> None:
    """Anything async."""


def generator(*args: object) -> Any:
    """Nothing would run it."""
    yield args


async def async_generator(*args: object) -> Any:
    """Nothing would run it either."""
    yield args


def as_object(function: Any) -> Any:
    """An object that can be called, and then does what the function does."""
    return type("Handler", (), {"__call__": function})()


@pytest.fixture
def kind(variant: str) -> Any:
    return AioEventProcessor if variant != "sync" else EventProcessor


@pytest.fixture
def store(variant: str) -> Any:
    return AioMemoryCheckpointStore() if variant != "sync" else MemoryCheckpointStore()


@pytest.fixture
def other_store(variant: str) -> Any:
    return MemoryCheckpointStore() if variant != "sync" else AioMemoryCheckpointStore()


@ONLY_CODE
def test_every_option_is_checked_where_it_is_given(kind: Any, store: Any) -> None:
    given = inspect.signature(kind).parameters
    checked = RULES.keys() | {"starting_position", "stalled_after", "on_stall"}
    assert checked | {"client", "processor", "store"} == given.keys()
    for name in checked:
        with pytest.raises(ConfigurationError, match=f"^{name} is <object .*; expected "):
            kind(partial, Plain, store=store, **{name: object()})


@ONLY_CODE
@pytest.mark.parametrize("client", [None, 5, "Endpoint=sb://...", SimpleNamespace()], ids=str)
def test_what_is_no_client_and_makes_none_is_refused(kind: Any, store: Any, client: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^client is .*; expected a callable that takes"):
        kind(client, Plain, store=store)


@ONLY_CODE
def test_a_client_of_the_other_variant_is_refused(kind: Any, store: Any, hub: Any) -> None:
    other = AioEventHubConsumerClient if kind is EventProcessor else EventHubConsumerClient
    client = other.from_connection_string(hub.connection_string("orders"), "$Default")
    said = r"^client is of type azure\.eventhub\.(aio\.)?EventHubConsumerClient; expected"
    with pytest.raises(ConfigurationError, match=said):
        kind(client, Plain, store=store)


@ONLY_CODE
def test_a_store_of_the_other_variant_is_refused(kind: Any, other_store: Any) -> None:
    for store in (other_store, None, "memory:"):
        with pytest.raises(ConfigurationError, match=r"^store is .*; expected a checkpoint store"):
            kind(partial, Plain, store=store)


@ONLY_CODE
@pytest.mark.parametrize("processor", [None, 5, Nothing, Nothing(), Plain()])
def test_what_makes_no_processor_is_refused(kind: Any, store: Any, processor: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^processor is .*; expected .* process_events"):
        kind(partial, processor, store=store)


@ONLY_CODE
@pytest.mark.parametrize("name", ["initialize", "process_error", "close"])
@pytest.mark.parametrize("value", [None, 5])
def test_what_stands_where_a_method_is_called_and_is_none_is_refused(
    kind: Any, store: Any, name: str, value: object
) -> None:
    """It would fail each time that the client opens the partition, and nothing would say so."""
    processor = type("Orders", (Plain,), {name: value})
    with pytest.raises(
        ConfigurationError, match=f"^{name} of .*Orders.* is {value}; expected a method"
    ):
        kind(partial, processor, store=store)


@ONLY_CODE
def test_a_class_that_takes_no_context_is_refused(kind: Any, store: Any) -> None:
    class Alone(Plain):
        def __init__(self) -> None:
            """Called with two arguments, it would fail for every partition, again and again."""

    with pytest.raises(ConfigurationError, match=r"^processor cannot be called with a partition"):
        kind(partial, Alone, store=store)


@ONLY_CODE
def test_a_client_class_that_needs_more_than_a_store_is_refused(kind: Any, store: Any) -> None:
    from azure.eventhub import EventHubConsumerClient

    with pytest.raises(
        ConfigurationError, match=r"^client cannot be called with checkpoint_store="
    ):
        kind(EventHubConsumerClient, Plain, store=store)


@ONLY_CODE
def test_async_functions_are_refused_by_a_sync_processor(store: Any, kind: Any) -> None:
    if kind is AioEventProcessor:
        kind(partial, Async, store=store, on_poison=coroutine)
        kind(partial, Plain, store=store, on_poison=print)
        return
    for processor in (Async, AioPartitionProcessor):
        with pytest.raises(ConfigurationError, match=r"is async; expected plain methods, or the "):
            kind(partial, processor, store=store)
    with pytest.raises(ConfigurationError, match=r"^on_poison is async; expected a plain"):
        kind(partial, PartitionProcessor, store=store, on_poison=coroutine)
    sink: Any = AioDeadLetterFile("dead-letters.jsonl")
    with pytest.raises(ConfigurationError, match=r"^on_poison is async; expected a plain"):
        kind(partial, PartitionProcessor, store=store, on_poison=sink)


@ONLY_CODE
@pytest.mark.parametrize("name", ["initialize", "process_events", "process_error", "close"])
@pytest.mark.parametrize("function", [generator, async_generator])
def test_a_processor_whose_method_has_a_yield_is_refused(
    store: Any, kind: Any, name: str, function: Any
) -> None:
    processor = type("Orders", (Plain,), {name: function})
    with pytest.raises(ConfigurationError, match=f"^{name} of .*Orders.* has a yield, so calling"):
        kind(partial, processor, store=store)


@ONLY_CODE
@pytest.mark.parametrize("function", [generator, async_generator, as_object(generator)])
@pytest.mark.parametrize("name", ["client", "processor", "on_poison", "starting_position"])
def test_a_function_with_a_yield_is_refused(
    store: Any, kind: Any, name: str, function: Any
) -> None:
    arguments = {"client": partial, "processor": Plain, name: function}
    with pytest.raises(ConfigurationError, match=f"^{name} has a yield, so calling it runs"):
        kind(**arguments, store=store)


@ONLY_CODE
@pytest.mark.parametrize("function", [generator, async_generator, coroutine])
def test_a_callback_that_would_do_nothing_is_refused(store: Any, kind: Any, function: Any) -> None:
    for callback in (function, as_object(function)):
        with pytest.raises(ConfigurationError, match=r"^on_error is .*; expected None, or a plain"):
            kind(partial, Plain, store=store, on_error=callback)
    on_stall = generator if function is coroutine else function
    with pytest.raises(ConfigurationError, match=r"^on_stall has a yield, so calling it"):
        kind(partial, Plain, store=store, on_stall=on_stall)


@ONLY_CODE
def test_a_class_for_the_sync_client_is_refused_by_an_aio_processor(store: Any, kind: Any) -> None:
    class Orders(PartitionProcessor):
        def process_events(self, events: list[Any]) -> None:
            self.checkpoints.update_checkpoint(events[-1])

    if kind is EventProcessor:
        kind(partial, Orders, store=store)
        return
    said = r"^processor .*Orders is a PartitionProcessor of eventhub_checkpoints; expected one of "
    with pytest.raises(ConfigurationError, match=said):
        kind(partial, Orders, store=store)


@pytest.mark.parametrize("made", [None, 5, SimpleNamespace()], ids=str)
def test_a_callable_that_returns_no_client_fails_the_start(runs: Any, made: object) -> None:
    run = runs.make(runs.stage.store(), lambda checkpoint_store: made)
    with pytest.raises(ConfigurationError, match=r"^client returned .*; expected"):
        run.start()
    run.stop()


def test_a_callable_that_forgets_the_store_ends_the_run_before_an_event(runs: Any) -> None:
    make = runs.maker()
    run = runs.make(runs.stage.store(), lambda checkpoint_store: make())
    runs.publish(3)
    with pytest.raises(ConfigurationError, match="must pass on checkpoint_store="):
        run.run()
    assert not run.seen.events


def test_a_callable_that_raises_fails_the_start_and_may_be_called_again(
    runs: Any, wait: Any
) -> None:
    make, failures = runs.maker(), [OSError("no vault today")]

    def client(checkpoint_store: Any) -> Any:
        if failures:
            raise failures.pop()
        return make(checkpoint_store=checkpoint_store)

    run = runs.make(runs.stage.store(), client)
    with pytest.raises(OSError, match="no vault today"):
        run.start()
    run.start()
    runs.publish(1)
    wait(lambda: run.seen.has(0))


def test_an_async_callable_makes_an_aio_client(runs: Any, wait: Any, variant: str) -> None:
    make = runs.maker()

    async def client(checkpoint_store: Any) -> Any:
        return make(checkpoint_store=checkpoint_store)

    if variant == "sync":
        with pytest.raises(ConfigurationError, match="client is async; expected a plain function"):
            runs.make(runs.stage.store(), client)
        return
    run = runs.make(runs.stage.store(), client)
    runs.publish(1)
    run.start()
    wait(lambda: run.seen.has(0))


@pytest.mark.parametrize(
    ("variant", "made"),
    [
        pytest.param("sync", None, id="sync-None", marks=pytest.mark.long),
        pytest.param("sync", Nothing(), id="sync-useless", marks=pytest.mark.long),
        pytest.param("sync", Async(), id="sync-async", marks=pytest.mark.long),
        pytest.param("sync", Attribute(), id="sync-attribute", marks=pytest.mark.long),
        pytest.param(SIMULATED, None, id="aio-None"),
        pytest.param(SIMULATED, Nothing(), id="aio-useless"),
        pytest.param(SIMULATED, Attribute(), id="aio-attribute"),
    ],
    indirect=["variant"],
)
def test_a_factory_that_makes_no_processor_ends_the_run(
    runs: Any, made: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = runs.make(runs.stage.store(), handler=lambda context, checkpoints: made)
    with pytest.raises(ConfigurationError, match=r"processor is|is async|is 5; "):
        run.run()
    assert runs.owned(run.store) == []
    ours = [record for record in caplog.records if record.name == "eventhub_checkpoints"]
    assert [record.levelname for record in ours] == ["ERROR"]


def test_a_factory_that_raises_is_told_of_and_tried_again(runs: Any, wait: Any) -> None:
    failures = [OSError("no database yet"), OSError("nor now")]
    run: Any = None

    def handler(context: Any, checkpoints: Any) -> Any:
        if failures:
            raise failures.pop(0)
        return run.default(context, checkpoints)

    run = runs.make(runs.stage.store(), handler=handler)
    runs.publish(2)
    run.start()
    wait(lambda: run.seen.has(1))
    assert [(where, str(error)) for where, error in run.seen.errors] == [
        ("0", "no database yet"),
        ("0", "nor now"),
    ]
    assert run.seen.events["0"] == [0, 1]


@ONLY_CODE
def test_no_secret_is_repeated(kind: Any, store: Any) -> None:
    secret = "Endpoint=sb://a.example/;SharedAccessKey=topsecret"
    with pytest.raises(ConfigurationError, match="client is of type str; expected") as raised:
        kind(secret, Plain, store=store)
    assert "topsecret" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="store is of type str; expected") as raised:
        kind(partial, Plain, store="postgresql://me:topsecret@host/db")
    assert "topsecret" not in str(raised.value)


def test_a_processor_that_can_claim_nothing_is_not_healthy(runs: Any, wait: Any) -> None:
    store = runs.stage.store()
    inner, store.inner = store.inner, Broken()
    run = runs.start(store, unhealthy_after=0.3)
    wait(lambda: not run.processor.healthy())
    store.inner = inner
    wait(run.processor.healthy)


class Broken:
    """A store whose tables are missing."""

    forward_only = True

    def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        raise StoreNotReadyError("no tables")
