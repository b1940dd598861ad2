"""Queries about a topic: its partitions, their offsets, and the record at a time."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eventhub_checkpoints.receive.kafka.client import Settings
from eventhub_checkpoints.receive.kafka.troubles import MISSING, Troubles, error_of

QUESTION_TIMEOUT = 30.0
FIRST_WAIT = 1.0
"""Seconds before librdkafka's errors are examined the first time; doubled after each time."""

PAUSE = 0.1
"""Seconds between two attempts: some errors are immediate and temporary."""

IDLE: Settings = {"connections.max.idle.ms": "30000"}
"""Idle time after which connections of an unused client are closed."""

CLIENTS_KEPT = 4

T = TypeVar("T")


class TopicMissingError(Exception):
    """The topic or its partition does not exist."""


class Asker:
    """Queries about one topic, through a client shared with others.

    Args:
        consumer: used from several threads, which librdkafka allows.
        troubles: receives that consumer's errors.
    """

    def __init__(self, consumer: Consumer, troubles: Troubles, topic: str) -> None:
        self._consumer = consumer
        self._troubles = troubles
        self._topic = topic

    def partition_ids(self) -> list[str]:
        """Return the ids of all partitions, in numeric order.

        Raises:
            TopicMissingError: there is no such topic.
        """

        def ask(wait: float) -> list[str]:
            found = self._consumer.list_topics(self._topic, wait).topics[self._topic]
            if found.error is not None:
                raise KafkaException(found.error)
            return [str(one) for one in sorted(found.partitions)]

        return self._ask("its partitions", ask)

    def ends(self, partition_id: str, timeout: float = QUESTION_TIMEOUT) -> tuple[int, int]:
        """Return a partition's first retained offset, and the offset of its next record.

        With `isolation.level=read_committed`, which is librdkafka's default, an open transaction
        lies behind the end.

        Raises:
            TopicMissingError: there is no such partition.
        """
        where = self._at(partition_id)

        def ask(wait: float) -> tuple[int, int]:
            found = self._consumer.get_watermark_offsets(where, wait)
            if found is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            low, high = found
            return low, high

        return self._ask(f"the ends of partition {partition_id}", ask, timeout)

    def first_at(self, partition_id: str, milliseconds: int, timeout: float) -> int | None:
        """Return the offset of the first record at or after a time; None if there is none.

        Raises:
            TopicMissingError: there is no such partition.
        """
        where = self._at(partition_id, milliseconds)

        def ask(wait: float) -> int | None:
            [found] = self._consumer.offsets_for_times([where], wait)
            if found.error is not None:
                raise KafkaException(found.error)
            return found.offset if found.offset >= 0 else None

        return self._ask(f"a time in partition {partition_id}", ask, timeout)

    def _at(self, partition_id: str, offset: int = 0) -> TopicPartition:
        return TopicPartition(self._topic, int(partition_id), offset)

    def _ask(self, what: str, ask: Callable[[float], T], timeout: float = QUESTION_TIMEOUT) -> T:
        """Retry until there is an answer; the client does not report why there is none."""
        begun, wait = time.monotonic(), FIRST_WAIT
        while (left := begun + timeout - time.monotonic()) > 0:
            try:
                return ask(min(wait, left))
            except KafkaException as error:
                found = error_of(error)
                if found.code() in MISSING:
                    raise TopicMissingError(found.str()) from error
                self._troubles.raise_if_final(found)
                # Also makes the client report pending errors to `troubles`.
                self._consumer.poll(PAUSE)
                self._troubles.raise_denied()
                wait *= 2
        raise self._troubles.unavailable(what, timeout)


Key = tuple[int, str, frozenset[tuple[str, str]], str | int]
Opened = tuple[Consumer, Troubles]

_kept: OrderedDict[Key, Opened] = OrderedDict()
_lock = threading.Lock()


def key_of(where: str, settings: Settings, credential: object) -> Key:
    """Return the key that identifies a client, including the process: threads end at a fork."""
    name = credential if isinstance(credential, str) else id(credential)
    return os.getpid(), where, frozenset(settings.items()), name


def shared(key: Key, make: Callable[[], Opened]) -> Opened:
    """Return the client of this process for these settings, created if necessary.

    A stream queries each partition every second: TLS and a log-in per query would cost more than
    the answers. Where there are many clients, the least used ones are discarded.
    """
    with _lock:
        if key not in _kept:
            _kept[key] = make()
            while len(_kept) > CLIENTS_KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return _kept[key]


def forget(key: Key) -> None:
    """Discard a client that was refused; the next query creates another."""
    with _lock:
        _kept.pop(key, None)
