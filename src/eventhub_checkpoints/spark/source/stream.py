"""`spark.readStream.format("eventhubs")`: a hub as a stream, in micro-batches.

Spark keeps one object of this class in a separate process on the driver, for as long as the query
runs; only `read` runs on executors. The methods query the hub, over one connection that ends with
that process, or the checkpoint store. Only Spark's checkpoint survives a restart; there is no other
state.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import HubQueries, HubState
from eventhub_checkpoints.receive.read_plan import partition_gone, report, resolve, retained
from eventhub_checkpoints.spark.offsets import StreamOffset
from eventhub_checkpoints.spark.source import batches
from eventhub_checkpoints.spark.source.options import NO_LIMITS, Limits, SourceOptions
from eventhub_checkpoints.spark.source.sizes import BodySizes

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    # Since 4.2 Spark passes a stream its position and a limit (admission control). Spark 4.0 and
    # 4.1 do neither, and lack these classes.

    class ReadLimit:  # type: ignore[no-redef]
        """Limit of Spark for one batch of a stream."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit, overriding the options."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Maximum number of rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Marker of a stream that can read the available events and stop."""


if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

CONFIRM_AFTER = 1.0
"""Seconds before the second request that confirms that a hub was created again: a partition that
has just moved to another node may briefly report an older end."""

NO_TOTAL = 2**63 - 1
"""Total limit of a job that has only limits of single partitions."""

Offset = Mapping[str, Any]


class EventHubStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream of one hub.

    The first batch is pinned: Spark does not store where it begins, so its *end* records the start
    (`_from` in the offset), and there is a first batch even if the hub has no new events. After
    that, a changed starting position, such as `latest` or a store's checkpoints, has no effect.

    Spark 4.0 and 4.1 have no limits, so those of the options are applied here, and `availableNow`
    is one batch of at most these limits; without limits it is everything.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._hub = options.address.eventhub_name
        self._queries: HubQueries | None = None
        self._initial: StreamOffset | None = None
        self._planned: StreamOffset | None = None
        self._expired: Mapping[str, int] = {}
        self._state = HubState("", {})
        self._sizes = BodySizes(options.address, options.reading)
        self._latest: dict[str, Any] | None = None
        self._target: Mapping[str, int] | None = None
        self._queried_at = self._advanced_at = float("-inf")
        self._is_idle = False
        self._has_warned = False
        self._stopped = threading.Event()

    def __reduce__(self) -> Any:
        """Pickle the options only: executors do not need the stream's state and connection."""
        return type(self), (self._options,)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a query without a checkpoint begins; Spark calls this more than once.

        Raises:
            HubUnavailableError: the hub did not answer in time.
            StoreError: the checkpoint store could not be read.
        """
        return self._begin().to_json()

    def _begin(self) -> StreamOffset:
        if self._initial is None:
            address, timeout = self._options.address, self._options.reading.operation_timeout
            state = self._read_state()
            starts = batches.starts_of(self._options, state.partitions)
            numbers = resolve(address, starts, state.partitions, timeout)
            self._initial = StreamOffset(
                self._hub,
                numbers,
                is_initial=True,
                namespace=address.lasting_namespace,
                created=state.created,
            )
        return self._initial

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the end of the next batch; `start` unchanged if there are no new events.

        Args:
            start: the position of the stream. Spark before 4.2 does not pass it: then it is the end
                of the batch that was planned last, because a resumed query plans even a finished
                batch again.
            limit: maximum size of the batch; before 4.2 the options determine it.

        Raises:
            DataLossError: requested events are gone, and `failOnDataLoss` is set.
            HubUnavailableError: the hub did not answer in time.
        """
        here = self._parse(start) if start is not None else self._planned or self._begin()
        if self._is_idle:
            pause = self._options.idle_poll_interval
            self._stopped.wait(self._queried_at + pause - time.monotonic())
        self._query(here)
        address, state = self._options.address, self._state
        starts = batches.partition_starts(address, here, state)
        losses = batches.losses(address, here, state, starts)
        for loss in losses:
            report(loss, self._options.reading)
        ends = self._known_ends()
        if self._target is not None:
            ends = {key: min(end, self._target.get(key, 0)) for key, end in ends.items()}
        end, waiting = here, batches.waiting_events(starts, ends)
        # Those of the last batch are noted in the next offset, because its own was written before.
        expired = self._expired if here == self._planned else {}
        if losses or expired or here.is_initial or self._is_due(waiting, limit):
            limits = self._limits(limit, starts, waiting)
            end = batches.next_offset(here, starts, waiting, limits, state.created, expired)
        if start is None:
            self._warn_of_single_batch(ends, end)
        self._is_idle = end is here
        if not self._is_idle:
            self._advanced_at = time.monotonic()
        # Byte for byte what Spark has, because it compares strings.
        self._latest = end.to_json() if start is None or not self._is_idle else dict(start)
        return self._latest

    def _warn_of_single_batch(self, ends: Mapping[str, int], end: StreamOffset) -> None:
        """Warn once of events that `availableNow` leaves, because a source does not know triggers.

        Spark before 4.2 ends such a query after one batch, whatever is left.
        """
        left = sum(number - end.next.get(key, number) for key, number in ends.items())
        if left > 0 and not self._has_warned:
            self._has_warned = True
            log.warning(
                "the limits leave %d events of %s to later batches: with "
                "trigger(availableNow=True), this version of Spark ends the query after the first "
                "one. Remove the limits, start the query again, or use Spark 4.2",
                *(left, self._options.address),
            )

    def _is_due(self, waiting: Mapping[str, int], limit: ReadLimit | None) -> bool:
        """Return whether enough events wait for the next batch, or the last one is old enough.

        What has to be read until the query stops, or as Spark's trigger demands, waits for nothing.
        """
        least = self._options.waiting
        if least.events == 1 or self._target is not None or isinstance(limit, ReadAllAvailable):
            return True
        is_old = time.monotonic() >= self._advanced_at + least.delay
        return is_old or sum(waiting.values()) >= least.events

    def _parse(self, offset: Offset) -> StreamOffset:
        return StreamOffset.from_json(offset, self._hub, self._options.address.lasting_namespace)

    def _query(self, here: StreamOffset) -> None:
        """Query the hub; repeat the query if a position is after the hub's end."""
        self._state = self._read_state(here.next)
        if any(here.next.get(key, 0) > end for key, end in self._known_ends().items()):
            self._stopped.wait(CONFIRM_AFTER)
            self._state = self._read_state(here.next)
        self._queried_at = time.monotonic()

    def _read_state(self, expected: Iterable[str] = ()) -> HubState:
        if self._queries is None:
            self._queries = self._options.address.open_queries()
        return self._queries.state(expected, self._options.reading.operation_timeout)

    def _known_ends(self) -> dict[str, int]:
        return {key: each.next_sequence_number for key, each in self._state.partitions.items()}

    def _limits(
        self,
        limit: ReadLimit | None,
        starts: Mapping[str, batches.PartitionStart],
        waiting: Mapping[str, int],
    ) -> Limits:
        """Return the limits of the next batch; that in bytes becomes one of the total."""
        if isinstance(limit, ReadAllAvailable):
            return NO_LIMITS
        limits = self._options.limits
        if isinstance(limit, ReadMaxRows):
            limits = replace(limits, total=limit.max_rows)
        if limits.size is not None:
            begins = {key: each.number for key, each in starts.items()}
            count = self._sizes.count(limits.size, begins, waiting)
            limits = replace(limits, total=min(count, limits.total or count))
        return limits

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of the options, which a trigger may override."""
        limits = self._options.limits
        if limits == NO_LIMITS and self._options.waiting.events == 1:
            return ReadAllAvailable()
        return ReadMaxRows(NO_TOTAL if limits.total is None else limits.total)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the last known end of the hub, for the lag in a query's progress."""
        ends = self._known_ends()
        return StreamOffset(self._hub, ends).to_json() if ends else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current end of the hub, at which the query stops."""
        partitions = self._read_state().partitions
        self._target = {key: each.next_sequence_number for key, each in partitions.items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tasks of one batch, each with exact ranges.

        Raises:
            DataLossError: events of the batch are gone, and `failOnDataLoss` is set.
        """
        before, after = self._parse(start), self._parse(end)
        self._planned, self._expired = after, {}
        if dict(start) == dict(end):
            return []
        if self._latest != dict(end):
            self._query(after)
        options, partitions = self._options, self._state.partitions
        if again := batches.recreation(options.address, after, self._state):
            # The next batch reads the new hub from its first event: this one would only read some
            # of its events, by the numbers of others.
            report(again, options.reading)
            return []
        ranges = []
        for partition, end_at in after.next.items():
            begin = after.begin(partition, before)
            if held := partitions.get(partition):
                ranges.append(retained(options.address, options.reading, held, begin, end_at))
            elif begin < end_at:
                gone = partition_gone(options.address, partition, begin, partitions)
                report(gone, options.reading)
        self._expired = batches.expired_events(ranges, before, after)
        return batches.make_tasks(options, ranges)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read the ranges of one task, on an executor."""
        return batches.read_task(partition)

    def commit(self, end: Offset) -> None:
        """Do nothing: Spark calls it one batch late, and never for the last batch."""

    def stop(self) -> None:
        """Interrupt a pause in progress and close the connection; Spark may never call it."""
        self._stopped.set()
        if self._queries is not None:
            self._queries.close()


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream that cannot be read."""

    def __init__(self, error: ConfigurationError) -> None:
        self._error = error

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise the reason."""
        raise self._error

    initialOffset = latestOffset = getDefaultReadLimit = _refuse  # noqa: N815
    prepareForTriggerAvailableNow = partitions = read = _refuse  # noqa: N815
