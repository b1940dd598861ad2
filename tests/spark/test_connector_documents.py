"""The examples of the JVM connector's two documents, in their order, as its users would move them.

What differs is what `docs/how-to/spark-connector.md` says: nothing of the JVM is called, a
connection string is not encrypted, the start at the end is written out, and a batch is written
with mode `append`.
"""

import datetime
import json
from collections import Counter
from contextlib import contextmanager, suppress

import pytest
from pyspark.errors import AnalysisException

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.localhub import LocalHub

pytestmark = pytest.mark.long

NAME = "Orders"
WAIT = 240

NOT_SET = {"offset": None, "seqNo": -1, "enqueuedTime": None, "isInclusive": True}
"""The document's values of a field that is not in use."""


@pytest.fixture
def connection_string(hub: LocalHub) -> str:
    """As the document for PySpark spells it: the hub also stands in the endpoint."""
    host, string = f"127.0.0.1:{hub.port}", hub.connection_string(NAME)
    assert f"sb://{host}" in string
    return string.replace(f"sb://{host}", f"sb://{host}/{NAME}")


@pytest.fixture
def conf(connection_string):
    """The dictionary to which the document adds one option after another."""
    return {"eventhubs.connectionString": connection_string}


@pytest.fixture
def target(hub):
    with suppress(ValueError):
        hub.create("out", 2)
    hub.recreate("out", 2)
    return {"eventhubs.connectionString": hub.connection_string("out")}


def per_partition(**positions):
    """`startingPositions` by the document's way: the keys are JSON, too."""
    keys = {each: {"ehName": NAME, "partitionId": int(each[1:])} for each in positions}
    return json.dumps({json.dumps(keys[each]): position for each, position in positions.items()})


def numbers(frame):
    return Counter(row.partition for row in frame.select("partition").collect())


@contextmanager
def running(writer, checkpoint):
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        yield query
        query.processAllAvailable()
    finally:
        query.stop()


# "Event Hubs Configuration", "Consumer Group", "Event Position", batches


def test_a_batch_from_the_start_until_now(spark, conf):
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
    conf["eventhubs.consumerGroup"] = "$Default"
    conf["eventhubs.startingPosition"] = json.dumps({**NOT_SET, "offset": "-1"})
    conf["eventhubs.endingPosition"] = json.dumps(
        {**NOT_SET, "enqueuedTime": end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    )
    df = spark.read.format("eventhubs").options(**conf).load()
    df = df.withColumn("body", df["body"].cast("string"))
    assert {row.body for row in df.where("partition = '0'").collect()} == {
        f"0/{number}" for number in range(10)
    }
    assert df.count() == 60
    columns = ["body", "partition", "offset", "sequenceNumber", "enqueuedTime", "publisher"]
    assert df.columns == [*columns, "partitionKey", "properties", "systemProperties"]


# "Per Partition Configuration", "Receiver Timeout and Operation Timeout"


def test_positions_of_single_partitions_and_durations(spark, conf):
    conf["eventhubs.startingPositions"] = per_partition(
        p0={**NOT_SET, "offset": "@latest"}, p2={**NOT_SET, "seqNo": 25}
    )
    conf["eventhubs.receiverTimeout"] = datetime.time(0, 3, 20).strftime("PT%HH%MM%SS")
    conf["eventhubs.operationTimeout"] = datetime.time(0, 1, 0).strftime("PT%HH%MM%SS")
    df = spark.read.format("eventhubs").options(**conf).load()
    assert numbers(df) == {"1": 20, "2": 5}
    conf["eventhubs.endingPositions"] = per_partition(
        p1={**NOT_SET, "seqNo": 4}, p2={**NOT_SET, "seqNo": 27}
    )
    df = spark.read.format("eventhubs").options(**conf).load()
    assert numbers(df) == {"1": 4, "2": 2}


def test_a_namespace_and_the_name_of_its_hub(spark, hub):
    # Instead of the ConnectionStringBuilder of the document for Scala.
    without = hub.connection_string(NAME).replace(f";EntityPath={NAME}", "")
    conf = {"eventhubs.connectionString": without}
    with pytest.raises((AnalysisException, ConfigurationError), match="names no hub"):
        spark.read.format("eventhubs").options(**conf).load()
    df = spark.read.format("eventhubs").options(**conf, eventHubName=NAME).load()
    assert df.where("partition = '1'").count() == 20


# "Creating an Event Hubs Source for Streaming Queries", "Writing Data", "Checkpointing"


def test_a_stream_from_the_end_with_a_limit_to_another_hub(spark, hub, conf, target, tmp_path):
    conf["eventhubs.startingPositions"] = per_partition(p2={**NOT_SET, "seqNo": 28})
    conf["eventhubs.startingPosition"] = "latest"
    conf["maxEventsPerTrigger"] = "10000"
    conf["eventhubs.useExclusiveReceiver"] = True
    df = spark.readStream.format("eventhubs").options(**conf).load()
    writer = df.select("body").writeStream.format("eventhubs").options(**target)
    with running(writer, tmp_path / "body"):
        pass
    # It goes on from its checkpoint, whatever the positions are.
    hub.publish(NAME, "0", ["more"], partition_key="k")
    writer = df.selectExpr("partitionKey", "body").writeStream.format("eventhubs")
    with running(writer.options(**target), tmp_path / "body"):
        pass
    sent = spark.read.format("eventhubs").options(**target).load().collect()
    assert sorted((bytes(row.body), row.partitionKey) for row in sent) == [
        (b"2/28", None),
        (b"2/29", None),
        (b"more", "k"),
    ]


def test_a_batch_is_written_with_and_without_keys_and_properties(spark, conf, target):
    df = spark.read.format("eventhubs").options(**conf).load().where("partition = '0'")
    for rows in (df.select("body"), df.selectExpr("'k' as partitionKey", "body")):
        with pytest.raises(AnalysisException, match="Append"):
            rows.write.format("eventhubs").options(**target).save()
        rows.write.format("eventhubs").options(**target).mode("append").save()
    rows = df.limit(1).selectExpr("body", "'1' as partitionId", "map('a', 'b') as properties")
    rows.write.format("eventhubs").options(**target).mode("append").save()
    both = rows.selectExpr("*", "'k' as partitionKey")
    with pytest.raises(Exception, match=r"partitionKey.*partitionId|partitionId.*partitionKey"):
        both.write.format("eventhubs").options(**target).mode("append").save()
    sent = spark.read.format("eventhubs").options(**target).load().collect()
    assert Counter(row.partitionKey for row in sent) == {None: 11, "k": 10}
    assert [row.partition for row in sent if row.properties == {"a": "b"}] == ["1"]


def test_an_aggregation_is_checkpointed(spark, conf, tmp_path):
    df = spark.readStream.format("eventhubs").options(**conf, startingPosition="earliest").load()
    counts = df.groupBy("partition").count()
    writer = counts.writeStream.outputMode("complete").format("memory").queryName("counts")
    with running(writer, tmp_path / "counts"):
        pass
    found = {row.partition: row["count"] for row in spark.table("counts").collect()}
    assert found == {"0": 10, "1": 20, "2": 30}
