"""Queries to a hub about its partitions: what is retained, where the end is."""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT

QUESTIONS_AT_ONCE = 32

T = TypeVar("T")


def list_partitions(address: Address, *, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """Return the ids of all partitions of the hub, in numeric order.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
        HubUnavailableError: no answer within `timeout` (s), or the client gave up.
    """
    return ask_each([str(address)], lambda _: address.ask_partition_ids(), timeout)[str(address)]


def partition_properties(
    address: Address,
    partition_ids: Iterable[str] | None = None,
    *,
    expected: Iterable[str] = (),
    timeout: float = OPERATION_TIMEOUT,
) -> dict[str, PartitionProperties]:
    """Return the properties of partitions, queried concurrently.

    Args:
        address: the hub.
        partition_ids: which ones; default: all.
        expected: ids that the hub probably has, if all are wanted. They are queried at the same
            time as the list of partitions, which halves the time.
        timeout: seconds for everything together.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
        HubUnavailableError: no answer within `timeout`, or the client gave up.
    """
    deadline = time.monotonic() + timeout
    found: dict[str, PartitionProperties] = {}
    if partition_ids is None:
        partition_ids, found = _list_and_ask(address, expected, timeout)
    wanted = list(partition_ids)
    found |= ask_each(
        [one for one in wanted if one not in found],
        address.ask_properties,
        deadline - time.monotonic(),
        told=lambda ids: f"partition {ids} of {address}",
    )
    return {one: found[one] for one in wanted}


def _list_and_ask(
    address: Address, expected: Iterable[str], timeout: float
) -> tuple[list[str], dict[str, PartitionProperties]]:
    """Return the hub's partitions, and the properties of the expected ones that answered."""
    found: dict[str, PartitionProperties] = {}

    def ask(name: str) -> list[str]:
        if name == str(address):
            return address.ask_partition_ids()
        # A re-created hub may have fewer: the list shows that, while the client's own attempts
        # would take 13 s. Partitions that fail for another reason are queried again.
        with suppress(HubUnavailableError, ConfigurationError):
            found[name] = address.try_properties(name)
        return []

    listed = ask_each([str(address), *expected], ask, timeout)
    return listed[str(address)], found


def first_event(
    address: Address, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
) -> int:
    """Return the sequence number of the first event at a position, found by receiving it.

    Raises:
        HubUnavailableError: no event arrived within `timeout` (s). The client does not report
            that the hub refuses a position; it keeps retrying.
    """
    number = address.ask_first(partition_id, start, inclusive, timeout)
    if number is None:
        raise HubUnavailableError(
            f"partition {partition_id} of {address} delivered no event at {quoted(start)} within "
            f"{timeout:g} s. Does consumer group {address.consumer_group!r} exist? If the hub was "
            "deleted and created again, its checkpoints belong to the old one: reset them, or "
            "start from 'earliest'"
        )
    return number


def run_in_daemons(work: Callable[[], None], count: int, timeout: float) -> None:
    """Run the function in `count` threads; wait at most `timeout` (s) for all of them.

    The client has no time limit on a management call, so the threads are daemons: one that
    hangs is abandoned and does not block the program's exit.
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
    """Run one query per name, at most `QUESTIONS_AT_ONCE` at a time, in the order of names.

    Args:
        told: how error messages refer to the unanswered names, joined by commas.

    Raises:
        HubUnavailableError: not every answer came within `timeout` (s).
    """
    wanted = list(names)
    waiting = list(reversed(wanted))
    answers: dict[str, T] = {}
    errors: list[Exception] = []

    def work() -> None:
        # list.pop is atomic: no name is queried twice, and an error leaves the rest unqueried.
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
