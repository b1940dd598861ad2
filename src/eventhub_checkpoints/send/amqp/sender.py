"""Rows of a hub over AMQP, on the fast path while that is possible, then on the public one."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client import (
    OUT_OF_RANGE,
    Failure,
    explanation,
    failure_of,
    reason,
)
from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.receive.amqp.queries import ManagementQueries
from eventhub_checkpoints.sdk.fallback import FastPathError, report_fallback
from eventhub_checkpoints.send.amqp.fast import FastOutlet
from eventhub_checkpoints.send.amqp.outlet import Outlet
from eventhub_checkpoints.send.amqp.public import PublicOutlet
from eventhub_checkpoints.send.events import EventRows, encode_rows
from eventhub_checkpoints.send.filling import Batch, BatchFiller, check_keys, check_sizes
from eventhub_checkpoints.send.sender import Sender
from eventhub_checkpoints.send.settings import SendSettings

log = logging.getLogger(__name__)

KEYS_REMEMBERED = 100_000


class HubSender(Sender):
    """Sends rows to a hub; connects with the first row.

    Args:
        address: the hub; its consumer group has no meaning here.
        settings: how to send.
    """

    def __init__(self, address: HubAddress, settings: SendSettings) -> None:
        self._address, self._settings = address, settings
        self._outlet: Outlet | None = None
        self._filler: BatchFiller | None = None
        self._limit = 0
        self._accepted_before = 0
        self._sent_again: list[Batch] = []
        self._partition_ids: list[str] = []
        self._partition_of = lru_cache(maxsize=KEYS_REMEMBERED)(self._look_up)

    @property
    def accepted(self) -> int:
        return self._accepted_before + (0 if self._outlet is None else self._outlet.accepted)

    def send(self, rows: EventRows) -> None:
        if not len(rows):
            return
        check_keys(rows.partition_keys)
        with explained(self._address):
            outlet, filler = self._opened()
            sections = encode_rows(rows)
            check_sizes(sections, self._limit)
            for partition_id, own in self._routed(rows, sections):
                for batch in filler.add(partition_id, own):
                    outlet = self._put(outlet, batch)

    def flush(self) -> None:
        if self._outlet is None or self._filler is None:
            return
        with explained(self._address):
            outlet = self._outlet
            for batch in self._filler.rest():
                outlet = self._put(outlet, batch)
            try:
                outlet.flush()
            except FastPathError as error:
                self._fall_back(error, outlet.unconfirmed())

    def give_up(self, seconds: float) -> int:
        in_doubt = 0 if self._outlet is None else self._outlet.give_up(seconds)
        return in_doubt + sum(map(len, self._sent_again))

    @property
    def is_usable(self) -> bool:
        return self._outlet is None or self._outlet.is_usable

    def close(self) -> None:
        if self._outlet is not None:
            self._outlet.close()

    def _opened(self) -> tuple[Outlet, BatchFiller]:
        """Return the way to the hub and the open batches; connects at first."""
        if self._outlet is None:
            try:
                self._outlet = self._public() if self._is("public") else self._fast()
            except FastPathError as error:
                self._fall_back(error, [])
        if self._filler is None:
            assert self._outlet is not None
            try:
                self._limit = self._outlet.limit
            except FastPathError as error:
                self._limit = self._fall_back(error, []).limit
            self._filler = BatchFiller(min(self._settings.bytes_per_batch, self._limit))
        assert self._outlet is not None
        return self._outlet, self._filler

    def _is(self, path: str) -> bool:
        return self._settings.send_path == path

    def _fast(self) -> Outlet:
        client = self._address.open_producer()
        try:
            return FastOutlet(client, self._settings, self._outage())
        except FastPathError:
            client.close()
            raise

    def _public(self) -> Outlet:
        return PublicOutlet(self._address.open_producer(retry_total=0), self._outage())

    def _outage(self) -> Outage:
        return self._address.outage(str(self._address), self._settings.operation_timeout)

    def _put(self, outlet: Outlet, batch: Batch) -> Outlet:
        """Send a batch; return the outlet for the next one."""
        try:
            outlet.put(batch)
        except FastPathError as error:
            waiting = outlet.unconfirmed()
            return self._fall_back(error, waiting if batch in waiting else [*waiting, batch])
        return outlet

    def _fall_back(self, error: FastPathError, waiting: list[Batch]) -> Outlet:
        """Continue on the public path with what is not confirmed; log each reason once.

        Raises:
            FastPathError: the path is `fast`.
        """
        if self._is("fast"):
            raise error
        slow = "events are sent through the client's public API, which is slower"
        report_fallback(log, error, "sending", slow)
        if self._outlet is not None:
            self._accepted_before += self._outlet.accepted
            self._outlet.close()
        self._outlet = self._public()
        self._sent_again = list(waiting)
        while self._sent_again:
            self._outlet.put(self._sent_again.pop(0))
        return self._outlet

    def _routed(
        self, rows: EventRows, sections: list[bytes]
    ) -> Iterator[tuple[str | None, list[bytes]]]:
        """Yield the encoded rows of each partition in order; None is the service's choice.

        Events of one key are put into the batches of its partition, together with those of other
        keys, as the buffered producers of the official clients do. A batch for each key would often
        hold one event.
        """
        ids, keys = rows.partition_ids, rows.partition_keys
        if ids is None and keys is None:
            yield None, sections
            return
        targets: list[str | None] = [None] * len(rows) if ids is None else list(ids)
        if keys is not None:
            partition_of_key = self._partition_of
            targets = [
                target if key is None else partition_of_key(key)
                for target, key in zip(targets, keys, strict=True)
            ]
        routed: dict[str | None, list[bytes]] = defaultdict(list)
        for target, section in zip(targets, sections, strict=True):
            routed[target].append(section)
        yield from routed.items()

    def _look_up(self, key: str) -> str:
        if not self._partition_ids:
            with ManagementQueries(self._address, right="send") as queries:
                hub, _ = queries.ask([], self._settings.operation_timeout)
            self._partition_ids = hub.partition_ids
        return partition_of(key, self._partition_ids, self._settings.partitioner)


@contextmanager
def explained(address: HubAddress) -> Iterator[None]:
    """Translate the client's errors into those of this package.

    Raises:
        ConfigurationError: the hub or a partition does not exist, an event is too large, or the
            key, the signature or the credential is refused.
        HubUnavailableError: any other reason why the client gave up.
    """
    try:
        yield
    except EventHubError as error:
        condition = str(error.error)
        # The client checks a partition itself, on the public path, and raises without a condition.
        if OUT_OF_RANGE in condition or reason(error).startswith("Invalid partition"):
            raise ConfigurationError(
                f"a row names a partition that {address} does not have ({reason(error)})"
            ) from error
        if "size-exceeded" in condition:
            raise ConfigurationError(f"{address} refuses a batch: {reason(error)}") from error
        explained_error = explanation(error, address.scope(), right="send")
        is_unreached = failure_of(error) is Failure.UNREACHED
        if isinstance(explained_error, ConfigurationError) or is_unreached:
            raise explained_error from error
        raise HubUnavailableError(
            f"events were not accepted by {address}: {reason(error)}"
        ) from error
