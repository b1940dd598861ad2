"""`df.write` and `writeStream` send rows to a hub."""

import json
from collections import Counter
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import HubAddress, OffsetRange, partition_properties
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.events import EventRows, PropertyMaps
from eventhub_checkpoints.spark.sink import deduplicate, keys, writer
from eventhub_checkpoints.spark.sink.keys import ContentKeys, with_keys
from eventhub_checkpoints.spark.sink.options import EventKeys, SinkOptions
from eventhub_checkpoints.spark.sink.writer import (
    BatchWriter,
    SentEvents,
    StreamWriter,
    Writing,
)
from eventhub_checkpoints.spark.source.data_source import EventHubSource
from spark_runs import DRAINS
from waiting import LIMIT, eventually

KEY = "a2V5LXRoYXQtbm8tcGxhbi1tYXktc2hvdw=="
STRING = f"Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey={KEY};EntityPath=orders"


@pytest.fixture
def out(hub):
    """An empty hub with four partitions."""
    with suppress(ValueError):
        hub.create("out", 4)
    hub.recreate("out", 4)
    return hub.connection_string("out")


@pytest.fixture
def sent(spark, out):
    """What is in the hub."""

    def read():
        return spark.read.format("eventhubs").option("connectionString", out).load()

    return read


def write(frame, out, **options):
    chosen = frame.write.format("eventhubs").option("connectionString", out)
    chosen.options(**options).mode("append").save()


def test_a_frame_is_sent_with_all_columns_in_any_case(spark, out, sent):
    kinds = "BODY string, partitionkey string, PartitionId string, properties map<string,string>"
    rows = [("a", "k", None, {"n": "1"}), ("b", None, "3", None), ("c", None, None, {})]
    write(spark.createDataFrame(rows, kinds), out)
    found = {bytes(row.body): row for row in sent().collect()}
    assert (found[b"a"].partitionKey, found[b"a"].properties) == ("k", {"n": "1"})
    assert (found[b"b"].partition, found[b"b"].properties) == ("3", {})
    assert set(found) == {b"a", b"b", b"c"}


def test_times_of_properties_are_sent_in_any_time_zone_of_the_session(spark, out, sent):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        moment = "timestamp '2026-11-21T10:00:00.123456Z'"
        write(spark.sql(f"select 'a' as body, map('at', {moment}) as properties"), out)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [row.properties for row in sent().collect()] == [{"at": "1795255200123"}]


def test_a_stream_from_hub_to_hub_sends_each_event_once_with_a_key_of_its_own(
    spark, hub, out, sent, tmp_path
):
    hub.publish("Orders", "3", ["the same"] * 10)
    events = spark.readStream.format("eventhubs").option(
        "connectionString", hub.connection_string("Orders")
    )
    rows = events.option("maxEventsPerTrigger", "40").load()
    for _ in range(1 if DRAINS else 2):
        query = (
            rows.select("body", F.col("partition").alias("partitionId"))
            .writeStream.format("eventhubs")
            .options(connectionString=out, eventKeys="content")
            .option("checkpointLocation", str(tmp_path / "query"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = sent().orderBy("partition", "sequenceNumber").collect()
    assert [bytes(row.body).decode() for row in found if row.partition == "2"] == [
        f"2/{number}" for number in range(30)
    ]
    assert len(found) == 70
    assert len({row.properties["event-key"] for row in found}) == 70
    text = json.dumps([json.loads(progress.json) for progress in query.recentProgress])
    assert "SharedAccessKey" not in text


def test_copies_are_dropped_and_nothing_else(spark, out, sent):
    rows = [("a", "1"), ("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")]
    frame = spark.createDataFrame(rows, "body string, id string")
    write(frame, out, keyColumn="id")
    write(spark.createDataFrame([("c",), ("c",)], "body string"), out)
    kept = deduplicate(sent())
    assert kept.columns == sent().columns
    counts = Counter(bytes(row.body) for row in kept.collect())
    assert counts == {b"a": 2, b"b": 2, b"c": 2}


def test_a_stream_drops_copies_however_far_behind_a_partition_is(
    spark, hub, out, start_query, tmp_path
):
    hub.recreate("Orders", 2)
    for partition, moment in (("0", 2_000_000_000), ("1", 1_000_000_000)):
        for key in ("x", "y"):
            hub.publish(
                "Orders", partition, [partition + key], properties={"event-key": partition + key},
                enqueued_time=float(moment),
            )  # fmt: skip
        hub.publish(
            "Orders", partition, ["copy"], properties={"event-key": partition + "x"},
            enqueued_time=float(moment),
        )  # fmt: skip
    found = Counter()

    def sink(batch, batch_id):
        found.update(bytes(row.body) for row in batch.select("body").collect())

    start_query(sink, shape=deduplicate, maxEventsPerTrigger=2).awaitTermination()
    assert found == {b"0x": 1, b"0y": 1, b"1x": 1, b"1y": 1}


def test_the_changed_rows_of_an_aggregation_are_sent_in_foreach_batch(out, sent, start_query):
    def send(batch, batch_id):
        rows = batch.selectExpr("partition as partitionKey", "cast(count as string) as body")
        target = rows.write.format("eventhubs").mode("append")
        target.options(connectionString=out, eventKeys="content").save()

    start_query(
        send,
        shape=lambda events: events.groupBy("partition").count(),
        mode="update",
        maxEventsPerTrigger=30,
    ).awaitTermination()
    rows = sorted(sent().collect(), key=lambda row: int(row.body))
    assert {row.partitionKey: int(row.body) for row in rows} == {"0": 10, "1": 20, "2": 30}
    assert len({row.properties["event-key"] for row in rows}) == len(rows)


def test_two_runs_with_one_key_scope_give_equal_rows_equal_keys(spark, out, sent):
    frame = spark.sql("select stack(3, 'a', 'a', 'b') as body")
    for scope in ("monday", "monday", "tuesday"):
        write(frame, out, eventKeys="content", keyScope=scope)
    assert sent().count() == 9
    counts = Counter(bytes(row.body) for row in deduplicate(sent()).collect())
    assert counts == {b"a": 4, b"b": 2}


def test_a_copy_is_dropped_up_to_the_time_that_is_stated(hub, start_query, monkeypatch):
    # The time of a micro-batch is that of its events: what Spark's clock is otherwise.
    monkeypatch.setattr(keys.F, "current_timestamp", lambda: F.col("enqueuedTime"))
    hub.recreate("Orders", 1)
    found = []

    def sink(batch, batch_id):
        found.extend(bytes(row.body).decode() for row in batch.select("body").collect())

    events = [("a", 0), ("b", 30), ("a copy in time", 60), ("c", 181), ("d", 182), ("a late", 183)]
    for body, minute in events:
        moment = 1_000_000_000.0 + 60 * minute
        properties = {"event-key": body[0]}
        hub.publish("Orders", "0", [body], properties=properties, enqueued_time=moment)
    start_query(sink, shape=deduplicate, maxEventsPerTrigger=1).awaitTermination()
    assert found == ["a", "b", "c", "d", "a late"]


@pytest.mark.parametrize("make", [BatchWriter, StreamWriter])
def test_a_job_that_fails_logs_what_its_tasks_have_sent(make, caplog):
    sink = make(Writing({"connectionString": STRING}, body_and_properties()))
    batch_id = () if make is BatchWriter else (7,)
    sink.abort([None, SentEvents(1200), SentEvents(34)], *batch_id)
    [sentence] = [record.getMessage() for record in caplog.records]
    assert sentence.startswith("the job failed after 1,234 events of finished tasks were sent")
    caplog.clear()
    sink.abort([None], *batch_id)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("column", "kind", "options", "sentence"),
    [
        ("text", t.StringType(), {}, "column 'text' cannot be sent"),
        (
            "body",
            t.IntegerType(),
            {},
            "the column body has the type int32; expected binary or string",
        ),
        ("body", t.StringType(), {"startingPosition": "latest"}, "startingPosition is for reading"),
        ("body", t.StringType(), {"sendPaht": "fast"}, "did you mean sendPath"),
        (
            "body",
            t.StringType(),
            {"keyColumn": "id"},
            "keyColumn is 'id', and the rows have no such column; they have body",
        ),
        ("body", t.StringType(), {"path": "/tmp/x"}, "has no path"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_a_job_begins(column, kind, options, sentence):
    schema = t.StructType([t.StructField(column, kind)])
    source = EventHubSource({"connectionString": STRING, **options})
    for make in (source.writer, source.streamWriter):
        with pytest.raises(ConfigurationError, match=sentence):
            make(schema, False)


def test_a_refusal_before_a_job_begins_is_an_error_of_its_plan(spark, out):
    with pytest.raises(AnalysisException, match="column 'text' cannot be sent"):
        write(spark.sql("select 'x' as text"), out)


def test_a_row_that_cannot_be_sent_fails_the_job_with_one_sentence(spark, out, sent):
    frame = spark.createDataFrame([("a",), (None,)], "body string").coalesce(1)
    with pytest.raises(Exception, match="row 1 of a batch has no body"):
        write(frame, out)
    assert sent().count() == 0


def test_overwriting_is_refused():
    source = EventHubSource({"connectionString": STRING})
    with pytest.raises(ConfigurationError, match=r"cannot be overwritten; use mode\('append'\)"):
        source.writer(body_and_properties(), True)


def parse(**options):
    return SinkOptions.parse({"connectionString": STRING, **options})


def test_options_have_the_names_and_forms_of_the_source():
    options = SinkOptions.parse(
        {
            "eventhubs.CONNECTIONSTRING": STRING,
            "operationTimeout": "PT2M",
            "sendPath": "public",
            "bytesPerBatch": "1000",
            "batchesInFlight": "2",
            "partitioner": "Python",
            "checkpointLocation": "anywhere",
            "eventhubs.consumerGroup": "that of the source",
        }
    )
    assert options.address == HubAddress.from_connection_string(STRING)
    assert options.sending == SendSettings("public", 1000, 2, 120.0, "python")
    assert options.keys == EventKeys()
    assert parse(eventKeys="content", keyScope="daily").keys == EventKeys("", True, "daily")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"eventKeys": "rowNumber"}, "Spark does not tell a sink whether its rows have the same"),
        ({"eventKeys": "content", "keyColumn": "id"}, "keyColumn or eventKeys, not both"),
        ({"keyScope": "x"}, "keyScope needs eventKeys=content"),
        ({"eventKeys": "hash"}, "eventKeys"),
        ({"batchesInFlight": "0"}, "batchesInFlight is '0'"),
        ({"transport": "kafka", "sendPath": "fast"}, "sendPath has no effect over Kafka"),
        ({"transport": "kafka", "batchesInFlight": "2"}, "batchesInFlight has no effect"),
        (
            {"transport": "kafka", "partitioner": "python"},
            "partitioner has no effect over Kafka; set kafka.partitioner, of librdkafka, or use",
        ),
        ({"partitioner": "java"}, "partitioner is 'java'; expected service or python"),
        (
            {"transport": "kafka", "kafka.enable.idempotence": "false"},
            "kafka.enable.idempotence must be true, its default",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        parse(**options)


def test_no_secret_is_shown():
    options = parse()
    schema = t.StructType([t.StructField("body", t.StringType())])
    writing = Writing({"connectionString": STRING}, schema)
    assert KEY not in repr(options) + repr(writing)


ROWS = EventRows(bodies=[b"a", b"b", b"a"])


def test_equal_rows_of_a_task_have_keys_of_their_own_and_a_repeated_task_has_the_same():
    first = ContentKeys("query/1/0").of(ROWS)
    assert len(set(first)) == 3
    turned = ContentKeys("query/1/0").of(EventRows(bodies=[b"b", b"a", b"a"]))
    assert sorted(turned) == sorted(first)
    for other in ("query/2/0", "query/1/1", "another/1/0"):
        assert not set(ContentKeys(other).of(ROWS)) & set(first)
    with_type = EventRows(bodies=[b"a", b"b", b"a"], content_types=["text/plain"] * 3)
    assert not set(ContentKeys("query/1/0").of(with_type)) & set(first)


def test_a_key_is_added_to_the_properties():
    maps = PropertyMaps(ends=[0, 1, 1], keys=["n"], values=["1"])
    keyed = with_keys(EventRows(bodies=[b"a", b"b"], properties=maps), ["x", "y"]).properties
    assert (list(keyed.ends), keyed.keys) == ([0, 2, 3], ["event-key", "n", "event-key"])
    assert keyed.values == ["x", "1", "y"]


def test_a_row_without_a_key_or_with_two_is_refused():
    with pytest.raises(ConfigurationError, match="row 1 of a batch has no value in the key column"):
        with_keys(EventRows(bodies=[b"a", b"b"]), ["x", None])
    maps = PropertyMaps(ends=[0, 1], keys=[b"event-key"], values=["1"])
    with pytest.raises(ConfigurationError, match="have a value event-key already"):
        with_keys(EventRows(bodies=[b"a"], properties=maps), ["x"])


def test_deduplicate_names_the_column_that_it_misses(spark):
    with pytest.raises(ConfigurationError, match="deduplicate needs the column properties"):
        deduplicate(spark.sql("select 'x' as body"))


def test_rows_of_an_older_pyspark_are_sent_too(hub, out, sent, monkeypatch):
    monkeypatch.setattr(writer, "TAKES_ARROW", False)
    schema = body_and_properties()
    rows = [(bytearray(b"a"), {"n": "1"}), (bytearray(b"b"), None)]
    sink = StreamWriter(Writing({"connectionString": out}, schema))
    assert sink.write(iter(rows)).count == 2
    found = {bytes(row.body): row.properties for row in sent().collect()}
    assert found == {b"a": {"n": "1"}, b"b": {}}


def test_times_of_rows_of_an_older_pyspark_are_sent_too(out, monkeypatch):
    monkeypatch.setattr(writer, "TAKES_ARROW", False)
    kinds = t.MapType(t.StringType(), t.TimestampType())
    schema = t.StructType(
        [t.StructField("body", t.BinaryType()), t.StructField("properties", kinds)]
    )
    # As Spark hands them over: in the time zone of the process, and without it.
    local = datetime.fromtimestamp(1_795_255_200.5)
    sink = StreamWriter(Writing({"connectionString": out}, schema))
    assert sink.write(iter([(bytearray(b"a"), {"at": local, "none": None})])).count == 1
    assert [row["properties"] for row in stored_rows(out)] == [
        [("at", "1795255200500"), ("none", "null")]
    ]


def stored_rows(out):
    """What is in the hub, read without Spark."""
    address = HubAddress.from_connection_string(out)
    return [
        row
        for partition, held in partition_properties(address).items()
        for batch in read_range(address, OffsetRange(partition, 0, held.next_sequence_number))
        for row in batch.to_pylist()
    ]


def body_and_properties():
    kinds = t.MapType(t.StringType(), t.StringType())
    return t.StructType([t.StructField("body", t.BinaryType()), t.StructField("properties", kinds)])


def test_a_sink_sends_over_kafka_too():
    client = pytest.importorskip("confluent_kafka", reason="confluent-kafka is missing")
    cluster = client.Producer({"test.mock.num.brokers": "1", "log_level": "0"})
    [broker] = cluster.list_topics(timeout=LIMIT).brokers.values()
    options = {
        "transport": "kafka",
        "kafka.bootstrap.servers": f"{broker.host}:{broker.port}",
        "eventHubName": "orders",
    }
    sink = Writing(options, body_and_properties())
    schema = pa.schema([("body", pa.binary()), ("properties", pa.map_(pa.string(), pa.string()))])
    batch = pa.RecordBatch.from_pylist([{"body": b"a", "properties": [("n", "1")]}], schema)
    assert [sink.send([batch]).count for _ in range(2)] == [1, 1]
    address = SinkOptions.parse(options).address
    properties = partition_properties(address).values()
    assert sum(each.next_sequence_number for each in properties) == 2
    with pytest.raises(ConfigurationError, match="needs transport=kafka"):
        SinkOptions.parse({**options, "transport": "amqp"})


def test_a_worker_keeps_its_connection_for_the_next_task_and_drops_a_broken_one(
    hub, out, accepted_connections
):
    batch = pa.RecordBatch.from_pydict({"body": ["a"]})
    schema = t.StructType([t.StructField("body", t.StringType())])
    sink = Writing({"connectionString": out}, schema)
    for _ in range(3):
        assert sink.send([batch]).count == 1
    assert len(accepted_connections) == 1
    with writer.SENDERS.lent(SinkOptions.parse({"connectionString": out})) as sender:
        assert sender.is_usable
        hub.recreate("out", 4)  # which detaches its links
        eventually(lambda: not sender.is_usable)
    assert sink.send([batch]).count == 1
    assert len(accepted_connections) == 2
    assert sink.send([batch]).count == 1
    assert len(accepted_connections) == 2
