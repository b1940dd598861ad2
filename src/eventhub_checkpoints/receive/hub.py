"""Queries to a hub about its partitions: what is retained, where the end is."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from datetime import datetime
from typing import TypeVar

from eventhub_checkpoints._shared.client import POSITION_GONE
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require, require_seconds, require_type
from eventhub_checkpoints._shared.texts import some
from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.address import (
    Address,
    Connection,
    HubProperties,
    OpenStream,
    PartitionProperties,
)
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT

QUERIES_AT_ONCE = 32
CLOSING_SECONDS = 5.0
"""Seconds for which `read_each` waits for connections to close."""

T = TypeVar("T")


def list_partitions(address: Address, *, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """Return the ids of all partitions of the hub, in numeric order.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
        HubUnavailableError: no answer within `timeout` (s), or the client gave up.
    """
    with checked_address(address, timeout).open_queries() as queries:
        return queries.ask([], timeout)[0].partition_ids


def checked_address(address: Address, timeout: float) -> Address:
    """Return the address of a hub that is queried with this time limit (s).

    Raises:
        ConfigurationError: it is not an address, or the limit is not a number of seconds.
    """
    is_address = isinstance(address, Address)
    require_type("address", address, is_address, "a HubAddress or KafkaAddress")
    require_seconds("timeout", timeout, or_zero=True)
    return address


def checked_ids(name: str, ids: Iterable[str]) -> list[str]:
    """Return ids of partitions.

    Raises:
        ConfigurationError: they are something else.
    """
    is_iterable = isinstance(ids, Iterable) and not isinstance(ids, str | bytes)
    listed = list(ids) if is_iterable else []
    is_valid = is_iterable and all(isinstance(each, str) for each in listed)
    require(name, ids, is_valid, "ids of partitions, such as ['0', '1']")
    return listed


def partition_properties(
    address: Address,
    partition_ids: Iterable[str] | None = None,
    *,
    expected: Iterable[str] = (),
    timeout: float = OPERATION_TIMEOUT,
) -> dict[str, PartitionProperties]:
    """Return the properties of partitions, queried at the same time.

    Args:
        address: the hub.
        partition_ids: default: all.
        expected: if all are read, see `HubQueries.state`.
        timeout: seconds for everything together.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access; or the hub has no
            such partition.
        HubUnavailableError: no answer within `timeout`, or the retries are used up.
    """
    likely = checked_ids("expected", expected)
    ids = None if partition_ids is None else checked_ids("partition_ids", partition_ids)
    with checked_address(address, timeout).open_queries() as queries:
        if ids is None:
            return queries.state(likely, timeout).partitions
        hub, properties = queries.ask(ids, timeout)
    if absent := [id_ for id_ in ids if id_ not in properties]:
        raise ConfigurationError(
            f"{address} has no partition {', '.join(absent)}; it has {', '.join(hub.partition_ids)}"
        )
    return {id_: properties[id_] for id_ in ids}


def ask_with_hub(
    address: Address,
    partition_ids: Iterable[str],
    ask_hub: Callable[[], HubProperties],
    ask_partition: Callable[[str], PartitionProperties],
    timeout: float,
) -> tuple[HubProperties, dict[str, PartitionProperties], dict[str, Exception]]:
    """Query a hub and partitions that it may not have any more, all at the same time.

    Returns:
        The properties of the hub; those of the partitions; and the error of each query for another
        partition that the hub has.

    Raises:
        ConfigurationError: the query for the hub has failed.
        HubUnavailableError: likewise; or not every answer came within `timeout` (s).
    """
    answered: dict[str, PartitionProperties] = {}
    failed: dict[str, Exception] = {}

    def ask(name: str) -> HubProperties | None:
        if name == str(address):
            return ask_hub()
        try:
            answered[name] = ask_partition(name)
        except (ConfigurationError, HubUnavailableError) as error:
            failed[name] = error
        return None

    hub = ask_each([str(address), *partition_ids], ask, timeout)[str(address)]
    assert hub is not None
    return hub, answered, {key: each for key, each in failed.items() if key in hub.partition_ids}


def first_event(
    address: Address, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
) -> int:
    """Return the sequence number of the first event at a position, found by receiving it.

    Raises:
        HubUnavailableError: no event arrived within `timeout` (s), or the hub has no such position.
    """
    require("partition_id", partition_id, isinstance(partition_id, str), "a string, such as '0'")
    is_start = isinstance(start, str | datetime)
    require("start", start, is_start, "an offset or a datetime with a time zone")
    number = checked_address(address, timeout).ask_first(partition_id, start, inclusive, timeout)
    if number is None:
        raise no_event_at(address, partition_id, start, timeout)
    return number


def no_event_at(
    address: Address, partition_id: str, start: str | datetime, timeout: float
) -> HubUnavailableError:
    """Return the error for a position at which nothing arrived within `timeout` (s)."""
    return HubUnavailableError(
        f"partition {partition_id} of {address} delivered no event at {quoted(start)} "
        f"(limit: {timeout:g} s). Check that consumer group {address.consumer_group!r} exists; "
        f"{POSITION_GONE}"
    )


def read_each(
    address: Address,
    partition_ids: Iterable[str],
    read: Callable[[str, OpenStream], T],
    timeout: float,
) -> dict[str, T]:
    """Read something of each partition, over a connection for each thread of `ask_each`.

    Args:
        address: the hub.
        partition_ids: which partitions.
        read: given a partition and what opens a stream of it.
        timeout: seconds for everything together.

    Raises:
        HubUnavailableError: not every answer came within `timeout`.
    """
    of_thread = threading.local()
    connections: list[Connection] = []

    def ask(partition_id: str) -> T:
        if not getattr(of_thread, "connection", None) or not of_thread.connection.is_usable:
            of_thread.connection = address.connect()
            connections.append(of_thread.connection)
        return read(partition_id, of_thread.connection.open_stream)

    try:
        return ask_each(
            partition_ids, ask, timeout, describe=lambda silent: f"partition {silent} of {address}"
        )
    finally:
        # A thread that was abandoned may use its connection, and closing would wait for it.
        wait([in_daemon_thread(each.close) for each in connections], CLOSING_SECONDS)


def ask_each(
    names: Iterable[str],
    ask: Callable[[str], T],
    timeout: float,
    *,
    describe: Callable[[str], str] = str,
) -> dict[str, T]:
    """Run one query per name, at most `QUERIES_AT_ONCE` at a time, in the order of names.

    A query may have no time limit, so the threads are daemons: one that hangs is abandoned and
    does not block the program's exit.

    Args:
        describe: how error messages refer to the unanswered names, of which the first are listed.

    Raises:
        HubUnavailableError: not every answer came within `timeout` (s).
    """
    names = list(names)
    waiting = list(reversed(names))
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

    count = min(QUERIES_AT_ONCE, len(names))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    deadline = time.monotonic() + timeout
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if errors:
        raise errors[0]
    if len(answers) < len(names):
        silent = some(name for name in names if name not in answers)
        raise HubUnavailableError(
            f"{describe(silent)} gave no answer within {round(timeout, 1):g} s; does the hub "
            "exist, and can it be reached?"
        )
    return {name: answers[name] for name in names}
