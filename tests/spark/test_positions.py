import subprocess
import sys
from datetime import UTC, datetime

import pytest

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, Scope
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.spark import EventPosition, starting_positions

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


@pytest.fixture
def store():
    store = MemoryCheckpointStore()
    for partition, number in {"0": 0, "2": 123}.items():
        store.update_checkpoint(
            {
                **SCOPE.as_dict(),
                "partition_id": partition,
                "offset": str(number * 100),
                "sequence_number": number,
            }
        )
    return store


def test_a_checkpoint_at_n_begins_at_n_plus_1(store):
    positions = starting_positions(store, SCOPE, ["0", "2"]).positions
    assert {one: position.sequence_number for one, position in positions.items()} == {
        "0": 1,
        "2": 124,
    }


def test_every_partition_is_named_in_numeric_order(store):
    found = starting_positions(store, SCOPE, [10, "2", 0, "1"])
    assert list(found.positions) == ["0", "1", "2", "10"]
    assert found.to_kafka() == '{"Orders":{"0":1,"1":-2,"2":124,"10":-2}}'


def test_the_hub_keeps_its_case_for_the_connector(store):
    text = starting_positions(store, SCOPE, ["0"]).to_connector()
    assert r"\"ehName\":\"Orders\"" in text


def test_a_topic_of_another_name_is_written(store):
    assert starting_positions(store, SCOPE, ["0"]).to_kafka("orders-v2") == '{"orders-v2":{"0":1}}'


@pytest.mark.parametrize(
    "missing",
    [
        "latest",
        EventPosition.from_end_of_stream(),
        {"1": "latest"},
        {1: EventPosition.from_end_of_stream()},
        lambda partition: "latest" if partition == "1" else "earliest",
    ],
    ids=["word", "position", "dict", "dict of int", "callable"],
)
def test_a_partition_without_a_checkpoint_begins_where_missing_says(store, missing):
    positions = starting_positions(store, SCOPE, ["0", "1"], missing).positions
    assert positions["1"] == EventPosition.from_end_of_stream()


def test_missing_may_be_a_time(store):
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    positions = starting_positions(store, SCOPE, ["1"], missing=moment).positions
    assert positions["1"] == EventPosition.from_enqueued_time(moment)


def test_missing_error_names_the_partitions(store):
    with pytest.raises(ConfigurationError, match="no checkpoint of partition 1, 3"):
        starting_positions(store, SCOPE, ["0", "1", "2", "3"], missing="error")


def test_a_dict_that_leaves_a_partition_out_is_an_error(store):
    with pytest.raises(ConfigurationError, match="partition 1 has no checkpoint"):
        starting_positions(store, SCOPE, ["0", "1"], missing={"0": "earliest"})


@pytest.mark.parametrize("missing", ["begin", 5, None])
def test_a_word_that_means_no_position_is_refused(store, missing):
    with pytest.raises(ConfigurationError, match="is not a position"):
        starting_positions(store, SCOPE, ["1"], missing=missing)


def test_a_word_that_means_no_position_is_answered_with_all_that_do(store):
    with pytest.raises(ConfigurationError) as caught:
        starting_positions(store, SCOPE, ["1"], missing="bogus")
    for form in ("'earliest'", "'latest'", "'error'", "datetime", "EventPosition", "dict"):
        assert form in str(caught.value)
    assert "callable" in str(caught.value)


def test_a_scope_that_is_none_is_refused_without_showing_it(store):
    with pytest.raises(ConfigurationError, match=r"^scope is of type str; expected a Scope$"):
        starting_positions(store, "Endpoint=sb://ns/;SharedAccessKey=k", ["0"])


@pytest.mark.parametrize(
    "partitions", [[], "12", b"12", ["a"], ["-1"], [""], None, 4, [None], [1.0]]
)
def test_partition_ids_must_be_decimal_numbers(store, partitions):
    with pytest.raises(ConfigurationError, match="partition_ids"):
        starting_positions(store, SCOPE, partitions)


def test_a_checkpoint_without_a_sequence_number_begins_after_its_offset(foreign_store):
    store = foreign_store({"partition_id": "0", "offset": "4711", "sequence_number": None})
    found = starting_positions(store, SCOPE, ["0"])
    assert found.positions["0"] == EventPosition.from_offset("4711", inclusive=False)
    with pytest.raises(ConfigurationError, match="partition 0 "):
        found.to_kafka()


def test_a_checkpoint_with_neither_number_nor_offset_is_an_error(foreign_store):
    store = foreign_store({"partition_id": "7", "offset": "", "sequence_number": None})
    with pytest.raises(ConfigurationError, match="partition 7 has neither"):
        starting_positions(store, SCOPE, ["7"])


def test_a_checkpoint_of_a_partition_that_was_not_asked_for_is_reported(store, caplog):
    starting_positions(store, SCOPE, ["0"])
    assert "partitions not in partition_ids: ['2']" in caplog.text


def test_an_aio_store_is_refused_and_not_guessed_around():
    with pytest.raises(ConfigurationError, match="synchronous"):
        starting_positions(AioMemoryCheckpointStore(), SCOPE, ["0"])


def test_a_store_is_opened_by_its_url():
    found = starting_positions("memory:", SCOPE, ["0"])
    assert found.positions["0"] == EventPosition.from_start_of_stream()


def test_to_source_is_one_option_that_the_source_reads(store):
    found = starting_positions(store, SCOPE, ["0"])
    assert found.to_source() == {"startingPositions": found.to_connector()}


@pytest.mark.waits
def test_positions_need_neither_pyspark_nor_pyarrow():
    code = "import sys, eventhub_checkpoints.spark;print({'pyspark', 'pyarrow'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_a_namespace_without_checkpoints_is_said_once_with_the_scopes_that_have_some(store, caplog):
    wrong = SCOPE._replace(fully_qualified_namespace="other")
    starting_positions(store, wrong, ["0", "1"])
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "no checkpoint of 'other/Orders/$Default'; it holds 'ns.service" in record.getMessage()
    with pytest.raises(ConfigurationError, match=r"it holds 'ns\.servicebus"):
        starting_positions(store, wrong, ["0", "1"], missing="error")
    with pytest.raises(ConfigurationError, match=r"it holds 'ns\.servicebus"):
        starting_positions(store, wrong, ["0", "1"], missing={"0": "earliest"})


def test_a_store_that_cannot_list_its_scopes_names_the_one_that_was_asked_for(
    foreign_store, caplog
):
    starting_positions(foreign_store(), SCOPE, ["0"])
    assert f"no checkpoint of '{SCOPE}' (its partitions" in caplog.text
