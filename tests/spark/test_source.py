import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import AnalysisException, PythonException

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import list_partitions
from eventhub_checkpoints.spark import EventPosition, StartingPositions, starting_positions

pytestmark = pytest.mark.long


@pytest.fixture
def read(spark, hub):
    """Read the hub with options, as a user does."""

    def read(**options):
        source = spark.read.format("eventhubs").option(
            "connectionString", hub.connection_string("Orders")
        )
        return source.options(**options).load()

    return read


def numbers(frame):
    """The sequence numbers by partition, in order."""
    found = defaultdict(list)
    for row in frame.select("partition", "sequenceNumber").collect():
        found[row.partition].append(row.sequenceNumber)
    return {partition: sorted(held) for partition, held in sorted(found.items())}


def positions(**by_partition):
    made = {
        partition.removeprefix("p"): EventPosition.from_sequence_number(number, inclusive=True)
        for partition, number in by_partition.items()
    }
    return StartingPositions("Orders", made).to_connector()


def test_a_batch_is_everything_that_the_hub_holds(read):
    assert numbers(read()) == {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}


def test_rows_carry_the_nine_columns(read):
    [row] = read().where("partition = '1' and sequenceNumber = 7").collect()
    assert bytes(row.body) == b"1/7"
    assert abs(row.enqueuedTime - datetime.now()) < timedelta(minutes=5)
    assert (row.publisher, row.partitionKey) == (None, None)
    assert (row.properties, row.systemProperties) == ({}, {})
    assert row.offset.isdigit()


def test_one_task_reads_one_partition_that_has_events(read):
    tasks = read().selectExpr("spark_partition_id() as task", "partition").distinct().collect()
    assert sorted(row.partition for row in tasks) == ["0", "1", "2"]
    assert len({row.task for row in tasks}) == 3


def test_one_task_may_read_several_partitions(read):
    frame = read(partitionsPerTask="2")
    tasks = frame.selectExpr("spark_partition_id() as task", "partition").distinct().collect()
    assert len({row.task for row in tasks}) == 2
    assert numbers(frame) == {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}


def test_several_tasks_may_read_one_partition(read):
    frame = read(minPartitions="6")
    tasks = frame.selectExpr("spark_partition_id() as task", "partition").distinct().collect()
    assert sorted(row.partition for row in tasks) == ["0", "1", "1", "2", "2", "2"]
    assert len({row.task for row in tasks}) == 6
    assert numbers(frame) == {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}


def test_an_exact_slice_is_read(read):
    frame = read(
        startingPositions=positions(p0=3, p1=0, p2=29, p3=0),
        endingPositions=positions(p0=5, p1=0, p2=30, p3=0),
    )
    assert numbers(frame) == {"0": [3, 4], "2": [29]}


def test_options_are_taken_with_the_connectors_prefix(spark, hub):
    frame = (
        spark.read.format("eventhubs")
        .option("eventhubs.connectionString", hub.connection_string("Orders"))
        .option("eventhubs.startingPosition", "latest")
        .option("eventhubs.startingPositions", positions(p0=8))
        .load()
    )
    assert numbers(frame) == {"0": [8, 9]}


def test_nothing_to_read_is_an_empty_frame(read):
    assert read(startingPosition="latest").collect() == []


def test_times_and_offsets_are_found_in_the_hub(read, hub):
    moment = datetime.now(UTC) + timedelta(minutes=10)
    hub.publish("Orders", "0", ["late"] * 2, enqueued_time=moment)
    assert numbers(read(startingPosition=moment.isoformat())) == {"0": [10, 11]}
    assert numbers(read(startingPosition="latest", endingPosition="latest")) == {}
    offset = hub.partition_properties("Orders", "1").last_offset
    at_last = {"1": EventPosition.from_offset(offset, inclusive=True)}
    text = StartingPositions("Orders", at_last).to_connector()
    assert numbers(read(startingPosition="latest", startingPositions=text)) == {"1": [19]}
    after_first = {"1": EventPosition.from_offset("0")}
    text = StartingPositions("Orders", after_first).to_connector()
    assert numbers(read(startingPosition="latest", startingPositions=text)) == {
        "1": [*range(1, 20)]
    }


def checkpoints(scope, **by_partition):
    return [
        {
            **scope.as_dict(),
            "partition_id": partition.removeprefix("p"),
            "offset": None,
            "sequence_number": number,
        }
        for partition, number in by_partition.items()
    ]


def test_the_stores_checkpoints_decide_where_a_job_begins(read, hub, address, stored):
    stored.write_text(json.dumps(checkpoints(address.scope("consumers"), p0=8, p1=19, p3=0)))
    hub.publish("Orders", "3", ["3/0", "3/1"])
    given = {"checkpointStore": "store_for_source:make", "checkpointConsumerGroup": "consumers"}
    assert numbers(read(**given)) == {"0": [9], "2": [*range(30)], "3": [1]}
    assert numbers(read(**given, startingPosition="latest")) == {"0": [9], "3": [1]}
    assert numbers(
        read(**given, startingPosition="latest", startingPositions=positions(p2=28))
    ) == {
        "0": [9],
        "2": [28, 29],
        "3": [1],
    }


def test_positions_of_a_store_on_the_driver_are_handed_over(read, address):
    store = MemoryCheckpointStore()
    for checkpoint in checkpoints(address.scope(), p0=8, p1=19, p2=28):
        store.update_checkpoint(checkpoint)
    found = starting_positions(store, address.scope(), list_partitions(address))
    assert numbers(read(**found.to_source())) == {"0": [9], "2": [29]}


def test_a_job_begins_at_the_blobs_that_consumers_wrote(read, address, blob_container):
    with BlobCheckpointStore.from_connection_string(
        blob_container.connection_string, blob_container.name
    ) as store:
        for checkpoint in checkpoints(address.scope(), p0=8, p1=19, p2=28):
            store.update_checkpoint(checkpoint)
    assert numbers(read(checkpointStore=blob_container.url)) == {"0": [9], "2": [29]}


def test_no_plan_and_no_error_shows_a_secret(spark, hub, capfd):
    string = hub.connection_string("Orders")
    frame = spark.read.format("eventhubs").option("connectionString", string).load()
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        frame.explain(mode)
    plans = capfd.readouterr().out + frame._jdf.queryExecution().toString()
    assert "eventhubs" in plans
    broken = string.replace("EntityPath=Orders", "EntityPath=NoSuchHub")
    options = {"connectionString": broken, "operationTimeout": "3"}
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("eventhubs").options(**options).load().collect()
    secret = string.split("SharedAccessKey=")[1].split(";")[0]
    assert secret not in plans + str(caught.value)


def test_a_connection_string_stays_in_the_drivers_environment(spark):
    with pytest.raises(AnalysisException, match="NO_SUCH_VARIABLE"):
        spark.read.format("eventhubs").option("connectionString", "env:NO_SUCH_VARIABLE").load()
    found = "env:HUB_SECRET_FOR_SOURCE"
    options = {"connectionString": found, "operationTimeout": "0.5"}
    with pytest.raises(AnalysisException, match=r"in\.the\.environment with event hub .Orders."):
        spark.read.format("eventhubs").options(**options).load().collect()


def test_an_unknown_option_fails_where_it_is_given(read):
    with pytest.raises(AnalysisException, match="did you mean startingPosition"):
        read(startingPositon="earliest")


def test_a_schema_of_ones_own_is_refused(spark, hub):
    source = spark.read.format("eventhubs").schema("body string")
    with pytest.raises(AnalysisException, match="leave out"):
        source.option("connectionString", hub.connection_string("Orders")).load().collect()


def test_a_wrong_consumer_group_ends_in_a_sentence_of_ours(spark):
    with LocalHub({"Orders": 1}, consumer_groups=["known"]) as hub:
        hub.publish("Orders", "0", ["event"])
        options = {"connectionString": hub.connection_string("Orders"), "consumerGroup": "nope"}
        frame = spark.read.format("eventhubs").options(**options).load()
        with pytest.raises(PythonException, match="no consumer group 'nope'") as caught:
            frame.collect()
    assert "eventhub_checkpoints.errors.ConfigurationError: partition 0 of" in str(caught.value)
    assert "ConnectionLostError" not in str(caught.value)


def test_a_wrong_key_ends_in_a_sentence_of_ours(read, hub):
    hub.refuse_tokens()
    with pytest.raises(AnalysisException, match="refuses access to event hub 'Orders'") as caught:
        read().collect()
    hub.refuse_tokens(False)
    assert "AuthenticationError" not in str(caught.value)


def test_a_start_that_has_expired_fails_unless_loss_is_allowed(read, hub):
    hub.trim("Orders", "2", before=25)
    start = positions(p0=9, p1=19, p2=20)
    with pytest.raises(AnalysisException, match=r"partition 2 of .* is 25, so 5 events"):
        read(startingPositions=start).collect()
    frame = read(startingPositions=start, failOnDataLoss="false")
    assert numbers(frame) == {"0": [9], "1": [19], "2": [*range(25, 30)]}


def test_checkpoints_of_a_hub_that_was_created_again_are_told(read, hub):
    hub.recreate("Orders")
    hub.publish("Orders", "0", ["new"] * 3)
    with pytest.raises(AnalysisException, match=r"partition 0 of .*deleted and created"):
        read(startingPositions=positions(p0=9)).collect()
    again = {"startingPositions": positions(p0=9), "failOnDataLoss": "false"}
    assert numbers(read(**again)) == {"0": [0, 1, 2]}


def test_positions_of_a_partition_that_is_not_there_are_refused(read):
    with pytest.raises(AnalysisException, match="names partition 9; the hub has 0, 1, 2, 3"):
        read(startingPositions=positions(p9=0)).collect()


@pytest.mark.parametrize("path", ["fast", "public"])
def test_a_large_partition_comes_in_full(read, hub, path):
    hub.publish("Orders", "3", [b"x" * 200] * 5000)
    frame = read(startingPosition="latest", startingPositions=positions(p3=0), receivePath=path)
    assert numbers(frame) == {"3": [*range(5000)]}
