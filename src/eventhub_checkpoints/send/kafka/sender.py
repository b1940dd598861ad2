"""Rows of a hub or topic over Kafka, with librdkafka's producer."""

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.receive.kafka.client import ENDPOINT, ClientErrors, unusable_setting
from eventhub_checkpoints.send.events import EventRows, PropertyMaps, PropertyValue
from eventhub_checkpoints.send.sender import Sender
from eventhub_checkpoints.send.settings import SendSettings

PRODUCER: Mapping[str, str] = {
    # A repeated request is stored once and in order, as long as the producer lives. The options of
    # the sink refuse another value.
    "enable.idempotence": "true",
    # As Kafka's Java client, and so Spark's Kafka sink, assigns keys.
    "partitioner": "murmur2_random",
    "linger.ms": "20",
    "log_level": "0",
}
"""Settings that a job may override."""

POLL_SECONDS = 0.1
REFUSED = (
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._AUTHENTICATION,
)
"""Errors that a repetition would meet again."""


class KafkaSender(Sender):
    """Sends rows to a topic; connects with the first row.

    librdkafka's idempotent producer retries and keeps the order of each partition.

    Args:
        address: the topic.
        settings: how to send; `send_path` has no meaning here.

    Raises:
        ConfigurationError: librdkafka does not accept a setting.
    """

    def __init__(self, address: KafkaAddress, settings: SendSettings) -> None:
        self._address = address
        self._timeout = settings.operation_timeout
        self._accepted = self._in_doubt = 0
        self._failure: KafkaError | None = None
        whole: dict[str, Any] = {
            **PRODUCER,
            "batch.size": str(settings.bytes_per_batch),
            "message.timeout.ms": str(int(1000 * settings.operation_timeout)),
            **address.client_settings(),
        }
        secrets = (value for name, value in whole.items() if "password" in name)
        self._errors = ClientErrors(str(address), secrets, right="send")
        whole["error_cb"] = self._errors
        if tokens := address.tokens():
            whole["oauth_cb"] = tokens
        try:
            self._producer = Producer(whole)
        except KafkaException as error:
            # Not chained: the message may contain a value.
            refused = unusable_setting(error)
        else:
            return
        raise refused

    @property
    def accepted(self) -> int:
        return self._accepted

    @property
    def is_usable(self) -> bool:
        return self._failure is None

    def send(self, rows: EventRows) -> None:
        if rows.content_types is not None:
            raise ConfigurationError(
                "a row has a contentType, which Kafka's records do not have; put it into "
                "properties, or use transport=amqp"
            )
        count = len(rows)
        keys = rows.partition_keys or [None] * count
        ids = rows.partition_ids or [None] * count
        headers = headers_of(rows.properties, count)
        for row, (body, key, partition_id, row_headers) in enumerate(
            zip(rows.bodies, keys, ids, headers, strict=True)
        ):
            self._produce(
                row,
                value=body,
                key=None if key is None else key.encode(),
                partition=-1 if partition_id is None else int(partition_id),
                headers=row_headers,
            )
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        deadline = time.monotonic() + self._timeout
        while self._producer.flush(POLL_SECONDS):
            self._check()
            if time.monotonic() >= deadline:
                raise HubUnavailableError(
                    f"{self._address} did not confirm all events over Kafka within "
                    f"{self._timeout:g} s{self._errors.reason}. {ENDPOINT}"
                )
        self._check()

    def give_up(self, seconds: float) -> int:
        self._producer.purge(in_queue=True, in_flight=False)
        self._producer.flush(seconds)
        return self._in_doubt + len(self._producer)

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(POLL_SECONDS)

    def _produce(self, row: int, **record: Any) -> None:
        while True:
            try:
                self._producer.produce(
                    self._address.eventhub_name, on_delivery=self._delivered, **record
                )
            except BufferError:
                # The queue is full: wait for the servers. A record that waits too long fails.
                self._producer.poll(POLL_SECONDS)
                self._check()
            except KafkaException as error:
                self._failure = error.args[0]
                self._check(f"row {row} of a batch")
            else:
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        del message
        if error is None:
            self._accepted += 1
            return
        if error.code() not in (*REFUSED, KafkaError._PURGE_QUEUE):
            self._in_doubt += 1
        if self._failure is None:
            self._failure = error

    def _check(self, what: str = "an event") -> None:
        """Raise what the client or the servers have refused, or not confirmed in time."""
        self._errors.raise_denied()
        if self._failure is None:
            return
        sentence = f"{self._address} did not accept {what} over Kafka: {self._failure.str()}"
        if self._failure.code() in REFUSED:
            raise ConfigurationError(sentence)
        raise HubUnavailableError(f"{sentence}{self._errors.reason}. {ENDPOINT}")


Headers = list[tuple[str, bytes | None]] | None


def headers_of(maps: PropertyMaps | None, count: int) -> list[Headers]:
    """Return the headers of each row: its properties as UTF-8, times in milliseconds."""
    if maps is None:
        return [None] * count
    keys = [key.decode() if isinstance(key, bytes) else key for key in maps.keys]
    values = [encoded(value) for value in maps.values]
    pairs = list(zip(keys, values, strict=True))
    return [pairs[begin:end] or None for begin, end in pairwise(maps.ends)]


def encoded(value: PropertyValue | None) -> bytes | None:
    """Return a value as UTF-8: a time as its number, as it is read from a hub."""
    return value if value is None or isinstance(value, bytes) else str(value).encode()
