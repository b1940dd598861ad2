import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import parse_progress
from eventhub_checkpoints.spark.offsets import StreamOffset

pytestmark = pytest.mark.waits

NUMBERS = st.dictionaries(st.integers(0, 40).map(str), st.integers(0, 2**63 - 1), max_size=6)
OFFSETS = st.builds(
    StreamOffset,
    st.just("Orders"),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.booleans(),
    namespace=st.just("ns"),
    created=st.sampled_from(["", "2026-11-24T10:00:00.123+00:00"]),
)


@given(OFFSETS)
def test_an_offset_comes_back_as_the_same_text(offset):
    text = json.dumps(offset.to_json())
    again = StreamOffset.from_json(json.loads(text), "Orders", "ns")
    assert again == offset
    assert json.dumps(again.to_json()) == text


def test_partitions_stand_in_numeric_order_and_our_keys_behind_them():
    offset = StreamOffset("Orders", {"10": 1, "9": 2}, {"10": 1, "9": 0}, {"9": 5}, True, "ns")
    assert json.dumps(offset.to_json()) == (
        '{"9": 2, "10": 1, "_from": {"9": 0, "10": 1}, "_hub": "Orders", "_initial": true, '
        '"_lost": {"9": 5}, "_namespace": "ns"}'
    )


@given(OFFSETS)
def test_progress_finds_the_numbers_and_nothing_else(offset):
    last = {one: number - 1 for one, number in offset.next.items() if number}
    assert parse_progress(offset.to_json(), "orders") == last


def test_another_hub_is_told_before_its_numbers_are_used():
    offset = StreamOffset("Orders", {"0": 5}, namespace="Test.net").to_json()
    assert StreamOffset.from_json(offset, "ORDERS", "test.NET").next == {"0": 5}
    with pytest.raises(ConfigurationError, match="hub 'Orders', and the options name 'clicks'"):
        StreamOffset.from_json(offset, "clicks", "test.net")
    with pytest.raises(ConfigurationError, match=r"namespace .*, and the options name 'prod"):
        StreamOffset.from_json(offset, "orders", "production.net")


def test_an_offset_of_before_the_namespace_was_written_takes_that_of_the_options():
    offset = StreamOffset.from_json({"0": 5, "_hub": "orders"}, "orders", "production.net")
    assert offset.to_json() == {"0": 5, "_hub": "orders", "_namespace": "production.net"}


def test_a_cluster_without_a_lasting_name_is_not_compared():
    stored = StreamOffset("orders", {"0": 5}, namespace="broker-1:9092").to_json()
    assert StreamOffset.from_json(stored, "orders", "").to_json() == {"0": 5, "_hub": "orders"}


def test_the_checkpoint_of_another_source_is_told():
    for odd in (
        {"orders": {"0": 5}},
        {"0": "5"},
        {"logOffset": True},
        {"logOffset": 5},
        {"0": -1},
        {"0": 2**63},
        {"0": 5, "_from": {"0": "5"}},
        {"0": 5, "_lost": [5]},
        {"0": 5, "_from": None},
        {"0": 5, "_hub": 5},
        {"0": 5, "_namespace": None},
        {"0": 5, "_created": [1]},
        {"0": 5, "_initial": "no"},
        {},
        0,
        1.5,
        True,
        None,
        "x",
        [1],
    ):
        with pytest.raises(ConfigurationError, match="written by another source"):
            StreamOffset.from_json(odd, "orders", "ns")


def test_a_partition_begins_where_the_batch_before_ended_unless_its_end_says_otherwise():
    before = StreamOffset("Orders", {"0": 5, "1": 7})
    after = StreamOffset("Orders", {"0": 9, "1": 8, "2": 4}, {"0": 6})
    assert [after.begin(one, before) for one in after.next] == [6, 7, 4]


def test_an_offset_with_the_path_of_an_endpoint_is_of_its_host():
    offset = {"0": 5, "_hub": "orders", "_namespace": "test.net/orders"}
    read = StreamOffset.from_json(offset, "orders", "test.net")
    assert (read.next, read.namespace) == ({"0": 5}, "test.net")
    with pytest.raises(ConfigurationError, match=r"namespace 'test\.net', and the options"):
        StreamOffset.from_json(offset, "orders", "production.net")
