"""Source of events that is a partition of an azure-eventhub client."""

import weakref
from typing import Any

from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.compat import caller, is_over
from eventhub_checkpoints.processing._async.receive_loop import ONE_THREAD
from eventhub_checkpoints.processing.source import Source
from eventhub_checkpoints.sdk.consumer import (
    LinkAttempt,
    client_of,
    has_ended,
    link_attempt,
    newest_known,
    number_received,
)
from eventhub_checkpoints.sdk.stack import calling_loop, running_handler


def no_loop() -> None:
    """Return None, like a weak reference to a client's loop that no longer exists."""


class ClientSource:
    """Partition of a client; see `Source`.

    Args:
        context: the client's context of the partition.
        opens: whether the client is opening the partition at this moment, so that its loop is on
            the call stack. Otherwise only what `context` shows is known.
    """

    shares_thread = ONE_THREAD

    def __init__(self, context: PartitionContext, *, opens: bool = False) -> None:
        self._context = context
        loop = calling_loop() if opens else None
        # A client that nobody else refers to must not live on as a part of its sessions.
        self._loop: Any = no_loop if loop is None else weakref.ref(loop)
        self._task = None if loop is None else caller()

    @property
    def client(self) -> Any:
        return client_of(self._loop())

    @property
    def reached(self) -> int | None:
        return number_received(self._context)

    @property
    def newest(self) -> int | None:
        return newest_known(self._context)

    @property
    def attempt(self) -> LinkAttempt | None:
        return link_attempt(self._loop(), self._context.partition_id)

    @property
    def is_lost(self) -> bool:
        return is_over(self._task)

    @property
    def is_drained(self) -> bool:
        # A synchronous client that is closed waits for its handlers first.
        return has_ended(self._loop())

    def handler(self) -> str | None:
        return running_handler(self._context, in_threads=ONE_THREAD)


def source_of(context: PartitionContext, *, opens: bool = False) -> Source:
    """Return the source of a context: its own, or that of an official client.

    Args:
        context: the client's context of the partition.
        opens: see `ClientSource`.
    """
    own: Source | None = getattr(context, "source", None)
    return ClientSource(context, opens=opens) if own is None else own
