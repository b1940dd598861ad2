"""What is worth waiting for, for how long, and what the log says of it, on a simulated clock."""

from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.eventhub._pyamqp import error as amqp
from azure.eventhub._transport._pyamqp_transport import PyamqpTransport
from azure.eventhub.exceptions import ConnectError, EventHubError

from eventhub_checkpoints import ConfigurationError, HubUnavailableError, Scope
from eventhub_checkpoints._shared.client import Failure, explanation, failure_of
from eventhub_checkpoints.errors import InvalidCheckpointError
from eventhub_checkpoints.receive.amqp import outage
from eventhub_checkpoints.receive.amqp.outage import Outage

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def public(error: Exception) -> EventHubError:
    """The error that the client makes of an internal one."""
    return PyamqpTransport._create_eventhub_exception(error)  # type: ignore[no-any-return]


def connection(condition: amqp.ErrorCondition, said: str) -> EventHubError:
    return public(amqp.AMQPConnectionError(condition, description=said))


def link(condition: bytes, said: str = "refused") -> EventHubError:
    return public(amqp.AMQPLinkError(condition, description=said))


def token(status: int | None, said: str = "no") -> EventHubError:
    return public(amqp.TokenAuthFailure(status, said))


def authentication(condition: amqp.ErrorCondition, said: str) -> EventHubError:
    return public(amqp.AuthenticationException(condition, description=said))


def of_credential(*, answered: bool) -> EventHubError:
    error = EventHubError("no token")
    cause = ClientAuthenticationError("invalid_client")
    cause.response = SimpleNamespace() if answered else None  # type: ignore[assignment]
    error.__cause__ = cause
    return error


SOCKET = amqp.ErrorCondition.SocketError
CLIENT, INTERNAL = amqp.ErrorCondition.ClientError, amqp.ErrorCondition.InternalError
NO_PROXY = (
    "Failed to authenticate the connection due to exception: [Errno -2] Name or service not known"
)
NOT_TRUSTED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"

REFUSALS = [
    (token(401), ConfigurationError, "wrong key"),
    (token(None), ConfigurationError, "wrong key"),
    (token(404), ConfigurationError, "has no event hub 'orders'"),
    (link(b"amqp:unauthorized-access"), ConfigurationError, "wrong key"),
    (link(b"amqp:not-found"), ConfigurationError, "has no event hub 'orders'"),
    (connection(SOCKET, NOT_TRUSTED), ConfigurationError, "its certificate is not trusted"),
    (connection(SOCKET, "via proxy status: 407"), ConfigurationError, "the HTTP proxy on the way"),
    (of_credential(answered=True), ConfigurationError, "the credential gets no token for ns"),
]
AWAY = [
    (connection(SOCKET, "[Errno 111] Connection refused"), "cannot be reached: the connection was"),
    (connection(SOCKET, "[Errno -2] Name or service not known"), "name cannot be resolved"),
    (connection(SOCKET, "[SSL: WRONG_VERSION_NUMBER] wrong version"), "cannot be reached"),
    (authentication(CLIENT, NO_PROXY), "with httpProxy, check the name of the proxy"),
    (authentication(INTERNAL, "Authorization timeout."), "did not answer"),
    (authentication(INTERNAL, "CBS Authentication Expired."), "did not answer"),
    (token(500, "busy"), "did not answer"),
    (token(429, "busy"), "did not answer"),
    (public(TimeoutError("Authentication attempt timed-out.")), "did not answer"),
    (link(b"com.microsoft:server-busy"), "did not answer"),
    (of_credential(answered=False), "did not answer"),
]


@pytest.mark.parametrize(("error", "kind", "said"), REFUSALS)
def test_a_refusal_is_final_and_says_what_to_do(
    error: EventHubError, kind: type[Exception], said: str
) -> None:
    assert failure_of(error) is Failure.REFUSED
    explained = explanation(error, SCOPE)
    assert type(explained) is kind
    assert said in str(explained)


@pytest.mark.parametrize(("error", "said"), AWAY)
def test_a_failure_to_connect_is_never_one_of_the_key(error: EventHubError, said: str) -> None:
    assert failure_of(error) is not Failure.REFUSED
    explained = explanation(error, SCOPE)
    assert type(explained) is HubUnavailableError
    assert said in str(explained)
    assert "wrong key" not in str(explained)


@pytest.mark.parametrize(
    "condition", [b"com.microsoft:argument-error", b"com.microsoft:georeplication:invalid-offset"]
)
def test_a_position_that_the_hub_refuses_is_one(condition: bytes) -> None:
    error = link(condition, "the supplied offset is invalid")
    assert failure_of(error) is Failure.REFUSED
    explained = explanation(error, SCOPE, "3")
    assert isinstance(explained, InvalidCheckpointError)
    assert "no such position in partition '3': the supplied offset is invalid" in str(explained)


def test_certificates_that_are_no_file_are_final() -> None:
    assert failure_of(FileNotFoundError(2, "no file", "ca_certs.pem")) is Failure.REFUSED


class Clock:
    """A clock that stands still unless somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic

    def pass_by(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 9)

    sleep = pass_by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(outage, "time", clock)
    monkeypatch.setattr(outage, "random", SimpleNamespace(random=lambda: 1.0))
    return clock


REFUSED = connection(SOCKET, "[Errno 111] Connection refused")
BUSY = ConnectError("busy")


class Server:
    """Answers from a time on; an attempt takes 0.1 s."""

    def __init__(self, clock: Clock, there_at: float, error: Exception = REFUSED) -> None:
        self._clock, self._there_at, self._error = clock, there_at, error
        self.asked: list[float] = []

    def ask(self) -> str:
        self.asked.append(self._clock.now)
        self._clock.pass_by(0.1)
        if self._clock.now < self._there_at:
            raise self._error
        return "answer"


def test_an_outage_is_waited_out_and_said_once(clock: Clock, caplog: Any) -> None:
    caplog.set_level("INFO")
    clock.now = 3600.0
    server = Server(clock, there_at=3612.0)
    waiting = Outage("ns/orders", 60.0)
    assert waiting.wait_out(server.ask) == "answer"
    assert not waiting.is_on
    assert [each.getMessage() for each in caplog.records] == [
        "ns/orders: no answer since 01:00:00 UTC; waiting for it, at most 60 s: [Errno 111] "
        "Connection refused",
        "ns/orders: answers again after 13.0 s",
    ]
    assert waiting.wait_out(server.ask) == "answer"
    assert len(caplog.records) == 2


def test_an_outage_that_stays_ends_before_its_limit(clock: Clock) -> None:
    server = Server(clock, there_at=1e9)
    waiting = Outage("ns/orders", 60.0)
    with pytest.raises(EventHubError):
        waiting.wait_out(server.ask)
    assert 59.8 < clock.now < 60.1


def test_a_refused_connection_has_a_limit_of_its_own(clock: Clock) -> None:
    for error, least, most in (
        (REFUSED, 4.8, 5.1),
        (connection(SOCKET, "[Errno 104] Connection reset by peer"), 59.8, 60.1),
        (BUSY, 59.8, 60.1),
    ):
        clock.now = 0.0
        with pytest.raises(EventHubError):
            Outage("ns/orders", 60.0, unreachable_timeout=5.0).wait_out(
                Server(clock, 1e9, error).ask
            )
        assert least < clock.now < most


def test_a_refusal_is_not_waited_out(clock: Clock, caplog: Any) -> None:
    server = Server(clock, 1e9, token(401))
    with pytest.raises(EventHubError):
        Outage("ns/orders", 60.0).wait_out(server.ask)
    assert (server.asked, caplog.records) == ([0.0], [])


def test_an_attempt_that_hangs_is_a_part_of_the_outage(clock: Clock) -> None:
    waiting = Outage("ns/orders", 60.0)
    clock.now = 30.0
    assert waiting.pause(BUSY, began=0.0) == 0.1
    assert waiting.seconds_left == 30.0
    clock.now = 59.9
    assert waiting.pause(BUSY, began=30.1) is None
    waiting.end()
    assert waiting.seconds_left == 60.0


def test_failures_in_a_row_may_be_limited(clock: Clock) -> None:
    waiting = Outage("ns/orders", 60.0, retry_total=2)
    for _ in range(2):
        assert [waiting.pause(BUSY) is None for _ in range(3)] == [False, False, True]
        waiting.end()


def test_other_errors_are_not_repeated(clock: Clock) -> None:
    server = Server(clock, 1e9, ConfigurationError("a mistake"))
    with pytest.raises(ConfigurationError):
        Outage("ns/orders", 60.0).wait_out(server.ask)
    assert server.asked == [0.0]
