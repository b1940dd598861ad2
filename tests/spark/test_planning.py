from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eventhub_checkpoints import ConfigurationError, Scope, open_store
from eventhub_checkpoints.receive import (
    DataLossError,
    HubAddress,
    OffsetRange,
    PartitionProperties,
    ReadSettings,
)
from eventhub_checkpoints.receive.read_plan import at_hand, retained
from eventhub_checkpoints.spark import EventPosition
from eventhub_checkpoints.spark.source.batches import starts_of
from eventhub_checkpoints.spark.source.options import SourceOptions

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
    assert (why.value.partition_id, why.value.requested, why.value.first_retained) == ("3", 40, 100)
    assert "60 events are lost" in str(why.value)


def test_without_fail_on_data_loss_it_begins_at_the_first_retained(caplog):
    assert plan(40, 200, GO_ON) == OffsetRange("3", 100, 200)
    assert "sequence number 40 has expired" in caplog.text


def test_a_range_that_has_expired_whole_is_empty():
    assert plan(40, 60, GO_ON).is_empty


def test_a_start_behind_the_end_is_a_hub_created_again():
    with pytest.raises(DataLossError, match=r"201 lies beyond the end .* gets 200"):
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
    with pytest.raises(ConfigurationError, match="partition 3: until_sequence_number is 120"):
        plan(150, 120)


STRING = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"


@pytest.fixture
def store(tmp_path):
    """A store with a checkpoint of group `billing`, which names its URL."""
    url = f"sqlite:///{tmp_path}/positions.db"
    with open_store(url) as store:
        store.create()
        row = {"partition_id": "3", "offset": "9800", "sequence_number": 150}
        store.update_checkpoint(Scope("ns", "orders", "billing").as_dict() | row)
    return url


def options_of(**options):
    return SourceOptions.parse({"connectionString": STRING, **options})


def test_checkpoints_of_the_group_decide_and_nothing_is_said(store, caplog):
    options = options_of(checkpointStore=store, checkpointConsumerGroup="billing")
    assert starts_of(options, {"3": HELD}) == {"3": EventPosition.from_sequence_number(150)}
    assert not caplog.text


def test_a_group_without_checkpoints_is_said_once_with_those_that_have_some(store, caplog):
    options = options_of(checkpointStore=store, checkpointConsumerGroup="biling")
    found = {"3": HELD, "4": HELD}
    assert set(starts_of(options, found).values()) == {EventPosition.from_start_of_stream()}
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "no checkpoint of 'ns/orders/biling'; it holds 'ns/orders/billing'" in caplog.text


@pytest.mark.parametrize("group", ["biling", "billing"])
def test_missing_error_refuses_a_partition_without_a_checkpoint(store, caplog, group):
    options = options_of(checkpointStore=store, checkpointConsumerGroup=group, missing="error")
    found = {"3": HELD, "4": replace(HELD, partition_id="4")}
    with pytest.raises(ConfigurationError) as raised:
        starts_of(options, found)
    assert f"'ns/orders/{group}'" in str(raised.value)
    assert ("it holds 'ns/orders/billing'" in str(raised.value)) == (group == "biling")
    assert ("partition 4" in str(raised.value)) == (group == "billing")


def test_missing_error_lets_a_partition_be_that_never_had_an_event(store):
    options = options_of(checkpointStore=store, checkpointConsumerGroup="billing", missing="error")
    unused = PartitionProperties("4", 0, 0, "", None)
    assert starts_of(options, {"3": HELD, "4": unused}) == {
        "3": EventPosition.from_sequence_number(150),
        "4": EventPosition.from_start_of_stream(),
    }
