"""A hub that events are published to, and signatures for it that expire soon."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from azure.eventhub._pyamqp.utils import generate_sas_token

from eventhub_checkpoints.localhub import LocalHub

LIFETIME, LONG = 2, 600
"""Seconds for which a signature is valid: one that is replaced, and the last one."""
BETWEEN = 0.01
"""Seconds between two events."""


@contextmanager
def load(hub: LocalHub, already: int = 0) -> Iterator[Callable[[], int]]:
    """Publish events one by one while the block runs; gives how many there are.

    Args:
        hub: with a hub `orders`.
        already: events that its partition 0 has.
    """
    ended, published = threading.Event(), [already]

    def publish() -> None:
        while not ended.wait(BETWEEN):
            published[0] = hub.publish("orders", "0", ["event"]).stop

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield lambda: published[0]
    finally:
        ended.set()
        thread.join()


def signature(hub: LocalHub, key: str, lifetime: int = LIFETIME) -> str:
    """Sign for the hub `orders` of the namespace that `client_arguments` passes."""
    expiry = int(time.time()) + lifetime
    return str(generate_sas_token(f"sb://{hub.namespace}/orders", "policy", key, expiry))  # type: ignore[no-untyped-call]
