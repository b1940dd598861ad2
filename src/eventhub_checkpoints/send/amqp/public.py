"""Public path: the official client's own batches, one after another."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from azure.eventhub import EventDataBatch, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventhub_checkpoints._shared.client import Failure, failure_of
from eventhub_checkpoints.amqp.messages import decode_message, split_batch
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.send.amqp.outlet import Outlet
from eventhub_checkpoints.send.filling import Batch


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

    @property
    def limit(self) -> int:
        if self._limit is None:
            batch = self._outage.wait_out(self._client.create_batch)
            self._limit = batch.max_size_in_bytes
        return self._limit

    def put(self, batch: Batch) -> None:
        for part in self._parts(batch):
            try:
                self._outage.wait_out(partial(self._client.send_batch, part))
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
        with suppress(Exception):
            self._client.close()

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
        "application_properties": message.application_properties,
    }
    if message.properties is not None:
        # The client refuses None for properties, and calls its class with these itself.
        sections["properties"] = {"content_type": message.properties.content_type}
    return AmqpAnnotatedMessage(**sections)
