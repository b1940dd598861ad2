import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import HubRanges, OffsetRange, ranges_by_task, ranges_of

RANGES = [OffsetRange("2", 5, 8), OffsetRange("0", 3, 5), OffsetRange("1", 7, 7)]
IN_ORDER = [RANGES[1], RANGES[2], RANGES[0]]
EARLIEST = '{"offset":"-1","seqNo":-1,"enqueuedTime":null,"isInclusive":true}'


@pytest.fixture
def read(spark, hub):
    """A DataFrame of the hub, with options."""

    def read(**options):
        source = spark.read.format("eventhubs")
        source = source.option("connectionString", hub.connection_string("Orders"))
        return source.options(**options).load()

    return read


def test_ranges_are_two_options_of_kafkas_source():
    assert HubRanges("Orders", RANGES).to_kafka() == {
        "startingOffsets": '{"Orders":{"0":3,"1":7,"2":5}}',
        "endingOffsets": '{"Orders":{"0":5,"1":7,"2":8}}',
    }
    assert '{"other":{' in HubRanges("Orders", RANGES).to_kafka("other")["endingOffsets"]


def test_what_is_not_named_ends_where_it_begins():
    options = HubRanges("Orders", RANGES).to_connector()
    assert options["eventhubs.startingPosition"] == EARLIEST
    assert options["eventhubs.endingPosition"] == EARLIEST
    assert (
        options["eventhubs.startingPositions"] == HubRanges("Orders", RANGES).starts.to_connector()
    )
    assert sorted(options) == sorted(
        f"eventhubs.{name}" for name in HubRanges("Orders", RANGES).to_source()
    )


def test_two_ranges_of_one_partition_are_refused():
    with pytest.raises(ConfigurationError, match="partition 3 has several ranges"):
        HubRanges("Orders", [OffsetRange("3", 0, 1), OffsetRange("3", 5, 6)])


def test_a_dataframe_holds_exactly_the_events_of_the_ranges(read):
    frame = read(**HubRanges("Orders", RANGES).to_source())
    rows = frame.select("partition", "sequenceNumber").collect()
    assert sorted(map(tuple, rows)) == [("0", 3), ("0", 4), ("2", 5), ("2", 6), ("2", 7)]
    assert ranges_of(frame) == [one for one in IN_ORDER if not one.is_empty]


def test_each_task_says_which_ranges_it_holds(read):
    found = ranges_by_task(read(**HubRanges("Orders", RANGES).to_source()))
    held = [one for ranges in found.values() for one in ranges]
    assert sorted(held, key=lambda one: one.partition_id) == [IN_ORDER[0], IN_ORDER[2]]
    assert all(isinstance(task, int) for task in found)
    in_one_task = ranges_by_task(read(**HubRanges("Orders", RANGES).to_source()).coalesce(1))
    assert in_one_task == {0: [IN_ORDER[0], IN_ORDER[2]]}


def test_a_dataframe_without_rows_has_no_range(read):
    frame = read(**HubRanges("Orders", [OffsetRange("0", 3, 3)]).to_source())
    assert ranges_of(frame) == []
    assert ranges_by_task(frame) == {}


def test_the_columns_of_kafka_are_known(spark):
    values = "('Orders', 10, 5L), ('Orders', 10, 7L), ('Orders', 2, 0L)"
    made = "SELECT * FROM VALUES {} AS kafka(topic, partition, offset)"
    frame = spark.sql(made.format(values))
    assert ranges_of(frame) == [OffsetRange("2", 0, 1), OffsetRange("10", 5, 8)]
    two = spark.sql(made.format(values + ", ('Payments', 1, 1L)"))
    with pytest.raises(ConfigurationError, match="of the topics Orders, Payments"):
        ranges_of(two)


def test_a_dataframe_without_positions_says_which_columns_tell_them(spark):
    with pytest.raises(ConfigurationError, match="has the columns id; its ranges are"):
        ranges_of(spark.range(3))


def test_ranges_are_completed_by_empty_ones_for_kafka(hub):
    completed = HubRanges("Orders", RANGES).completed(hub.connection_string("Orders"))
    assert completed.to_kafka() == {
        "startingOffsets": '{"Orders":{"0":3,"1":7,"2":5,"3":0}}',
        "endingOffsets": '{"Orders":{"0":5,"1":7,"2":8,"3":0}}',
    }
