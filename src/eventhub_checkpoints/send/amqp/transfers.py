"""Frames of a batch, and the hub's answer to it."""

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    Composite,
    Disposition,
    Rejected,
    Transfer,
    encode_delivery,
    from_described,
)
from eventhub_checkpoints.sdk.sender import NextDelivery

BATCH_FORMAT = 0x8001_3700
DISPOSITION = b"\x00\x53" + bytes([Disposition.descriptor])


def encode_transfers(payload: bytes, delivery: NextDelivery, max_frame_size: int) -> list[bytes]:
    """Return the frames of a batch.

    Args:
        payload: its encoded events.
        delivery: what identifies it.
        max_frame_size: the largest frame that the peer accepts, in bytes.
    """
    transfer = Transfer(
        handle=delivery.handle,
        delivery_id=delivery.delivery_id,
        delivery_tag=delivery.tag,
        message_format=BATCH_FORMAT,
        settled=False,
    )
    return encode_delivery(transfer, delivery.channel, payload, max_frame_size)


def read_answer(body: memoryview) -> Disposition | None:
    """Return the hub's answer to deliveries; None if the body of a frame is something else.

    Raises:
        CodecError: it cannot be read.
    """
    if bytes(body[:3]) != DISPOSITION:
        return None
    answer = from_described(decode(body)[0])
    if isinstance(answer, Disposition) and answer.settled and answer.role is RECEIVER:
        return answer
    return None


def read_refusal(outcome: Composite | None) -> tuple[str, str]:
    """Return condition and description of an outcome that is not `Accepted`."""
    if outcome is None:
        return "", "the hub has settled it without an outcome"
    if not isinstance(outcome, Rejected) or outcome.error is None:
        return "", f"the hub answered {type(outcome).__name__.lower()}"
    condition, description = str(outcome.error.condition), str(outcome.error.description or "")
    return condition, description or condition
