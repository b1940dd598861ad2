from datetime import UTC, datetime, timedelta

import pytest

from eventhub_checkpoints import ConfigurationError, open_store
from eventhub_checkpoints.receive import (
    DataLossError,
    HubAddress,
    OffsetRange,
    PartitionProperties,
    ReadSettings,
)
from eventhub_checkpoints.receive.resolving import at_hand
from eventhub_checkpoints.receive.retained import retained
from eventhub_checkpoints.spark import EventPosition
from eventhub_checkpoints.spark.source.options import SourceOptions
from eventhub_checkpoints.spark.source.planning import where_to_start

NEWEST = datetime(2026, 11, 21, 10, tzinfo=UTC)
HELD = PartitionProperties("3", 100, 200, "9900", NEWEST)
NONE_LEFT = PartitionProperties("3", 200, 200, "9900", NEWEST)
ADDRESS = HubAddress("ns", "orders", "$Default", "secret")
GO_ON = ReadSettings(fail_on_data_loss=False)


@pytest.mark.parametrize(
    ("position", "found", "number"),
    [
        (EventPosition.from_sequence_number(5), HELD, 6),
        (EventPosition.from_start_of_stream(), HELD, 100),
        (EventPosition.from_start_of_stream(), NONE_LEFT, 200),
        (EventPosition.from_end_of_stream(), HELD, 200),
        (EventPosition.from_enqueued_time(NEWEST + timedelta(milliseconds=1)), HELD, 200),
        (EventPosition.from_enqueued_time(NEWEST), HELD, None),
        (EventPosition.from_enqueued_time(NEWEST), NONE_LEFT, 200),
        (EventPosition.from_offset("9900"), HELD, 200),
        (EventPosition.from_offset("9900", inclusive=True), HELD, 199),
        (EventPosition.from_offset("9800"), HELD, None),
        (EventPosition.from_offset("9900", inclusive=True), NONE_LEFT, 200),
    ],
)
def test_what_the_properties_tell_is_not_asked_again(position, found, number):
    assert at_hand(position, found) == number


FAIL = ReadSettings()


def plan(start, end, settings=FAIL, found=HELD):
    return retained(ADDRESS, settings, found, start, end)


def test_a_range_within_what_is_held_is_taken_as_it_is():
    assert plan(100, 200) == OffsetRange("3", 100, 200)


def test_a_start_before_the_first_retained_names_partition_wanted_and_first():
    with pytest.raises(DataLossError, match="partition 3 of ns/orders: sequence number 40") as why:
        plan(40, 200)
    assert (why.value.partition_id, why.value.wanted, why.value.first_retained) == ("3", 40, 100)
    assert "60 events are lost" in str(why.value)


def test_without_fail_on_data_loss_it_begins_at_the_first_retained(caplog):
    assert plan(40, 200, GO_ON) == OffsetRange("3", 100, 200)
    assert "sequence number 40 has expired" in caplog.text


def test_a_range_that_has_expired_whole_is_empty():
    assert plan(40, 60, GO_ON).is_empty


def test_a_start_behind_the_end_is_a_hub_created_again():
    with pytest.raises(DataLossError, match=r"201 lies behind the end .* gets 200"):
        plan(201, 200)
    assert plan(201, 200, GO_ON) == OffsetRange("3", 100, 200)


def test_an_end_behind_the_last_event_is_refused_or_cut():
    with pytest.raises(DataLossError, match="partition 3"):
        plan(100, 201)
    assert plan(150, 300, GO_ON) == OffsetRange("3", 150, 200)


def test_a_start_at_the_end_is_an_empty_range():
    assert plan(200, 200).is_empty
    assert plan(0, 0, found=PartitionProperties("3", 0, 0, "-1", NEWEST)).is_empty


def test_a_range_that_ends_before_it_begins_names_the_partition():
    with pytest.raises(ConfigurationError, match="partition 3: a range from 150 until 120"):
        plan(150, 120)


def test_a_store_that_has_no_checkpoint_of_the_group_is_said(tmp_path, caplog):
    url = f"sqlite:///{tmp_path}/positions.db"
    address = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"
    options = SourceOptions.parse({"connectionString": address, "checkpointStore": url})
    with open_store(url, create_tables=True) as store:
        store.create()
        assert where_to_start(options, {"3": HELD}) == {"3": EventPosition.from_start_of_stream()}
        assert "the store has no checkpoint of ns/orders/$Default" in caplog.text
        caplog.clear()
        row = {"partition_id": "3", "offset": "9800", "sequence_number": 150}
        store.update_checkpoint(options.address.scope().as_dict() | row)
    assert where_to_start(options, {"3": HELD}) == {"3": EventPosition.from_sequence_number(150)}
    assert not caplog.text
