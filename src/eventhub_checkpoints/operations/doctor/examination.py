"""Reader of the snapshot about a consumer group, its store and its hub, for `doctor`."""

import time
from collections.abc import Callable
from typing import TypeVar

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.client import is_stolen
from eventhub_checkpoints._shared.texts import partitions
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import CheckpointStoreError, HubUnavailableError
from eventhub_checkpoints.operations.doctor.checkpoints import needs_following, some_offset
from eventhub_checkpoints.operations.doctor.finding import GroupSnapshot, Limits
from eventhub_checkpoints.operations.groups import (
    Group,
    list_checkpoints,
    release,
    similar_groups,
)
from eventhub_checkpoints.operations.peek import through_some_group
from eventhub_checkpoints.operations.positions import read_positions
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import ask_each, partition_properties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, ReadSettings
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.engine import PROBE, PROBE_PARTITION
from eventhub_checkpoints.stores.hook_results import Examination

PROBE_OWNER = "ehcp doctor"
POLL_SECONDS = 1.0
"""Time between two lists while the rate of checkpoints is measured."""

T = TypeVar("T")


class Examiner:
    """Reads snapshot one step after another, and remembers which steps failed.

    Args:
        store: any synchronous checkpoint store.
        hub: the hub and the group.
        timeout: seconds for each query to the hub.
    """

    def __init__(self, store: CheckpointStore, hub: Address, timeout: float) -> None:
        self.store, self.hub, self.timeout = store, hub, timeout
        self.scope = hub.scope()
        self.failures: dict[str, CheckpointStoreError] = {}
        self.unchecked: list[str] = []

    def attempt(self, step: str, read: Callable[[], T]) -> T | None:
        """Return the result of a step; None if it failed."""
        try:
            return read()
        except CheckpointStoreError as error:
            self.failures.setdefault(step, error)
            return None

    def probe(self) -> float | None:
        """Write to rows that no consumer uses; return how long a claim took.

        Raises:
            StoreError: a right is missing, or the store does not answer.
        """
        if isinstance(self.store, BaseCheckpointStore):
            self.store.verify()
        row = {**PROBE.as_dict(), "partition_id": PROBE_PARTITION, "owner_id": PROBE_OWNER}
        stored = [*self.store.list_ownership(*PROBE)]
        began = time.perf_counter()
        claim = {**row, "etag": stored[0]["etag"] if stored else None}
        won = [*self.store.claim_ownership([claim])]
        seconds = time.perf_counter() - began
        if not won:
            self.unchecked.append("the duration of a claim: another process claimed the probe row")
            return None
        release(self.store, won)
        return seconds

    def rows(self, expires_after: float) -> tuple[Group, float]:
        """Return the group, and how long the list of its ownerships took."""
        began = time.perf_counter()
        owned = self.store.list_ownership(*self.scope)
        seconds = time.perf_counter() - began
        checkpoints = list_checkpoints(self.store, self.scope)
        return Group.of(self.scope, checkpoints, owned, expires_after), seconds

    def stored(self) -> tuple[Examination | None, float | None]:
        """Return the rows as stored, and the seconds by which the store's clock is ahead."""
        if not isinstance(self.store, BaseCheckpointStore):
            self.unchecked.append(
                f"unreadable rows, spellings, clock and settings: {type(self.store).__name__} does "
                "not show them"
            )
            return None, None
        began = time.time()
        examination = self.store.examine(*self.scope)
        ended = time.time()
        for name, is_enabled in examination.settings.items():
            if is_enabled is None:
                self.unchecked.append(
                    f"{name}: the credential may not read it, or the driver does not show it"
                )
        times = [
            listing.server_now
            for listing in (examination.rows.ownerships, examination.rows.checkpoints)
            if listing.server_now is not None
        ]
        if not times:
            self.unchecked.append("the store's clock: the store did not report it")
            return examination, None
        # The service truncates its time to seconds.
        late = max(0.0, began - 1 - min(times))
        return examination, max(0.0, max(times) - ended) - late

    def admission(self, properties: dict[str, PartitionProperties]) -> None:
        """Check that the hub admits a reader to the consumer group.

        Raises:
            ConfigurationError: the hub has no such consumer group.
        """
        group = self.scope.consumer_group
        filled = [each for each in properties.values() if not each.is_empty]
        if not filled:
            self.unchecked.append(f"whether {group} exists: the hub has no event to read")
            return
        end = filled[0].next_sequence_number
        settings = ReadSettings(prefetch=1)
        stream = self.hub.open_stream(filled[0].partition_id, end - 1, end, settings)
        with stream:
            try:
                is_admitted = stream.next(self.timeout) is not None
            except HubUnavailableError as error:
                # Only where there is a group can its consumers have an owner level.
                is_admitted = is_stolen(error)
        if not is_admitted:
            self.unchecked.append(f"whether {group} exists: the hub admitted no reader")

    def following(self, group: Group, properties: dict[str, PartitionProperties]) -> dict[str, int]:
        """Return the number of the first event after each checkpoint's offset.

        A client goes by the offset, and only the hub knows whose it is. Of a checkpoint that is at
        the newest event, the partition's properties tell it.
        """
        hub_offset = some_offset(properties.values())
        ids = [
            id_
            for id_, row in group.checkpoints.items()
            if id_ in properties and needs_following(row, properties[id_], hub_offset)
        ]
        found: dict[str, int] = {}
        failed: dict[str, str] = {}

        def ask(partition_id: str) -> None:
            offset = group.checkpoints[partition_id]["offset"]
            try:
                number = self._first_after(partition_id, offset)
            except CheckpointStoreError as error:
                failed[partition_id] = str(error)
                return
            if number is None:
                failed[partition_id] = "the hub delivered no event after it"
            else:
                found[partition_id] = number

        try:
            ask_each(ids, ask, self.timeout)
        except HubUnavailableError as error:
            failed = {**dict.fromkeys(set(ids) - found.keys(), str(error)), **failed}
        if failed:
            id_, reason = min(failed.items())
            self.unchecked.append(
                f"whether the offsets of {partitions([*failed])} are those of their events: {id_}: "
                f"{reason}"
            )
        return found

    def _first_after(self, partition_id: str, offset: str) -> int | None:
        def read(hub: Address) -> int | None:
            return hub.ask_first(partition_id, offset, False, self.timeout / 2)

        if isinstance(self.hub, HubAddress):
            return through_some_group(self.hub, None, read)
        return read(self.hub)


def examine_group(
    store: CheckpointStore,
    hub: Address,
    limits: Limits | None = None,
    *,
    writes: bool = True,
    checkpoint_rate: float | None = None,
    measure: float = 0.0,
    timeout: float = OPERATION_TIMEOUT,
) -> GroupSnapshot:
    """Read everything that `findings` judges.

    Args:
        store: any synchronous checkpoint store.
        hub: the hub; its consumer group is the one to examine.
        limits: settings of the consumers.
        writes: write to rows that no consumer uses, to check rights and to measure a claim.
        checkpoint_rate: checkpoints per second of the group; None: unknown, or measured.
        measure: seconds for which the rate is measured; 0: not at all.
        timeout: seconds for each query to the hub.
    """
    limits = limits or Limits()
    examiner = Examiner(store, hub, timeout)
    attempt = examiner.attempt
    claim_seconds = attempt("probe", examiner.probe) if writes else None
    if not writes:
        examiner.unchecked.append("rights, and the duration of a claim: nothing was written")
    # The rows are read before the hub's end: a checkpoint that is stored in the meantime would
    # seem to be ahead of it.
    group, list_seconds = attempt("store", lambda: examiner.rows(limits.expires_after)) or (
        None,
        None,
    )
    examination, skew = (attempt("store", examiner.stored) if group else None) or (None, None)
    properties = attempt("hub", lambda: partition_properties(hub, timeout=timeout))
    if properties:
        attempt("consumer_group", lambda: examiner.admission(properties))
    following = examiner.following(group, properties) if group and properties else {}
    is_unknown = group is not None and not group.partition_ids
    others = attempt("store", lambda: similar_groups(store, hub.scope())) if is_unknown else None
    if group and measure:
        checkpoint_rate = attempt("store", lambda: measured_rate(store, hub.scope(), measure))
    if "store" in examiner.failures and "probe" in examiner.failures:
        del examiner.failures["probe"]  # the same defect
    backend = backend_of(store)
    if backend == "blob" and checkpoint_rate is None:
        examiner.unchecked.append("cost of checkpoints: pass their rate, or measure it")
    examiner.unchecked.append("owner levels: no row shows them")
    return GroupSnapshot(
        scope=hub.scope(),
        backend=backend,
        group=group,
        examination=examination,
        other_groups=others or (),
        properties=properties,
        following=following,
        failures=examiner.failures,
        clock_skew=skew,
        list_seconds=list_seconds,
        claim_seconds=claim_seconds,
        checkpoint_rate=checkpoint_rate,
        unchecked=examiner.unchecked,
        prefix=getattr(store, "prefix", ""),
    )


def measured_rate(store: CheckpointStore, scope: Scope, seconds: float) -> float:
    """Return the checkpoints per second of a group, of which a poll sees one a partition."""
    began = time.monotonic()
    before, changes = read_positions(store, scope), 0
    while (left := began + seconds - time.monotonic()) > 0:
        time.sleep(min(POLL_SECONDS, left))
        after = read_positions(store, scope)
        changes += sum(before.get(id_) != row for id_, row in after.items())
        before = after
    return changes / (time.monotonic() - began)


def backend_of(store: CheckpointStore) -> str:
    """Return `blob` for a store on Blob Storage, of this package or the official one; else ""."""
    names = {each.__name__ for each in type(store).__mro__}
    return "blob" if "BlobCheckpointStore" in names else ""
