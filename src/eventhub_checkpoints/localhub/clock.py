"""Clock of the hub."""

import time

from eventhub_checkpoints.amqp.types import Timestamp


def now() -> Timestamp:
    """Return the host's time."""
    return Timestamp(time.time_ns() // 1_000_000)
