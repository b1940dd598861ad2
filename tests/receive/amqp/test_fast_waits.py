"""How long the fast path waits, on a clock of the test's own: for a link, and between attempts."""

from types import SimpleNamespace

import pytest
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.receive import ReadSettings
from eventhub_checkpoints.receive.amqp import fast
from eventhub_checkpoints.receive.amqp.fast import FastStream, Retries


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
        self.now = round(self.now + seconds, 9)

    def opening(self, *_: object) -> "Attempt":
        self.attempts.append(self.now)
        return Attempt(self)


class Attempt:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._fails_at = hub.now + hub.seconds
        self.deadline = hub.now + hub.open_timeout

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
    """Opens a stream to such a hub, with settings of the client."""

    def opened(hub: Hub, **settings: float) -> FastStream:
        monkeypatch.setattr(
            fast, "time", SimpleNamespace(monotonic=hub.monotonic, sleep=hub.pass_by)
        )
        source: object = hub
        return FastStream(source, "0", 0, 9, ReadSettings(), Retries(settings))  # type: ignore[arg-type]

    return opened


def test_a_link_that_does_not_come_is_waited_for_as_long_as_asked(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=1e9)
    stream = stream_to(hub)
    for now in (0.3, 10.3, 10.3):
        assert stream.next(now - hub.now) is None
        assert hub.now == now
    assert (hub.attempts, hub.abandoned) == ([0.0], [])


def test_a_link_that_takes_too_long_is_given_up_and_asked_for_again(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=1e9, open_timeout=30.0)
    stream = stream_to(hub, retry_total=2, retry_backoff_factor=5.0)
    with pytest.raises(ConnectError, match="no link was attached"):
        stream.next(1000)
    assert hub.attempts == [0.0, 35.0, 75.0]
    assert hub.abandoned == [30.0, 65.0, 105.0]
    assert hub.now == 105.0


def test_attempts_have_the_pauses_of_the_client_however_often_it_is_asked(stream_to) -> None:  # type: ignore[no-untyped-def]
    hub = Hub(seconds=0.2)
    stream = stream_to(hub)
    for now in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        assert stream.next(1.0) is None
        assert hub.now == now
    with pytest.raises(ConnectError, match="the hub is away"):
        stream.next(1.0)
    # Pauses of 0.8, 1.6 and 3.2 s behind attempts of 0.2 s.
    assert hub.attempts == [0.0, 1.0, 2.8, 6.2]
    assert hub.now == 6.4


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
