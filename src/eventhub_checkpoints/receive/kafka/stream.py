"""Stream of the records of one partition of a topic, fetched by librdkafka."""

import time

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.kafka.messages import HeaderReader, columns_of
from eventhub_checkpoints.receive.kafka.troubles import MISSING, OUT_OF_RANGE, Troubles
from eventhub_checkpoints.receive.stream import Stream

MESSAGES_AT_ONCE = 500
"""Few enough to be still in the processor's cache when they become columns: with ten times as
many, a record costs half as much again."""

LOOK_EVERY = 1.0
"""Interval (s) at which a stream that gets nothing checks whether it was refused."""

END_PATIENCE = 2.0
"""Seconds for which a partition that ends too early is watched: after a change of its leader the
reported end may be too low for a moment."""


class KafkaStream(Stream):
    """Records from one offset on.

    The partition is assigned manually: no group is joined, and nothing is committed to Kafka. A
    position that the topic does not have ends the stream at once; the reader then finds out why.

    Bound: `queued.max.messages.kbytes` in librdkafka, one server response in transit
    (`fetch.message.max.bytes`), and as much again being converted, at most `MESSAGES_AT_ONCE`
    records.

    Args:
        consumer: closed with the stream.
        troubles: receives that consumer's errors.
        reader: of headers.
        where: the partition, and its first offset.
    """

    def __init__(
        self, consumer: Consumer, troubles: Troubles, reader: HeaderReader, where: TopicPartition
    ) -> None:
        self._consumer = consumer
        self._troubles = troubles
        self._headers = reader
        self._over = float("inf")
        self._reached = where.offset
        consumer.assign([where])

    @property
    def reached(self) -> int:
        return self._reached

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._over

    def next(self, timeout: float) -> Columns | None:
        deadline = time.monotonic() + timeout
        while (left := min(deadline, self._over) - time.monotonic()) > 0:
            first = self._consumer.poll(min(left, LOOK_EVERY))
            self._troubles.raise_denied()
            if first is not None:
                # Available messages only: with a timeout, it would wait to collect all of them.
                rest = self._consumer.consume(MESSAGES_AT_ONCE - 1, 0)
                before = self._reached
                records = self._records([first, *rest])
                if self._reached > before:
                    return columns_of(records, self._headers)
        return None

    def close(self) -> None:
        self._consumer.close()

    def _records(self, messages: list[Message]) -> list[Message]:
        """Return the records among the messages; the others are events of the partition."""
        records = [one for one in messages if one.error() is None]
        if records:
            self._reach((records[-1].offset() or 0) + 1)
        if len(records) < len(messages):
            for one in messages:
                if (error := one.error()) is not None:
                    self._notice(error, one.offset() or 0)
        return records

    def _notice(self, error: KafkaError, offset: int) -> None:
        """Handle an error message that may be the end of the stream.

        At the end of a partition the offset is that end: behind the last record there may be
        transaction markers, and offsets of aborted or compacted records. librdkafka recovers from
        all other errors; group errors do not matter, as the group is not used.
        """
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self._reach(offset)
            self._over = time.monotonic() + END_PATIENCE
        elif code in OUT_OF_RANGE | MISSING:
            self._over = time.monotonic()
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED:
            self._troubles.raise_if_final(error)

    def _reach(self, offset: int) -> None:
        if offset > self._reached:
            self._reached, self._over = offset, float("inf")
