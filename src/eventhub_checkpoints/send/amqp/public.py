"""Public path: the official client's own batches, one after another."""

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from azure.eventhub import EventDataBatch, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from azure.eventhub.exceptions import OperationTimeoutError

from eventhub_checkpoints._shared.client import Failure, failure_of
from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.amqp.messages import decode_message, split_batch
from eventhub_checkpoints.amqp.types import Timestamp
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.send.amqp.outlet import Outlet
from eventhub_checkpoints.send.filling import Batch

LEAST_SECONDS = 5.0
"""Limit of the last attempt: the client waits for 0.8 s before it reports an error."""

T = TypeVar("T")


class PublicOutlet(Outlet):
    """Sends each batch with the client's public API and waits for its answer.

    Args:
        client: closed with the outlet; it does not retry.
        outage: for how long a batch that is not confirmed is sent again.
    """

    def __init__(self, client: EventHubProducerClient, outage: Outage) -> None:
        self.accepted = 0
        self._client, self._outage = client, outage
        self._limit: int | None = None
        self._in_doubt = 0
        self._is_hung = False

    @property
    def limit(self) -> int:
        if self._limit is None:
            batch = self._outage.wait_out(partial(self._in_time, self._client.create_batch))
            self._limit = batch.max_size_in_bytes
        return self._limit

    def put(self, batch: Batch) -> None:
        for part in self._parts(batch):
            try:
                send = partial(self._client.send_batch, part)
                self._outage.wait_out(partial(self._in_time, send))
            except Exception as error:
                is_refused = failure_of(error) is Failure.REFUSED
                self._in_doubt = 0 if is_refused else len(part)
                raise
            self.accepted += len(part)

    def flush(self) -> None:
        pass  # nothing waits: `put` returns with the answer

    def give_up(self, seconds: float) -> int:
        del seconds  # the client has waited
        return self._in_doubt

    def close(self) -> None:
        if self._is_hung:
            return  # the client would wait for the call that hangs
        with suppress(Exception):
            self._client.close()

    def _in_time(self, call: Callable[[], T]) -> T:
        """Call the client, which waits without a limit for a hub that says nothing.

        A call that hangs for longer than an outage may last is abandoned, and never repeated.

        Raises:
            OperationTimeoutError: there was no answer in time.
        """
        answer = in_daemon_thread(call)
        seconds = max(self._outage.seconds_left, LEAST_SECONDS)
        if not wait([answer], seconds).done:
            self._is_hung = True
            raise OperationTimeoutError(f"no answer within {seconds:.0f} s")
        return answer.result()

    def _parts(self, batch: Batch) -> Iterator[EventDataBatch]:
        """Yield batches of the client, more than one if its encoding takes more room."""
        part = self._client.create_batch(partition_id=batch.partition_id)
        for message in map(public_message, split_batch(b"".join(batch.sections))):
            try:
                part.add(message)
            except ValueError:
                if not len(part):
                    raise
                yield part
                part = self._client.create_batch(partition_id=batch.partition_id)
                part.add(message)
        yield part


def public_message(encoded: bytes) -> AmqpAnnotatedMessage:
    """Return the client's message of an encoded one."""
    message = decode_message(encoded)
    sections: dict[str, Any] = {
        "data_body": message.data,
        "annotations": message.message_annotations,
        "application_properties": {
            name: public_value(value)
            for name, value in (message.application_properties or {}).items()
        },
    }
    if message.properties is not None:
        # The client refuses None for properties, and calls its class with these itself.
        sections["properties"] = {"content_type": message.properties.content_type}
    return AmqpAnnotatedMessage(**sections)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def public_value(value: Any) -> Any:
    """Return the value of a property as the client encodes it with the same type.

    Raises:
        ConfigurationError: it is a time that Python does not have.
    """
    if not isinstance(value, Timestamp):
        return value
    try:
        return EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        raise ConfigurationError(
            f"a property is the time {int(value)}, in milliseconds since 1970, which is not in the "
            "years 1 to 9999 of the client's public API; use sendPath=fast, or send a string"
        ) from None
