"""Injection of faults between the base class and the hooks of a store."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.aio.base import BaseCheckpointStore as AioBaseCheckpointStore
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.conformance.contract import NotShown
from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)

in_a_batch: ContextVar[bool] = ContextVar("eventhub_checkpoints_in_a_batch", default=False)
"""Whether the current claim is part of a batch that is claimed singly, so that its fault has been
injected already."""


def singly(inner: Callable[..., Any], between: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a batch hook so that each claim is made singly, with its own fault."""

    def alone(proposal: Any) -> Any:
        token = in_a_batch.set(True)
        try:
            return raised(inner([proposal])[0])
        finally:
            in_a_batch.reset(token)

    claim = between("try_claim", alone)

    def call(proposals: Sequence[Any]) -> list[Any]:
        answers: list[Any] = []
        for proposal in proposals:
            try:
                answers.append(claim(proposal))
            except Exception as error:
                answers.append(in_place_of_an_answer(error))
        return answers

    return call


def singly_aio(
    inner: Callable[..., Awaitable[Any]], between: Callable[..., Any]
) -> Callable[..., Awaitable[Any]]:
    """Wrap an asynchronous batch hook in the same way as `singly`."""

    async def alone(proposal: Any) -> Any:
        token = in_a_batch.set(True)
        try:
            return raised((await inner([proposal]))[0])
        finally:
            in_a_batch.reset(token)

    claim = between("try_claim", alone)

    async def call(proposals: Sequence[Any]) -> list[Any]:
        answers: list[Any] = []
        for proposal in proposals:
            try:
                answers.append(await claim(proposal))
            except Exception as error:
                answers.append(in_place_of_an_answer(error))
        return answers

    return call


def raised(answer: Any) -> Any:
    """Return the answer; raise it if it is an error."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def in_place_of_an_answer(error: Exception) -> Exception:
    """Return the error of one claim of a batch, converted as a store must do it."""
    return StoreUnavailableError(str(error)) if isinstance(error, TimeoutError) else error


HOOKS = ("read_ownerships", "try_claim", "read_checkpoints", "write_checkpoint")
ALWAYS = 10**9
LONGEST_HANG = 1.8
"""Seconds after which even a driver without a timeout gives up; more than a check allows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of one call of a hook.

    Attributes:
        seconds: delay before the hook is called.
        hangs: whether the hook is not called at all, and no answer comes.
        refused_by: makes the error that is raised instead of calling the hook.
        meanwhile: called after the hook has answered, before its caller gets the answer.
        lost_by: makes the error that replaces the hook's answer.
        changed: converts the answer.
    """

    seconds: float = 0.0
    hangs: bool = False
    refused_by: Callable[[], Exception] | None = None
    meanwhile: Callable[[], object] | None = None
    lost_by: Callable[[], Exception] | None = None
    changed: Callable[[Any], Any] | None = None

    def answer(self, answer: Any) -> Any:
        """Return the hook's answer with the fault applied."""
        if self.meanwhile is not None:
            self.meanwhile()
        if self.lost_by is not None:
            raise self.lost_by()
        return answer if self.changed is None else self.changed(answer)


NONE = Fault()
UNAVAILABLE = Fault(refused_by=partial(StoreUnavailableError, "the backend is away (injected)"))
REFUSED = Fault(refused_by=partial(StoreAccessError, "the backend refused (injected)"))
NOT_READY = Fault(refused_by=partial(StoreNotReadyError, "nothing is set up (injected)"))
ANSWER_LOST = Fault(lost_by=partial(StoreUnavailableError, "the answer was lost (injected)"))
HANGS = Fault(hangs=True)


@dataclass(slots=True)
class Plan:
    """Fault for the next calls of a hook."""

    fault: Fault
    hook: str
    partition_id: str | None
    times: int


class Faults:
    """Fault injector between the base class and the hooks of one store object.

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
        self._plans: list[Plan] = []
        self._calls: list[tuple[str, str | None]] = []
        self._under_way: Counter[tuple[str, str | None]] = Counter()
        self._peaks: Counter[tuple[str, str | None]] = Counter()
        between = self._around_aio if isinstance(store, AioBaseCheckpointStore) else self._around
        for hook in HOOKS:
            setattr(store, hook, between(hook, getattr(store, hook)))
        if self.in_one_trip:
            one_by_one = singly_aio if between == self._around_aio else singly
            store.try_claims = one_by_one(store.try_claims, between)

    def plan(
        self, hook: str, fault: Fault, *, times: int = 1, partition_id: str | None = None
    ) -> None:
        """Inject a fault into the next calls of a hook; plans are used in their order."""
        with self._guard:
            self._plans.append(Plan(fault, hook, partition_id, times))

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
        """Skip a check that is about concurrent claims."""
        if self.in_one_trip:
            raise NotShown("the store claims a batch in one trip")

    def _around(self, hook: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if in_a_batch.get():
                return inner(*args)
            with self._counted(hook, args) as fault:
                time.sleep(fault.seconds)
                if fault.hangs:
                    # A driver gets the remaining time as its timeout, and gives up by itself.
                    time.sleep(min(seconds_left(), LONGEST_HANG))
                    raise TimeoutError("no answer (injected)")
                if fault.refused_by is not None:
                    raise fault.refused_by()
                return fault.answer(inner(*args))

        return call

    def _around_aio(
        self, hook: str, inner: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any) -> Any:
            if in_a_batch.get():
                return await inner(*args)
            with self._counted(hook, args) as fault:
                await asyncio.sleep(LONGEST_HANG if fault.hangs else fault.seconds)
                if fault.hangs:
                    raise TimeoutError("no answer (injected)")
                if fault.refused_by is not None:
                    raise fault.refused_by()
                answer = await inner(*args)
                if fault.meanwhile is None:
                    return fault.answer(answer)
                # In a thread, because `meanwhile` may call a store of this same loop.
                return await asyncio.to_thread(fault.answer, answer)

        return call

    @contextmanager
    def _counted(self, hook: str, args: Sequence[Any]) -> Iterator[Fault]:
        partition_id = getattr(args[0], "partition_id", None)
        places = {(hook, None), (hook, partition_id)}
        with self._guard:
            fault = self._next(hook, partition_id)
            self._calls.append((hook, partition_id))
            self._under_way.update(places)
            for place in places:
                self._peaks[place] = max(self._peaks[place], self._under_way[place])
        try:
            yield fault
        finally:
            with self._guard:
                self._under_way.subtract(places)

    def _next(self, hook: str, partition_id: str | None) -> Fault:
        for plan in self._plans:
            if plan.times and plan.hook == hook and plan.partition_id in (None, partition_id):
                plan.times -= 1
                return plan.fault
        return NONE
