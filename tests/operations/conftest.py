"""Operations on a local hub, whose answers the official client need not wait for."""

import time

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


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    """The module `time` of the process, simulated."""
    made = SteppedTime()
    for name in ("sleep", "monotonic", "time"):
        monkeypatch.setattr(time, name, getattr(made, name))
    return made
