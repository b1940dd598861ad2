"""Injection of faults between the base class and the hooks of a store."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.aio.base import BaseCheckpointStore as AioBaseCheckpointStore
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.conformance.contract import NotShown
from eventhub_checkpoints.errors import StoreAccessError, StoreNotReadyError, StoreUnavailableError

Hook = Callable[..., Awaitable[Any]]

in_a_batch: ContextVar[bool] = ContextVar("eventhub_checkpoints_in_a_batch", default=False)
"""Whether the current claim is part of a batch that is claimed singly, so that its fault has been
injected already."""

HOOKS = ("read_ownerships", "try_claim", "read_checkpoints", "write_checkpoint")
ALWAYS = 10**9
LONGEST_HANG = 10.0
"""Duration of a hang in seconds; longer than a check allows a call to take."""
DELAY_LIMIT = 10.0
"""Seconds after which a delay that waits for a condition ends without it."""
POLL = 0.01


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of one call of a hook.

    Attributes:
        until: the hook is not called before it returns true.
        seconds: delay after that.
        hangs: whether the hook is not called, and no response comes.
        refused_by: returns the error that is raised instead of calling the hook.
        meanwhile: called after the hook has returned, before its caller gets the result.
        lost_by: returns the error that replaces the hook's result.
        changed: converts the result.
    """

    until: Callable[[], bool] | None = None
    seconds: float = 0.0
    hangs: bool = False
    refused_by: Callable[[], Exception] | None = None
    meanwhile: Callable[[], object] | None = None
    lost_by: Callable[[], Exception] | None = None
    changed: Callable[[Any], Any] | None = None

    def answer(self, answer: Any) -> Any:
        """Return the hook's result with the fault applied."""
        if self.meanwhile is not None:
            self.meanwhile()
        if self.lost_by is not None:
            raise self.lost_by()
        return answer if self.changed is None else self.changed(answer)


NONE = Fault()
UNAVAILABLE = Fault(refused_by=partial(StoreUnavailableError, "no connection (injected)"))
REFUSED = Fault(refused_by=partial(StoreAccessError, "the backend refused (injected)"))
NOT_READY = Fault(refused_by=partial(StoreNotReadyError, "the table is missing (injected)"))
ANSWER_LOST = Fault(lost_by=partial(StoreUnavailableError, "the response was lost (injected)"))
HANGS = Fault(hangs=True)


@dataclass(slots=True)
class PlannedFault:
    """Fault for the next calls of a hook."""

    fault: Fault
    hook: str
    partition_id: str | None
    times: int


class Faults:
    """Fault injector between the base class and the hooks of one store object.

    The faults are written once, as coroutines; those of a sync store never suspend.

    Attributes:
        in_one_trip: whether the store claims a batch in one round trip; its claims are then made
            one by one, so that each can fail separately.
    """

    def __init__(self, store: Any) -> None:
        self.in_one_trip = type(store).try_claims not in (
            BaseCheckpointStore.try_claims,
            AioBaseCheckpointStore.try_claims,
        )
        self._guard = threading.Lock()
        self._plans: list[PlannedFault] = []
        self._calls: list[tuple[str, str | None]] = []
        self._running: Counter[tuple[str, str | None]] = Counter()
        self._peaks: Counter[tuple[str, str | None]] = Counter()
        self._is_overdue = False
        self._is_aio = isinstance(store, AioBaseCheckpointStore)
        self._sleep: Hook = asyncio.sleep if self._is_aio else as_coroutine(time.sleep)
        for hook in HOOKS:
            self._replace(store, hook, partial(self._faulty, hook))
        if self.in_one_trip:
            self._replace(store, "try_claims", self._singly)

    def _replace(self, store: Any, name: str, wrapped: Callable[[Hook], Any]) -> None:
        hook = getattr(store, name)
        if self._is_aio:
            setattr(store, name, wrapped(hook))
        else:
            setattr(store, name, as_function(wrapped(as_coroutine(hook))))

    def plan(
        self, hook: str, fault: Fault, *, times: int = 1, partition_id: str | None = None
    ) -> None:
        """Inject a fault into the next calls of a hook; plans are used in their order."""
        with self._guard:
            self._plans.append(PlannedFault(fault, hook, partition_id, times))

    def end(self) -> None:
        """Remove all faults."""
        with self._guard:
            self._plans.clear()

    def forget(self) -> None:
        """Reset the call counts."""
        with self._guard:
            self._calls.clear()

    def count(self, hook: str) -> int:
        """Return the number of calls of a hook."""
        return sum(called == hook for called, _ in self._calls)

    def peak(self, hook: str, partition_id: str | None = None) -> int:
        """Return the maximum number of concurrent calls of a hook, of all or of one partition."""
        return self._peaks[hook, partition_id]

    def must_claim_singly(self) -> None:
        """Skip a check of concurrent claims if the store claims a batch in one request."""
        if self.in_one_trip:
            raise NotShown("the store claims a batch in one trip")

    def _faulty(self, name: str, hook: Hook) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any) -> Any:
            if in_a_batch.get():
                return await hook(*args)
            with self._counted(name, args) as fault:
                await self._delay(fault)
                if fault.hangs:
                    # A sync driver gets the remaining time as its timeout, and gives up by itself.
                    left = LONGEST_HANG if self._is_aio else min(seconds_left(), LONGEST_HANG)
                    await self._sleep(left)
                    raise TimeoutError("no response (injected)")
                if fault.refused_by is not None:
                    raise fault.refused_by()
                answer = await hook(*args)
                if self._is_aio and fault.meanwhile is not None:
                    # In a thread, because `meanwhile` may call a store of this same loop.
                    return await asyncio.to_thread(fault.answer, answer)
                return fault.answer(answer)

        return call

    async def _delay(self, fault: Fault) -> None:
        end = time.monotonic() + DELAY_LIMIT
        while not (fault.until is None or self._is_overdue or fault.until()):
            await self._sleep(POLL)
            # The check fails then; other calls need not wait as long.
            self._is_overdue = time.monotonic() >= end
        await self._sleep(fault.seconds)

    def _singly(self, hook: Hook) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Wrap a batch hook so that each claim is made singly, with its own fault."""

        async def claim_alone(proposal: Any) -> Any:
            token = in_a_batch.set(True)
            try:
                [answer] = await hook([proposal])
            finally:
                in_a_batch.reset(token)
            if isinstance(answer, Exception):
                raise answer
            return answer

        claim = self._faulty("try_claim", claim_alone)

        async def call(proposals: Sequence[Any]) -> list[Any]:
            answers: list[Any] = []
            for proposal in proposals:
                try:
                    answers.append(await claim(proposal))
                except TimeoutError as error:
                    answers.append(StoreUnavailableError(str(error)))
                except Exception as error:
                    answers.append(error)
            return answers

        return call

    @contextmanager
    def _counted(self, hook: str, args: Sequence[Any]) -> Iterator[Fault]:
        partition_id = getattr(args[0], "partition_id", None)
        keys = {(hook, None), (hook, partition_id)}
        with self._guard:
            fault = self._next(hook, partition_id)
            self._calls.append((hook, partition_id))
            self._running.update(keys)
            self._peaks |= self._running
        try:
            yield fault
        finally:
            with self._guard:
                self._running.subtract(keys)

    def _next(self, hook: str, partition_id: str | None) -> Fault:
        for plan in self._plans:
            if plan.times and plan.hook == hook and plan.partition_id in (None, partition_id):
                plan.times -= 1
                return plan.fault
        return NONE


def as_coroutine(function: Callable[..., Any]) -> Hook:
    """Return a coroutine function that calls a function."""

    async def call(*args: Any) -> Any:
        return function(*args)

    return call


def as_function(coroutine_function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a function that runs a coroutine which never suspends."""

    def call(*args: Any) -> Any:
        try:
            coroutine_function(*args).send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a fault of a sync store was suspended")

    return call
