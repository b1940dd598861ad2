"""From options to exact ranges: everything that moves is asked once, on the driver.

A task that is run again must read the same events, so `earliest`, `latest`, times and offsets
become sequence numbers before the first task starts.
"""

from collections.abc import Mapping

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.receive.resolving import resolve
from eventhub_checkpoints.receive.retained import retained
from eventhub_checkpoints.spark.positions.from_store import starting_positions
from eventhub_checkpoints.spark.source.options import SourceOptions


def plan_ranges(options: SourceOptions) -> list[OffsetRange]:
    """The range of each partition that has anything to read.

    Raises:
        ConfigurationError: a position names a partition that the hub does not have, or a range
            ends before it begins.
        DataLossError: a range begins before the first retained event or behind the end.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the checkpoint store could not be asked.
    """
    timeout = options.reading.operation_timeout
    found = partition_properties(options.address, timeout=timeout)
    starts = resolve(options.address, where_to_start(options, found), found, timeout)
    ends = resolve(options.address, where_to_end(options, found), found, timeout)
    ranges = [
        retained(options.address, options.reading, found[one], starts[one], ends[one])
        for one in found
    ]
    return [one for one in ranges if not one.is_empty]


def where_to_start(
    options: SourceOptions, found: Mapping[str, PartitionProperties]
) -> dict[str, EventPosition]:
    """The checkpoint; else the partition's own position; else the one for all."""
    check_named("startingPositions", options.starting_positions, found)
    given = {one: options.starting_positions.get(one, options.starting_position) for one in found}
    if not options.checkpoint_store:
        return given
    scope = options.address.scope(options.checkpoint_group)
    if options.missing == "error":
        # Of a partition that never had an event nothing can be lost.
        given = {one: given[one] for one, held in found.items() if not held.next_sequence_number}
    positions = starting_positions(options.checkpoint_store, scope, list(found), missing=given)
    return dict(positions.positions)


def where_to_end(
    options: SourceOptions, found: Mapping[str, PartitionProperties]
) -> dict[str, EventPosition]:
    """The partition's own position; else the one for all."""
    check_named("endingPositions", options.ending_positions, found)
    return {one: options.ending_positions.get(one, options.ending_position) for one in found}


def check_named(
    name: str, positions: Mapping[str, EventPosition], found: Mapping[str, PartitionProperties]
) -> None:
    """Refuse positions of partitions that the hub does not have."""
    absent = sorted(positions.keys() - found.keys(), key=int)
    if absent:
        raise ConfigurationError(
            f"{name} names partition {', '.join(absent)}; the hub has {', '.join(found)}"
        )
