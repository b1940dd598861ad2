"""`df.write.format("eventhubs")` with `transport=kafka`, on a real broker."""

import pytest
from pyspark.sql import functions as F  # noqa: N812

from kafka_broker import CONNECTION_STRING


def written(topic, columns):
    """Return what Spark's own source reads of what was written."""
    server = {"kafka.bootstrap.servers": topic.broker.address, "subscribe": topic.name}
    rows = topic.spark.read.format("kafka").options(**server, includeHeaders="true").load()
    return {row[0]: tuple(row[1:]) for row in rows.selectExpr("string(value)", *columns).collect()}


@pytest.fixture
def send(topic):
    """Write rows to the topic, by the hub's connection string as to a namespace."""

    def send(frame, **options):
        target = {
            "transport": "kafka",
            "connectionString": CONNECTION_STRING,
            "eventHubName": topic.name,
            "kafka.bootstrap.servers": topic.broker.sasl_address,
            "kafka.security.protocol": "SASL_PLAINTEXT",
        }
        writer = frame.write.format("eventhubs").options(**{**target, **options})
        writer.mode("append").save()

    return send


def test_rows_become_records_as_sparks_own_sink_writes_them(topic, send):
    frame = topic.spark.createDataFrame(
        [("a", "key-1", None, {"n": "1"}), ("b", "key-2", None, None), ("c", None, "3", None)],
        "body string, partitionKey string, partitionId string, properties map<string,string>",
    )
    send(frame, eventKeys="content")
    server = {"kafka.bootstrap.servers": topic.broker.address, "topic": topic.name}
    theirs = frame.where("partitionId is null").selectExpr(
        "upper(body) as value", "partitionKey as key"
    )
    theirs.write.format("kafka").options(**server).save()
    columns = (
        "string(key)",
        "partition",
        "transform(headers, h -> h.key)",
        "string(get(headers, 1).value)",
    )
    found = written(topic, columns)
    assert found["a"] == ("key-1", found["A"][1], ["event-key", "n"], "1")
    assert found["b"][:3] == ("key-2", found["B"][1], ["event-key"])
    assert found["c"][:2] == (None, 3)


def test_a_refused_row_and_a_wrong_password_are_one_sentence_each(topic, send):
    rows = topic.spark.range(0, 3000, 1, 1)
    bodies = rows.select(F.when(F.col("id") < 2999, F.concat(F.lit("new "), "id")).alias("body"))
    with pytest.raises(Exception, match="has no body") as refused:
        send(bodies, operationTimeout="20")
    stored = sum(body.startswith("new ") for body in written(topic, ()))
    assert (f"{stored:,} events were sent before" in str(refused.value)) == (stored > 0)
    with pytest.raises(Exception, match="refuses this client over Kafka") as denied:
        send(bodies.limit(1), connectionString=f"{CONNECTION_STRING}x", operationTimeout="20")
    assert "its right to send" in str(denied.value)
    assert "SharedAccessKey=" not in str(denied.value)
