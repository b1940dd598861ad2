"""How long the fast path waits, on a clock of the test's own: for a link, and between attempts."""

import math
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.receive import ReadSettings
from eventhub_checkpoints.receive.amqp import fast, outage
from eventhub_checkpoints.receive.amqp.fast import FastStream
from eventhub_checkpoints.receive.amqp.outage import Outage


class Hub:
    """Links that are not attached: an attempt hangs, or fails after some seconds."""

    def __init__(self, seconds: float, open_timeout: float = 30.0) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.open_timeout = open_timeout
        self.attempts: list[float] = []
        self.abandoned: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        # At least to the next number: a sum may be just short of what is waited for.
        self.now = max(round(self.now + seconds, 9), math.nextafter(self.now, math.inf))

    def opening(self, _id: str, _start: int, _level: int | None, seconds: float) -> "Attempt":
        self.attempts.append(self.now)
        return Attempt(self, min(seconds, self.open_timeout))


class Attempt:
    def __init__(self, hub: Hub, seconds: float) -> None:
        self._hub = hub
        self._fails_at = hub.now + hub.seconds
        self.began = hub.now
        self.deadline = hub.now + seconds

    def result(self, timeout: float) -> None:
        if self._fails_at <= self._hub.now + timeout:
            self._hub.pass_by(self._fails_at - self._hub.now)
            raise ConnectError("the hub is away")
        self._hub.pass_by(timeout)
        if self._hub.now >= self.deadline:
            raise ConnectError("no link was attached")

    def abandon(self) -> None:
        self._hub.abandoned.append(self._hub.now)


@pytest.fixture
def stream_to(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Opens a stream to such a hub, which waits out an outage of some seconds."""

    def opened(hub: Hub, seconds: float = 60.0, **limits: float) -> FastStream:
        clock = SimpleNamespace(monotonic=hub.monotonic, sleep=hub.pass_by, time=hub.monotonic)
        for module in (fast, outage):
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(outage, "random", SimpleNamespace(random=lambda: 1.0))
        source: object = hub
        waiting = Outage("partition 0 of ns/orders", seconds, **limits)  # type: ignore[arg-type]
        return FastStream(source, "0", 0, 9, ReadSettings(), waiting, Future)  # type: ignore[arg-type]

    return opened


def test_a_link_that_does_not_come_is_waited_for_as_long_as_asked(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=1e9)
    stream = stream_to(hub)
    for now in (0.3, 10.3, 10.3):
        assert stream.next(now - hub.now) is None
        assert hub.now == pytest.approx(now)
    assert (hub.attempts, hub.abandoned) == ([0.0], [])


def test_a_link_that_takes_too_long_is_given_up_and_asked_for_again(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=1e9, open_timeout=30.0)
    stream = stream_to(hub)
    with pytest.raises(ConnectError, match="no link was attached"):
        stream.next(1000)
    # The last one has what is left of 60 s.
    assert hub.attempts == pytest.approx([0.0, 30.1])
    assert hub.abandoned == pytest.approx([30.0, 60.0])


def test_an_outage_is_waited_out_as_long_as_it_may_last(stream_to, caplog) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=0.2)
    stream = stream_to(hub)
    while hub.now < 50:
        assert stream.next(5.0) is None
        assert stream.is_away
    with pytest.raises(ConnectError, match="the hub is away"):
        stream.next(60.0)
    pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    begins = [0.0]
    for wait in pauses:
        begins.append(round(begins[-1] + 0.2 + wait, 9))
    assert hub.attempts[: len(begins)] == pytest.approx(begins)
    assert 59.7 < hub.now < 60.3
    [said] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert said == (
        "partition 0 of ns/orders: no answer since 00:00:00 UTC; waiting for it, at most 60 s: the "
        "hub is away"
    )


def test_retries_of_the_caller_are_a_limit_too(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=0.2)
    with pytest.raises(ConnectError, match="the hub is away"):
        stream_to(hub, retry_total=2).next(60.0)
    assert hub.attempts == pytest.approx([0.0, 0.3, 0.7])


def test_an_error_that_was_the_last_comes_again_at_once(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=0.1)
    stream = stream_to(hub, retry_total=0)
    for _ in range(2):
        with pytest.raises(ConnectError):
            stream.next(60)
        assert hub.now == 0.1
    stream.close()
    assert stream.next(60) is None
    assert hub.now == 0.1
