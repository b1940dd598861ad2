"""Operations on a local hub, whose answers the official client need not wait for."""

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from prompt_client import prompt_client
from simulated_time import EPOCH

__all__ = ["prompt_client"]


class SteppedTime:
    """Time of a program without threads: only its own sleeps move it on, at once.

    Attributes:
        now: seconds since the beginning.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 9)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return EPOCH + self.now


IS_STEPPED: ContextVar[bool] = ContextVar("is_stepped", default=False)
"""Whether the code that asks is that of the test, in whichever thread; not of an earlier test's."""


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Iterator[SteppedTime]:
    """The module `time`, simulated for the test and all that it calls.

    A thread that an earlier test has left behind, such as one of a client, would make time pass.
    """
    made = SteppedTime()

    def of_the_test(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: (simulated if IS_STEPPED.get() else real)(*args)

    for name in ("sleep", "monotonic", "time"):
        real = getattr(time, name)
        monkeypatch.setattr(time, name, of_the_test(getattr(made, name), real))
    IS_STEPPED.set(True)
    yield made
    IS_STEPPED.set(False)
