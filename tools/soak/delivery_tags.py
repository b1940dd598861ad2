"""Keeps azure-eventhub from remembering the delivery tag of every event that it receives.

`docs/explanation/performance.md` explains why, and shows this code to users.
"""

from azure.eventhub._pyamqp.aio._receiver_async import ReceiverLink as AioReceiverLink
from azure.eventhub._pyamqp.receiver import ReceiverLink


class NoTags(set[bytes]):
    """Set of delivery tags that stays empty."""

    def add(self, tag: bytes) -> None:
        """Forget the tag: settling an event would need it, and never happens."""


def forget_delivery_tags() -> None:
    """Have the links of azure-eventhub remember no tags; call it before receiving."""
    no_tags, name = NoTags(), "_received_delivery_tags"
    for link in (ReceiverLink, AioReceiverLink):
        setattr(link, name, property(lambda self: no_tags, lambda self, value: None))
