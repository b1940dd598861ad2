"""Context of a check: an unused scope, store objects over one backend, and races and faults."""

import asyncio
import inspect
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Self, TypeVar

from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.conformance.contract import AccessorsArgument, NotShown, accessors_for
from eventhub_checkpoints.conformance.faults import Faults
from eventhub_checkpoints.conformance.pauses import HookCall
from eventhub_checkpoints.conformance.processes import Call, Racers, Racing
from eventhub_checkpoints.records import Scope

Result = TypeVar("Result")
Failure = TypeVar("Failure", bound=Exception)
BARRIER_TIMEOUT = 120.0


def race(functions: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call all functions at the same moment, each in a separate thread; return their results."""
    barrier = threading.Barrier(len(functions))

    def run(function: Callable[[], Result]) -> Result:
        barrier.wait(BARRIER_TIMEOUT)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        racers = [pool.submit(run, function) for function in functions]
    return [racer.result() for racer in racers]


def raising(kind: type[Failure], function: Callable[..., object], *args: object) -> Failure:
    """Call the function, which must raise this kind of error, and return the error."""
    try:
        function(*args)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def raised_by(function: Callable[[], object]) -> Exception | None:
    """Call the function and return its error, if any."""
    try:
        function()
    except Exception as error:
        return error
    return None


async def gathered(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Await all calls together; an error takes the place of its call's result."""
    return await asyncio.gather(*(call() for call in calls), return_exceptions=True)


def outcome_of(function: Callable[[], Any]) -> Any:
    """Call the function and return its result or its error."""
    try:
        return function()
    except Exception as error:
        return error


class Subject:
    """Store under test for one check.

    Args:
        make_store: returns a new sync or async store object over the same backend at each call.
        accessors: provided by the store's author; default: the store's `conformance_accessors`.
        loop: runs the calls of aio stores.
        racers: processes that race for the backend.
    """

    def __init__(
        self,
        make_store: Callable[[], Any],
        accessors: AccessorsArgument,
        loop: Loop,
        racers: Racers,
    ) -> None:
        # Unused, so that a shared server needs no cleanup.
        namespace = f"conformance-{uuid.uuid4().hex[:12]}.example.net"
        self.scope = Scope(namespace, "orders", "$Default")
        self._make_store = make_store
        self._loop = loop
        self.racers = racers
        self._opened = ExitStack()
        store = self._opened_store()
        self.accessors = accessors_for(store, accessors)
        self.client = self._client(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def another(self) -> Client:
        """Open an additional store object over the same backend, as another process would."""
        return self._client(self._opened_store())

    def others(self, count: int) -> list[Client]:
        """Open `count` additional store objects."""
        return [self.another() for _ in range(count)]

    def race_processes(self, racing: Sequence[Racing[Result]]) -> list[Result]:
        """Run each function in a separate process, with a store object; return the results."""
        self.racers.start()
        return self.racers.race(racing, self.scope)

    def call_during_pause(self, paused: Call, other: Call, seconds: float) -> list[HookCall]:
        """Call a hook in one process, and during its pause a hook in another."""
        self.racers.start()
        return self.racers.call_during_pause(paused, other, self.scope, seconds)

    def at_once(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls of the store, all at the same moment.

        An aio store is called by tasks of its event loop, and by no other thread. An error takes
        the place of its call's result.
        """
        if all(map(inspect.iscoroutinefunction, calls)):
            results: list[Any] = self._loop.finished(gathered(calls))
            return results
        return race([partial(outcome_of, call) for call in calls])

    def _opened_store(self) -> Any:
        return self._loop.finished(self._make_store())

    def _client(self, store: Any) -> Client:
        client = Client(store, self.scope, self._loop, self.accessors.settle)
        self._opened.callback(client.close)
        return client

    def faults(self, client: Client | None = None) -> Faults:
        """Return a fault injector between the base class and the hooks of a store object."""
        return Faults((client or self.client).store)

    def put_raw(self, kind: Any, partition_id: str, fields: dict[str, str | None] | None) -> None:
        """Write a row in this check's scope as another program would."""
        if self.accessors.put_raw is None:
            raise NotShown("needs put_raw")
        self.accessors.put_raw(kind, self.scope, partition_id, fields)

    def stall(self, seconds: float) -> None:
        """Make the backend unresponsive for this many seconds, or until the check ends."""
        if self.accessors.stall is None:
            raise NotShown("needs stall")
        self._opened.callback(self.accessors.stall, 0.0)
        self.accessors.stall(seconds)

    def shift_clock(self, seconds: float) -> None:
        """Set the backend's clock ahead, until the check ends."""
        if self.accessors.shift_clock is None:
            raise NotShown("needs shift_clock")
        self._opened.callback(self.accessors.shift_clock, 0.0)
        self.accessors.shift_clock(seconds)
