"""Links of a synchronous client that are being opened, beside partitions that are busy."""

from types import SimpleNamespace
from typing import Any

import pytest

from eventhub_checkpoints.sdk import consumer
from eventhub_checkpoints.sdk.consumer import link_attempt, open_links


class Consumer:
    """As much of the client's consumer as opening needs.

    Attributes:
        steps: how often it was advanced.
    """

    def __init__(self, clock: Any, needed: int = 10, running: bool = True) -> None:
        self.running, self.handler_ready = running, False
        self.steps = 0
        self._clock, self._needed = clock, needed

    def _open(self) -> bool:
        self.steps += 1
        self._clock.now += 0.01
        self.handler_ready = self.steps >= self._needed
        return self.handler_ready


class Refused(Consumer):
    """One whose link is refused."""

    def _open(self) -> bool:
        super()._open()
        raise ValueError("refused")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that only the consumers move on."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(consumer, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def loop_of(*consumers: Any) -> Any:
    return SimpleNamespace(_consumers=dict(enumerate(consumers)))


def test_a_link_that_is_opening_goes_on_until_it_is_open(clock: Any) -> None:
    opening = Consumer(clock)
    open_links(loop_of(opening), 0.2)
    assert (opening.steps, opening.handler_ready) == (10, True)
    open_links(loop_of(opening), 0.2)
    assert opening.steps == 10


def test_what_the_client_has_not_begun_or_has_closed_is_left_alone(clock: Any) -> None:
    idle = Consumer(clock, running=False)
    open_links(loop_of(idle), 0.2)
    assert idle.steps == 0


def test_all_links_together_have_the_time(clock: Any) -> None:
    consumers = Consumer(clock, 15), Consumer(clock, 15)
    loop = loop_of(*consumers)
    open_links(loop, 0.2)
    assert [each.steps for each in consumers] == [15, 5]
    open_links(loop, 0.2)
    assert [each.handler_ready for each in consumers] == [True, True]


def test_a_failure_is_left_to_the_client_and_the_next_link_goes_on(clock: Any) -> None:
    refused, opening = Refused(clock), Consumer(clock)
    open_links(loop_of(refused, opening), 0.2)
    assert (refused.steps, opening.handler_ready) == (1, True)


@pytest.mark.parametrize("loop", [None, object(), loop_of(object())])
def test_a_client_that_shows_nothing_is_left_alone(loop: Any) -> None:
    open_links(loop, 0.2)
    assert link_attempt(loop, "0") is None


def test_a_link_is_attached_when_the_client_says_so() -> None:
    sync, aio = (SimpleNamespace(running=True) for _ in "12")
    sync.handler_ready = False
    loop = SimpleNamespace(_consumers={"sync": sync, "aio": aio})

    def attached() -> list[str]:
        return [key for key in ("sync", "aio", "other") if link_attempt(loop, key) is None]

    assert attached() == ["aio", "other"]
    sync.handler_ready, aio.running = True, False
    assert attached() == ["sync", "other"]
