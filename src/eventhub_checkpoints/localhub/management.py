"""Responses of `$management` and `$cbs`.

Source: public traces of the service; azure-eventhub 5.15.1, `_client_base.py` and
`_pyamqp/cbs.py`, for the names and the exact types that clients look up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.amqp.messages import NO_VALUE, Message, Properties
from eventhub_checkpoints.amqp.types import Array, Int, Timestamp
from eventhub_checkpoints.localhub.conditions import RefusedError
from eventhub_checkpoints.localhub.tokens import TokenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.localhub.hubs import Hub, Hubs, PartitionLog

MANAGEMENT, CBS = "$management", "$cbs"

_HUB, _PARTITION = "com.microsoft:eventhub", "com.microsoft:partition"

_NEVER = Timestamp(-62_135_596_800_000)
"""Year 1: the last enqueued time of a partition that never had an event."""


def answer_token(request: Message, authorize: Callable[[object], None]) -> Message:
    """Answer a request to `$cbs`.

    Args:
        request: the request; its value is the token.
        authorize: raises `TokenError` unless the token is accepted.
    """
    fields = request.application_properties or {}
    if fields.get("operation") != "put-token":
        operation = quoted(fields.get("operation"))
        return _reply(request, 400, f"operation is {operation}; expected put-token")
    try:
        authorize(request.value)
    except TokenError as error:
        return _reply(request, 401, str(error), "amqp:unauthorized-access")
    return _reply(request, 202, "Accepted")


def answer(request: Message, hubs: Hubs) -> Message:
    """Answer a request; an invalid one gets a status of 400 or above, never an exception."""
    fields = request.application_properties or {}
    try:
        return _read(request, fields, hubs)
    except RefusedError as refusal:
        status = 404 if refusal.error.condition == "amqp:not-found" else 400
        return _reply(request, status, str(refusal.error.description), refusal.error.condition)


def _reply(
    request: Message, status: int, text: str, condition: str | None = None, value: Any = NO_VALUE
) -> Message:
    message_id = None if request.properties is None else request.properties.message_id
    properties = {"status-code": Int(status), "status-description": text}
    if condition is not None:
        properties["error-condition"] = condition
    return Message(
        properties=Properties(correlation_id=message_id),
        application_properties=properties,
        value=value,
    )


def _read(request: Message, fields: dict[str, Any], hubs: Hubs) -> Message:
    kind = fields.get("type")
    if fields.get("operation") != "READ" or kind not in (_HUB, _PARTITION):
        operation = quoted(fields.get("operation"))
        text = (
            f"operation is {operation} and type is {quoted(kind)}; expected READ, and {_HUB} or "
            f"{_PARTITION}"
        )
        return _reply(request, 400, text, "amqp:not-implemented")
    hub = hubs.find(str(fields.get("name", "")))
    if kind == _HUB:
        return _reply(request, 200, "OK", value=_about_hub(hub))
    partition_id = str(fields.get("partition", ""))
    return _reply(
        request, 200, "OK", value=_about_partition(hub, partition_id, hub.partition(partition_id))
    )


def _about_hub(hub: Hub) -> dict[str, Any]:
    return {
        "name": hub.name,
        "type": _HUB,
        "created_at": hub.created_at,
        "partition_count": Int(len(hub.partitions)),
        "partition_ids": Array(hub.partition_ids),
        # The number of regions that hold the hub's events. The client for Go insists on it.
        "georeplication_factor": Int(hub.regions),
    }


def _about_partition(hub: Hub, partition_id: str, log: PartitionLog) -> dict[str, Any]:
    return {
        "name": hub.name,
        "type": _PARTITION,
        "partition": partition_id,
        "begin_sequence_number": log.first,
        "last_enqueued_sequence_number": log.end - 1,
        "last_enqueued_offset": log.last_offset,
        "last_enqueued_time_utc": Timestamp(log.last_time) if log.end else _NEVER,
        "is_partition_empty": log.first == log.end,
    }
