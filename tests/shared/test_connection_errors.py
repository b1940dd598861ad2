"""Why a server could not be reached, by the error of any driver."""

import socket

import pytest

from eventhub_checkpoints._shared.connection_errors import innermost, why_unreached

UNRESOLVED = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
REFUSED = ConnectionRefusedError(111, "Connection refused")


class DriverError(Exception):
    """Keeps the error that it is about in one of its own attributes."""

    def __init__(self, said: str, **attributes: object) -> None:
        super().__init__(said)
        vars(self).update(attributes)


def caused(cause: Exception) -> Exception:
    error = OSError("outer")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UNRESOLVED, "cannot be resolved"),
        (REFUSED, "refused"),
        (caused(REFUSED), "refused"),
        (DriverError("x", reason=caused(UNRESOLVED)), "cannot be resolved"),
        (DriverError("x", inner_exception=DriverError("y", reason=REFUSED)), "refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1)"), "refused"),
        (DriverError("Error 111 connecting to h:1. Connect call failed ('h', 1)."), "refused"),
        (DriverError("failed to resolve host 'h': [Errno -3] ..."), "cannot be resolved"),
    ],
)
def test_the_reason_is_found(error: Exception, said: str) -> None:
    assert said in (why_unreached(error) or "")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(104, "reset"),
        TimeoutError(),
        DriverError("Errno 1111]"),
        DriverError("connection to server at port 10061 failed: the server closed it"),
    ],
)
def test_any_other_error_has_no_such_reason(error: Exception) -> None:
    assert why_unreached(error) is None


def test_what_the_caller_was_handling_is_not_the_reason() -> None:
    error = ConnectionResetError(104, "reset")
    error.__context__ = REFUSED
    assert why_unreached(error) is None


def test_errors_in_a_circle_come_to_an_end() -> None:
    first, second = DriverError("a"), DriverError("b")
    first.__cause__, second.__cause__ = second, first
    assert why_unreached(first) is None
    assert innermost(first) is second
