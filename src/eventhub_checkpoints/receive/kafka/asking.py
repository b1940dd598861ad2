"""What a topic is asked: which partitions it has, what they hold, which record a time means."""

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
"""How long (s) librdkafka is left alone before what went wrong is looked at; then twice that."""

PAUSE = 0.1
"""Seconds between two tries: some errors are answered at once, and pass."""

IDLE: Settings = {"connections.max.idle.ms": "30000"}
"""Connections of a client that nobody asks are closed after this."""

CLIENTS_KEPT = 4

T = TypeVar("T")


class TopicMissingError(Exception):
    """There is no such topic, or no such partition of it."""


class Asker:
    """Asks about one topic, by a client that it shares with others.

    Args:
        consumer: asked from several threads, which librdkafka allows.
        troubles: what that consumer tells its errors.
    """

    def __init__(self, consumer: Consumer, troubles: Troubles, topic: str) -> None:
        self._consumer = consumer
        self._troubles = troubles
        self._topic = topic

    def partition_ids(self) -> list[str]:
        """The ids of all partitions, in numeric order.

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
        """The first retained offset of a partition, and the one that its next record gets.

        With `isolation.level=read_committed`, which is librdkafka's default, a transaction that
        is still open lies behind the end.

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
        """The offset of the first record whose time is not before this one; None after the last.

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
        """Ask until there is an answer; the client itself does not say why there is none."""
        begun, wait = time.monotonic(), FIRST_WAIT
        while (left := begun + timeout - time.monotonic()) > 0:
            try:
                return ask(min(wait, left))
            except KafkaException as error:
                found = error_of(error)
                if found.code() in MISSING:
                    raise TopicMissingError(found.str()) from error
                self._troubles.raise_if_final(found)
                # Also tells `troubles` what has happened below.
                self._consumer.poll(PAUSE)
                self._troubles.raise_denied()
                wait *= 2
        raise self._troubles.unavailable(what, timeout)


Key = tuple[int, str, frozenset[tuple[str, str]], str | int]
Opened = tuple[Consumer, Troubles]

_kept: OrderedDict[Key, Opened] = OrderedDict()
_lock = threading.Lock()


def key_of(where: str, settings: Settings, credential: object) -> Key:
    """What tells clients apart. Threads of librdkafka do not live on in a forked process."""
    name = credential if isinstance(credential, str) else id(credential)
    return os.getpid(), where, frozenset(settings.items()), name


def shared(key: Key, make: Callable[[], Opened]) -> Opened:
    """The client of this process for these settings, made where there is none yet.

    A stream asks every second, about each partition: TLS and a log-in for each question would
    cost more than the answers. Where there are many clients, the least used are let go.
    """
    with _lock:
        if key not in _kept:
            _kept[key] = make()
            while len(_kept) > CLIENTS_KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return _kept[key]


def forget(key: Key) -> None:
    """Let a client go that was refused: the next question begins anew."""
    with _lock:
        _kept.pop(key, None)
