"""Handlers that only make a generator or a coroutine: what nothing runs is never a success."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints._shared.callables import run
from variants import EVERY_CLIENT

Wait = Callable[..., Any]


class Plain:
    """Has the methods of a processor, each of which does its work."""

    def __init__(self, context: Any, checkpoints: Any) -> None:
        self.seen: list[int] = []

    def initialize(self) -> None:
        pass

    def process_events(self, events: list[Any]) -> Any:
        self.seen += [event.sequence_number for event in events]

    def process_error(self, error: Exception) -> Any:
        pass

    def close(self, reason: Any) -> Any:
        pass


def steps(*args: Any) -> Iterator[None]:
    """A generator: called, it has done nothing."""
    yield None


async def async_steps(*args: Any) -> AsyncIterator[None]:
    """The same for `async for`."""
    yield None


async def coroutine(*args: Any) -> None:
    """What a sync processor does not await."""


async def coroutine_of_steps(*args: Any) -> Iterator[None]:
    """Awaited, it has still done nothing."""
    return steps(*args)


def lazily(*args: Any, **rest: Any) -> Any:
    return map(print, args)


def behind_a_decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(*args: Any) -> Any:
        return function(*args)

    return method


def with_method(name: str, function: Any) -> type:
    return type("Orders", (Plain,), {name: function})


def test_a_partial_that_did_nothing_is_named_by_its_function() -> None:
    """So is a `client`, to which the processor has added its store."""
    connection_string = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKey=c2VjcmV0"
    with pytest.raises(ConfigurationError, match=r"^'lazily' returned a map, which"):
        run(functools.partial(functools.partial(lazily, connection_string), store=5))


SYNC_RESULTS = [
    (steps, "a generator"),
    (async_steps, "an async generator"),
    (lazily, "a map"),
    (coroutine, "an awaitable"),
]
"""Functions that do nothing for a sync processor, and what they return."""
AIO_RESULTS = [*SYNC_RESULTS[:-1], (coroutine_of_steps, "a generator")]


def results(site: Any) -> list[tuple[Any, str]]:
    return AIO_RESULTS if site.is_aio else SYNC_RESULTS


@EVERY_CLIENT
@pytest.mark.parametrize("on_poison", ["stop", "skip"])
def test_events_that_no_handler_has_seen_are_not_saved(site: Any, on_poison: str) -> None:
    for function, name in results(site):
        store = site.stage.store()
        site.publish(20)
        orders = with_method("process_events", behind_a_decorator(function))
        run = site.processor(store, processor=orders, on_poison=on_poison)
        run.call("start")
        run.call("wait")
        assert not run.processor.healthy()
        with pytest.raises(ConfigurationError, match=f" returned {name}, which nothing runs"):
            run.call("stop")
        assert site.row(store) is None


@EVERY_CLIENT
def test_a_poison_event_that_no_sink_has_stored_is_not_passed(site: Any) -> None:
    def fails(self: Plain, events: list[Any]) -> None:
        raise ValueError("not processed")

    for function, name in results(site):
        store = site.stage.store()
        site.publish(1)
        orders, sink = with_method("process_events", fails), behind_a_decorator(function)
        run = site.processor(store, processor=orders, on_poison=sink, attempts=1)
        run.call("start")
        run.call("wait")
        with pytest.raises(ConfigurationError, match=f" returned {name}, which nothing runs"):
            run.call("stop")
        assert site.row(store) is None


@EVERY_CLIENT
@pytest.mark.parametrize("method", ["initialize", "close"])
def test_a_method_that_does_nothing_fails_the_processor(site: Any, wait: Wait, method: str) -> None:
    site.publish(1)
    store = site.stage.store()
    orders = with_method(method, behind_a_decorator(steps))
    run = site.processor(store, processor=orders)
    run.call("start")
    if method == "initialize":
        run.call("wait")
        assert site.row(store) is None
    else:
        wait(lambda: site.row(store) == 0)
    with pytest.raises(ConfigurationError, match=" returned a generator, which nothing runs"):
        run.call("stop")


@EVERY_CLIENT
def test_an_on_error_that_does_nothing_is_reported(
    site: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    """Also of an aio processor, which calls it and waits for nothing."""
    site.publish(1)

    def fails(self: Plain, events: list[Any]) -> None:
        raise ValueError("not processed")

    orders = type("Orders", (), {"__init__": Plain.__init__, "process_events": fails})
    run = site.processor(
        site.stage.store(), processor=orders, on_error=behind_a_decorator(coroutine), attempts=1
    )
    run.call("start")
    wait(lambda: "coroutine' returned an awaitable, which nothing runs" in caplog.text)


async def waits(seen: list[int], events: list[Any]) -> None:
    seen += [event.sequence_number for event in events]


@EVERY_CLIENT
@pytest.mark.parametrize("decorated", [False, True])
def test_a_plain_method_that_blocks_the_event_loop_is_said_once(
    site: Any, wait: Wait, caplog: Any, decorated: bool
) -> None:
    store, made = site.stage.store(), []

    class Orders(Plain):
        def __init__(self, context: Any, checkpoints: Any) -> None:
            super().__init__(context, checkpoints)
            made.append(self)

        def process_events(self, events: list[Any]) -> Any:
            if decorated and site.is_aio:
                return waits(self.seen, events)
            return super().process_events(events)

    run = site.processor(store, processor=Orders)
    site.publish(2)
    run.call("start")
    wait(lambda: site.row(store) == 1)
    site.publish(2)
    wait(lambda: site.row(store) == 3)
    said = [each.getMessage() for each in caplog.records if "plain function" in each.getMessage()]
    assert len(said) == (site.is_aio and not decorated)
    for sentence in said:
        assert sentence.startswith("process_events of ")
        assert "asyncio.to_thread" in sentence
    assert made[0].seen == [0, 1, 2, 3]
