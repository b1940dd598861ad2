"""Migration: positions that another program has saved, for the store of a consumer group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.errors import (
    ConfigurationError,
    HubUnavailableError,
    InvalidRecordError,
    StaleCheckpointError,
)
from eventhub_checkpoints.operations.change import write_listed
from eventhub_checkpoints.operations.groups import group, in_order
from eventhub_checkpoints.operations.positions import Position, positions_of
from eventhub_checkpoints.operations.transfer import Step, plan
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.hub import ask_each, partition_properties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER
from eventhub_checkpoints.stores.legacy.blob import read_iothub_react_blobs, read_lease_blobs
from eventhub_checkpoints.stores.legacy.leases import LeaseFormat

IOTHUB_REACT = "iothub-react"
AS_TYPED = "as-typed"
FORMATS = (*map(str, LeaseFormat), IOTHUB_REACT, AS_TYPED)
"""What can be read; the last is the SDKs' own format with names in another case."""


def read(format: str, container_url: str, scope: Scope, *, prefix: str = "") -> list[Checkpoint]:
    """Read the positions that another program has saved for a group.

    Args:
        format: one of `FORMATS`.
        container_url: URL of the container, as `open_store` takes it.
        scope: names of the group, in the case in which the program had them.
        prefix: prefix of the blobs' names with which the program was configured.

    Returns:
        Checkpoints; `offset` may be `""`, or `sequence_number` None.

    Raises:
        ConfigurationError: nothing was found, or a container or format does not exist.
        StoreError: the container could not be read.
    """
    if format == IOTHUB_REACT:
        saved = read_iothub_react_blobs(container_url, scope)
    elif format == AS_TYPED:
        saved = read_as_typed(container_url, scope, prefix or None)
    elif format in FORMATS:
        saved = read_lease_blobs(container_url, LeaseFormat(format), scope, prefix=prefix)
    else:
        raise ConfigurationError(
            f"the format is {quoted(format)}; expected one of {', '.join(FORMATS)}"
        )
    if not saved:
        raise ConfigurationError(
            f"no position of {scope} was found in the format {format}: either the old program has "
            "processed nothing, or its names are others; names of blobs depend on case, so pass "
            "hub and group as it had them, and its prefix"
        )
    return saved


def read_as_typed(container_url: str, scope: Scope, prefix: str | None = None) -> list[Checkpoint]:
    """Read the checkpoints of a group whose names Go, Java or Rust have stored in another case.

    If a partition has several, in different cases, the highest one counts: each of their consumers
    was given the same events.

    Args:
        container_url: as `open_store` takes it; its query may contain `prefix`.
        scope: the group.
        prefix: of the blobs' names, if the URL has none.

    Raises:
        ConfigurationError: it is not a container's URL, or the prefix is not valid.
        StoreError: the container could not be read.
    """
    highest: dict[str, Checkpoint] = {}
    with BlobCheckpointStore.from_url(container_url, name_case="as-typed", prefix=prefix) as store:
        spelled = [
            each
            for each in store.list_scopes()
            if each.folded == scope.folded and each != scope.folded
        ]
        for each in spelled:
            for row in store.list_checkpoints(*each):
                position = Position.of(row)
                id_, number = row["partition_id"], position.sequence_number
                known = highest.get(id_)
                if known is None or (number or -1) > (known.sequence_number or -1):
                    highest[id_] = Checkpoint(scope, id_, position.offset, number)
    return [highest[id_] for id_ in in_order(highest)]


def with_numbers(
    checkpoints: Sequence[Checkpoint], hub: Address, *, timeout: float = OPERATION_TIMEOUT
) -> dict[str, Position]:
    """Return positions by partition id, and look up missing sequence numbers in the hub.

    The number of an offset is one below that of the next event. A partition that the hub does not
    have keeps its position as it is, and so does one whose offset the hub refuses.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
    """
    positions = {
        each.partition_id: Position(each.sequence_number, each.offset) for each in checkpoints
    }
    unknown = {id_: each.offset for id_, each in positions.items() if each.sequence_number is None}
    if not unknown:
        return positions
    properties = partition_properties(hub, timeout=timeout)

    def ask(id_: str) -> int | None:
        return number_of(unknown[id_], properties[id_], hub, timeout)

    numbers = ask_each([id_ for id_ in unknown if id_ in properties], ask, 2 * timeout)
    for id_, number in numbers.items():
        positions[id_] = Position(number, unknown[id_])
    return positions


def number_of(
    offset: str, properties: PartitionProperties, hub: Address, timeout: float
) -> int | None:
    """Return the sequence number of the event at an offset; None if the hub does not say it."""
    if properties.next_sequence_number == 0:  # the offset is that of another hub
        return None
    if properties.is_empty or offset == properties.last_enqueued_offset:
        return properties.next_sequence_number - 1
    try:
        following = hub.ask_first(properties.partition_id, offset, False, timeout)
    except HubUnavailableError:
        return None
    return None if following is None else following - 1


@dataclass(slots=True)
class Migrated:
    """What a migration has done.

    Attributes:
        copied: partitions whose position was written, in numeric order.
        failures: why others were not, by partition id.
    """

    copied: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Migration:
    """Plan of a migration, and its execution.

    Attributes:
        store: any synchronous checkpoint store, which receives the positions.
        scope: the group.
        steps: decision for every partition, in numeric order.
    """

    store: CheckpointStore
    scope: Scope
    steps: Sequence[Step]

    @classmethod
    def planned(
        cls,
        store: CheckpointStore,
        scope: Scope,
        source: Mapping[str, Position],
        expires_after: float = EXPIRES_AFTER,
    ) -> "Migration":
        """Compare positions with those in the store; nothing is written.

        Args:
            store: any synchronous checkpoint store.
            scope: the group.
            source: positions by partition id.
            expires_after: seconds after which an ownership that was not renewed counts as expired.
        """
        stored = group(store, scope, expires_after=expires_after)
        return cls(store, scope, plan(source, positions_of(stored), stored.live_owners))

    def execute(self, migrated: Migrated | None = None) -> Migrated:
        """Write what is ahead of the store; return what was done.

        Args:
            migrated: receives that, also if the store fails; default: a new one.

        Raises:
            StoreError: the store failed; run the migration again to continue.
        """
        migrated = migrated or Migrated()
        for step in self.steps:
            if step.action.writes:
                try:
                    write_listed(self.store, self.scope, step.partition_id, step.source)
                    migrated.copied.append(step.partition_id)
                except (StaleCheckpointError, InvalidRecordError) as error:
                    migrated.failures[step.partition_id] = str(error)
        return migrated
