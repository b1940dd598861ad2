"""Threads in which clients receive, and close their links after their readers have gone on."""

import threading

from waiting import LIMIT

NAMES = ("read-batches", "consume-batches", "partition-", "receive-", "_load_balancing")


def wait_for_clients() -> None:
    """Wait for the threads of readers and clients to end, before their hub does.

    A client that notices a broken connection while it closes a link leaves its socket to the
    collector.

    Source: azure-eventhub 5.15.1, `_pyamqp/_connection.py`, `close`: an error sets the state in
    which `_disconnect` does nothing.
    """
    for thread in threading.enumerate():
        if any(name in thread.name for name in NAMES):
            thread.join(LIMIT)
