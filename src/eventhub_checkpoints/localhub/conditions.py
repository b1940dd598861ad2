"""Error conditions of the service, with their descriptions.

Source: public traces of the service, and the descriptions quoted in its SDKs' issue trackers.
"""

from __future__ import annotations

from eventhub_checkpoints._shared.partition_keys import LONGEST_KEY
from eventhub_checkpoints.amqp.performatives import Error


class RefusedError(Exception):
    """The hub answers a request with an error condition instead of serving it."""

    def __init__(self, error: Error) -> None:
        super().__init__(f"{error.condition}: {error.description}")
        self.error = error


def not_found(entity: str) -> Error:
    """Return the error for a hub, consumer group or address that does not exist."""
    return Error(
        condition="amqp:not-found",
        description=f"The messaging entity '{entity}' could not be found.",
    )


def bad_partition(count: int) -> Error:
    """Return the error for a partition that does not exist."""
    return Error(
        condition="com.microsoft:argument-out-of-range",
        description=(
            "The specified partition is invalid for an EventHub partition sender or receiver. "
            f"It should be between 0 and {count - 1}."
        ),
    )


def bad_offset(offset: str, last: str) -> Error:
    """Return the error for an offset past the end, such as a checkpoint of a re-created hub."""
    return Error(
        condition="com.microsoft:argument-error",
        description=(
            f"The supplied offset '{offset}' is invalid. The last offset in the system is '{last}'"
        ),
    )


def foreign_offset(offset: str, last: str) -> Error:
    """Return the error for an offset from before the hub was geo-replicated."""
    return Error(
        condition="com.microsoft:georeplication:invalid-offset",
        description=(
            f"The supplied offset '{offset}' is not an offset of a namespace with "
            f"geo-replication. The last offset in the system is '{last}'"
        ),
    )


def bad_key(length: int) -> Error:
    """Return the error for a partition key that is too long; the service's own is not known."""
    return Error(
        condition="com.microsoft:argument-out-of-range",
        description=(
            f"The partition key has {length} characters; the longest may have {LONGEST_KEY}."
        ),
    )


def bad_sequence_number(number: int, last: int) -> Error:
    """Return the error for a sequence number past the end."""
    return Error(
        condition="com.microsoft:argument-error",
        description=(
            f"The supplied sequence number '{number}' is invalid. "
            f"The last sequence number in the system is '{last}'"
        ),
    )


def bad_filter(text: str) -> Error:
    """Return the error for a filter that is not a starting position."""
    return Error(
        condition="amqp:invalid-field",
        description=f"The filter '{text}' is not a starting position of an event hub's receiver.",
    )


def too_many_readers(limit: int, names: list[str]) -> Error:
    """Return the error for a reader without an epoch that exceeds the limit."""
    return Error(
        condition="amqp:resource-limit-exceeded",
        description=(
            "Exceeded the maximum number of allowed receivers per partition in a consumer group "
            f"which is {limit}. List of connected receivers - {', '.join(names)}."
        ),
    )


def higher_epoch_exists(theirs: int, ours: int | None) -> Error:
    """Return the error for a new reader that may not displace the present one."""
    return Error(
        condition="amqp:link:stolen",
        description=(
            f"Receiver 'nil' with a higher epoch '{theirs}' already exists. Receiver 'nil' with "
            f"epoch {'nil' if ours is None else ours} cannot be created. Make sure you are "
            "creating receiver with increasing epoch value to ensure connectivity, or ensure all "
            "old epoch receivers are closed or disconnected."
        ),
    )


def displaced(theirs: int, ours: int | None) -> Error:
    """Return the error for a reader that a new one displaces."""
    return Error(
        condition="amqp:link:stolen",
        description=(
            f"New receiver 'nil' with higher epoch of '{theirs}' is created hence current "
            f"receiver 'nil' with epoch '{'nil' if ours is None else ours}' is getting "
            "disconnected. If you are recreating the receiver, make sure a higher epoch is used."
        ),
    )


def too_large(limit: int) -> Error:
    """Return the error for a message over the limit. Units: bytes."""
    return Error(
        condition="amqp:link:message-size-exceeded",
        description=f"The received message exceeds the maximum size of {limit} bytes.",
    )


def idle(seconds: float) -> Error:
    """Return the error for a connection that was silent for too long."""
    return Error(
        condition="amqp:connection:forced",
        description=(
            f"The connection was inactive for more than the allowed {int(seconds * 1000)} "
            "milliseconds and is closed by the local hub."
        ),
    )


def unauthorized(address: object) -> Error:
    """Return the error for a link on a connection without a valid token."""
    return Error(
        condition="amqp:unauthorized-access",
        description=(
            "Unauthorized access. 'Listen' or 'Send' claim(s) are required to perform this "
            f"operation. Resource: '{address}'."
        ),
    )


def token_expired(link: str) -> Error:
    """Return the error for a link whose connection's token has expired."""
    return Error(
        condition="amqp:link:detach-forced",
        description=(
            f"The link '{link}' is force detached. Code: RenewToken. Details: Unauthorized "
            "access. 'Listen' or 'Send' claim(s) are required to perform this operation."
        ),
    )


def invalid(text: str) -> Error:
    """Return the error for bytes or a sequence of frames that AMQP does not allow."""
    return Error(condition="amqp:decode-error", description=text)
