"""Batches that a store claims in one trip, claimed one by one, so that each claim can fail."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any

from eventhub_checkpoints.errors import StoreUnavailableError

in_a_batch: ContextVar[bool] = ContextVar("eventhub_checkpoints_in_a_batch", default=False)
"""A batch may be made of single claims: these have met their fault already."""


def singly(inner: Callable[..., Any], between: Callable[..., Any]) -> Callable[..., Any]:
    """A batch that is claimed one by one, each claim through the faults."""

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
    """The same for a batch that is awaited."""

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
    """The answer, unless it is an error."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def in_place_of_an_answer(error: Exception) -> Exception:
    """The error of one claim of a batch: of our kinds, as a store has to give it."""
    return StoreUnavailableError(str(error)) if isinstance(error, TimeoutError) else error
