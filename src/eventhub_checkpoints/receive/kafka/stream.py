"""The records of one partition of a topic, fetched by librdkafka."""

import time

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.kafka.messages import HeaderReader, columns_of
from eventhub_checkpoints.receive.kafka.troubles import MISSING, OUT_OF_RANGE, Troubles
from eventhub_checkpoints.receive.stream import Stream

MESSAGES_AT_ONCE = 500
"""Few enough to be still in the processor's cache when they become columns: with ten times as
many a record costs half as much again."""

LOOK_EVERY = 1.0
"""How often (s) a stream that gets nothing looks whether it was refused."""

END_PATIENCE = 2.0
"""Seconds for which a partition that ends too early is watched: after a change of its leader the
end may be told too low for a moment."""


class KafkaStream(Stream):
    """The records from one offset on.

    The partition is assigned by hand: no group is joined, and nothing is committed to Kafka. A
    position that the topic does not have ends the stream at once, and the reader asks why.

    Bound: `queued.max.messages.kbytes` in librdkafka, one answer of a server on its way
    (`fetch.message.max.bytes`), and as much again in hand, at most `MESSAGES_AT_ONCE` records.

    Args:
        consumer: closed with the stream.
        troubles: what that consumer tells its errors.
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
                # What has come already: to ask for more with a time would wait for all of it.
                rest = self._consumer.consume(MESSAGES_AT_ONCE - 1, 0)
                before = self._reached
                records = self._records([first, *rest])
                if self._reached > before:
                    return columns_of(records, self._headers)
        return None

    def close(self) -> None:
        self._consumer.close()

    def _records(self, messages: list[Message]) -> list[Message]:
        """The records among what has come; the rest is news about the partition."""
        records = [one for one in messages if one.error() is None]
        if records:
            self._reach((records[-1].offset() or 0) + 1)
        if len(records) < len(messages):
            for one in messages:
                if (error := one.error()) is not None:
                    self._notice(error, one.offset() or 0)
        return records

    def _notice(self, error: KafkaError, offset: int) -> None:
        """Take what ends the stream as its end.

        At the end of a partition the offset says how far that goes: behind its last record there
        may be marks of transactions, and places of records that were aborted or compacted. All
        other errors librdkafka mends by itself; those of the group are none, for it is not used.
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
