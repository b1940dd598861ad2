"""Positions go out in every format and come back as they were."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints._shared.offset_words import is_taken
from eventhub_checkpoints.spark import (
    EndingPositions,
    EventPosition,
    HubRanges,
    OffsetRange,
    StartingPositions,
    parse_progress,
)
from eventhub_checkpoints.spark.offsets import StreamOffset
from eventhub_checkpoints.spark.position_formats import (
    compact,
    connector_fields,
    kafka_number,
    kafka_position,
    parse_position,
)
from eventhub_checkpoints.spark.source.options import SourceOptions

pytestmark = pytest.mark.waits

CONNECTION = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath={}"

PARTITIONS = st.integers(0, 2000).map(str)
HUBS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}[A-Za-z0-9]", fullmatch=True)
NUMBERS = st.integers(0, 2**63 - 2)
AT_NUMBERS = st.builds(EventPosition.from_sequence_number, NUMBERS, st.booleans())
AT_ENDS = st.sampled_from(
    [EventPosition.from_start_of_stream(), EventPosition.from_end_of_stream()]
)
AT_TIMES = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30)).map(
    lambda moment: EventPosition.from_enqueued_time(moment.replace(tzinfo=UTC))
)
AT_OFFSETS = st.builds(
    EventPosition.from_offset, st.text(min_size=1).filter(is_taken), st.booleans()
)
KINDS = st.sampled_from([StartingPositions, EndingPositions])


def by_partition(positions):
    return st.dictionaries(PARTITIONS, positions, min_size=1).map(
        lambda made: {one: made[one] for one in sorted(made, key=int)}
    )


@given(st.one_of(AT_NUMBERS, AT_ENDS, AT_TIMES, AT_OFFSETS))
def test_one_position_comes_back_from_the_connectors_text(position):
    assert parse_position(compact(connector_fields(position)), "here") == position


@given(st.one_of(AT_NUMBERS, AT_ENDS))
def test_one_position_comes_back_from_kafkas_number(position):
    assert kafka_position(kafka_number(position), "here") == position


@given(KINDS, HUBS, by_partition(st.one_of(AT_NUMBERS, AT_ENDS, AT_TIMES, AT_OFFSETS)))
def test_positions_come_back_from_the_connectors_option(kind, hub, positions):
    made = kind(hub, positions)
    assert kind.from_connector(made.to_connector(), hub) == made


@given(HUBS, by_partition(st.one_of(AT_NUMBERS, AT_ENDS)))
def test_positions_come_back_from_kafkas_option(hub, positions):
    made = StartingPositions(hub, positions)
    assert StartingPositions.from_kafka(made.to_kafka(), hub) == made


@given(HUBS, by_partition(AT_NUMBERS))
def test_ends_come_back_from_kafkas_option(hub, positions):
    made = EndingPositions(hub, positions)
    assert EndingPositions.from_kafka(made.to_kafka("topic"), "topic").positions == positions


@given(HUBS, by_partition(st.one_of(AT_NUMBERS, AT_ENDS, AT_TIMES, AT_OFFSETS)))
def test_our_source_reads_the_positions_that_were_written_for_it(hub, positions):
    starts, ends = StartingPositions(hub, positions), EndingPositions(hub, positions)
    options = {"connectionString": CONNECTION.format(hub), **starts.to_source(), **ends.to_source()}
    read = SourceOptions.parse(options)
    assert (read.starting_positions, read.ending_positions) == (positions, positions)


@given(HUBS, st.dictionaries(PARTITIONS, NUMBERS, min_size=1))
def test_checkpoints_become_positions_progress_and_checkpoints_again(hub, last):
    starts = StartingPositions.after(hub, last, list(last))
    following = {one: position.sequence_number for one, position in starts.positions.items()}
    assert parse_progress(starts.to_kafka(), hub) == last
    assert parse_progress(json.dumps({hub: following}), hub) == last
    ours = StreamOffset(hub, following, begins=following, lost={"0": 3}).to_json()
    assert parse_progress(json.dumps(ours), hub) == last


@given(HUBS, st.dictionaries(PARTITIONS, st.tuples(NUMBERS, NUMBERS), min_size=1))
def test_ranges_come_back_from_their_two_options(hub, pairs):
    ranges = [OffsetRange(one, min(pair), max(pair)) for one, pair in pairs.items()]
    options = HubRanges(hub, ranges).to_kafka()
    starts = StartingPositions.from_kafka(options["startingOffsets"], hub).positions
    ends = EndingPositions.from_kafka(options["endingOffsets"], hub).positions
    assert sorted(ranges, key=lambda one: int(one.partition_id)) == [
        OffsetRange(one, starts[one].sequence_number, ends[one].sequence_number) for one in starts
    ]
