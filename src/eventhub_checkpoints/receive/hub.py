"""What a hub says about its partitions: what is retained, where the end is."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.address import HubAddress
from eventhub_checkpoints.receive.stream import EventStream

OPERATION_TIMEOUT = 60.0
QUESTIONS_AT_ONCE = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """What a partition holds at this moment.

    Attributes:
        first_sequence_number: of the first event that is still retained; equal to
            `next_sequence_number` where there is none.
        next_sequence_number: that the next event will get.
        last_enqueued_offset: of the newest event, opaque text.
        last_enqueued_time: of the newest event, UTC.
    """

    partition_id: str
    first_sequence_number: int
    next_sequence_number: int
    last_enqueued_offset: str
    last_enqueued_time: datetime

    @property
    def is_empty(self) -> bool:
        """Whether no event is retained."""
        return self.first_sequence_number == self.next_sequence_number


def list_partitions(address: HubAddress, *, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """The ids of all partitions of the hub, in numeric order.

    Raises:
        ConfigurationError: the namespace has no such hub.
        HubUnavailableError: no answer within `timeout` (s).
        EventHubError: the hub refused.
    """
    return ask_each([str(address)], lambda _: _partition_ids(address), timeout)[str(address)]


def partition_properties(
    address: HubAddress,
    partition_ids: Iterable[str] | None = None,
    *,
    expected: Iterable[str] = (),
    timeout: float = OPERATION_TIMEOUT,
) -> dict[str, PartitionProperties]:
    """What each partition holds, asked for all of them at once.

    Args:
        address: the hub.
        partition_ids: which ones; default: all.
        expected: which ones the hub probably has, where all are wanted: they are asked for while
            the hub is asked which it has, and that halves the time.
        timeout: seconds for everything together.

    Raises:
        ConfigurationError: the namespace has no such hub.
        HubUnavailableError: no answer within `timeout`.
        EventHubError: the hub refused.
    """
    deadline = time.monotonic() + timeout
    found: dict[str, PartitionProperties] = {}
    if partition_ids is None:
        partition_ids, found = _list_and_ask(address, expected, timeout)
    wanted = list(partition_ids)
    found |= ask_each(
        [one for one in wanted if one not in found],
        lambda one: _properties(address, one),
        deadline - time.monotonic(),
        told=lambda ids: f"partition {ids} of {address}",
    )
    return {one: found[one] for one in wanted}


def _list_and_ask(
    address: HubAddress, expected: Iterable[str], timeout: float
) -> tuple[list[str], dict[str, PartitionProperties]]:
    """The partitions of the hub, and what those of the expected ones hold that gave an answer."""
    found: dict[str, PartitionProperties] = {}

    def ask(name: str) -> list[str]:
        if name == str(address):
            return _partition_ids(address)
        # A hub that was created again may have fewer: that shows in the list.
        with suppress(EventHubError):
            found[name] = _properties(address, name)
        return []

    listed = ask_each([str(address), *expected], ask, timeout)
    return listed[str(address)], found


def first_event(
    address: HubAddress, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
) -> int:
    """The sequence number of the first event at an offset or time, learnt by receiving it.

    Raises:
        HubUnavailableError: no event came within `timeout` (s). The client does not tell when
            the hub refuses a position; it asks again and again.
    """
    with EventStream(address, partition_id, start, inclusive=inclusive, prefetch=1) as stream:
        events = stream.next(timeout)
    if not events or events[0].sequence_number is None:
        raise HubUnavailableError(
            f"partition {partition_id} of {address} delivered no event at {start!r} within "
            f"{timeout:g} s. Does consumer group {address.consumer_group!r} exist? If the hub was "
            "deleted and created again, its checkpoints belong to the old one: reset them, or "
            "start from 'earliest'"
        )
    return int(events[0].sequence_number)


def run_in_daemons(work: Callable[[], None], count: int, timeout: float) -> None:
    """Do the work in so many threads, and wait no longer than `timeout` (s) for all of them.

    The client has no time limit on a management call, so the threads are daemons: one that
    hangs is left behind and keeps nobody from ending.
    """
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    deadline = time.monotonic() + timeout
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def ask_each(
    names: Iterable[str],
    ask: Callable[[str], T],
    timeout: float,
    *,
    told: Callable[[str], str] = str,
) -> dict[str, T]:
    """Ask one question per name, at most `QUESTIONS_AT_ONCE` at a time, in the order of names.

    Args:
        told: how an error speaks of the names, joined by commas, that gave no answer.

    Raises:
        HubUnavailableError: not every answer came within `timeout` (s).
    """
    wanted = list(names)
    waiting = list(reversed(wanted))
    answers: dict[str, T] = {}
    errors: list[Exception] = []

    def work() -> None:
        # list.pop is atomic: no name is asked twice, and an error leaves the rest unasked.
        while not errors:
            try:
                name = waiting.pop()
            except IndexError:
                return
            try:
                answers[name] = ask(name)
            except Exception as error:
                errors.append(error)

    run_in_daemons(work, min(QUESTIONS_AT_ONCE, len(wanted)), timeout)
    if errors:
        raise errors[0]
    if len(answers) < len(wanted):
        silent = ", ".join(name for name in wanted if name not in answers)
        raise HubUnavailableError(
            f"{told(silent)} gave no answer within {round(timeout, 1):g} s; does the hub exist, "
            "and can it be reached?"
        )
    return {name: answers[name] for name in wanted}


@contextmanager
def _hub_named(address: HubAddress) -> Iterator[None]:
    """Say which hub is missing: the client says "404" and no name."""
    try:
        yield
    except EventHubError as error:
        if "not-found" not in str(error.error):
            raise
        raise ConfigurationError(
            f"{address.fully_qualified_namespace} has no event hub {address.eventhub_name!r}"
        ) from error


def _partition_ids(address: HubAddress) -> list[str]:
    with _hub_named(address), address.open_client() as client:
        return sorted(client.get_partition_ids(), key=int)


def _properties(address: HubAddress, partition_id: str) -> PartitionProperties:
    with _hub_named(address), address.open_client() as client:
        return read_properties(partition_id, client.get_partition_properties(partition_id))


def read_properties(partition_id: str, answer: Mapping[str, object]) -> PartitionProperties:
    """The client's answer, with an empty partition's numbers put straight.

    A partition that never held an event has -1 as its last number; one whose events have all
    expired still has a last number, and nothing before the next one can be read.
    """
    last, begin = answer["last_enqueued_sequence_number"], answer["beginning_sequence_number"]
    enqueued = answer["last_enqueued_time_utc"]
    assert isinstance(last, int)
    assert isinstance(begin, int)
    assert isinstance(enqueued, datetime)
    following = last + 1
    return PartitionProperties(
        partition_id,
        following if answer["is_empty"] else max(begin, 0),
        following,
        str(answer["last_enqueued_offset"]),
        enqueued if enqueued.tzinfo else enqueued.replace(tzinfo=UTC),
    )
