"""Tables and views of Spark's catalog over a hub, and its options in Spark's own processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from eventhub_checkpoints.localhub import LocalHub
from forward_proxy import ForwardProxy
from websocket_gate import WebSocketGate

pytestmark = [pytest.mark.long, pytest.mark.waits]

EVENTS = 60
"""Number of events of the hub in `conftest`."""
SECRET = "c2VjcmV0IG9mIGEgcHJveHkhIQ=="


@pytest.fixture
def table(spark: SparkSession, hub: LocalHub) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a table over the hub, and its options."""
    options = {"connectionString": hub.connection_string("Orders"), "startingPosition": "earliest"}
    stated = ", ".join(f"{name} '{value}'" for name, value in options.items())
    spark.sql(f"CREATE TABLE events USING eventhubs OPTIONS ({stated}) COMMENT 'of the hub'")
    yield "events", options
    spark.sql("DROP TABLE events")


def answer(action: Any) -> str:
    with pytest.raises(Exception, match="ConfigurationError") as raised:
        action()
    return str(raised.value)


def test_a_table_is_read_with_its_options(
    spark: SparkSession, table: tuple[str, dict[str, str]]
) -> None:
    name, options = table
    assert spark.read.options(**options).table(name).count() == EVENTS
    stated = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    [row] = spark.sql(f"SELECT count(*) AS count FROM {name} WITH ({stated})").collect()
    assert row["count"] == EVENTS
    query = (
        spark.readStream.options(**options)
        .table(name)
        .writeStream.format("memory")
        .queryName("of_table")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert spark.table("of_table").count() == EVENTS


def test_a_table_without_its_options_says_where_they_belong(
    spark: SparkSession, table: tuple[str, dict[str, str]]
) -> None:
    said = answer(spark.table(table[0]).count)
    assert "Spark does not hand over the OPTIONS of CREATE TABLE" in said
    assert "CREATE TEMPORARY VIEW" in said


def test_a_table_is_not_written(spark: SparkSession, table: tuple[str, dict[str, str]]) -> None:
    said = answer(lambda: spark.sql(f"INSERT INTO {table[0]} (body) VALUES (X'61')").collect())
    assert "write by df.write" in said


def test_a_mistake_in_an_option_of_a_table_is_answered_when_it_is_created(
    spark: SparkSession,
) -> None:
    said = answer(lambda: spark.sql("CREATE TABLE t USING eventhubs OPTIONS (conectionString 'x')"))
    assert "did you mean connectionString?" in said


def test_a_view_needs_no_further_options(spark: SparkSession, hub: LocalHub) -> None:
    string = hub.connection_string("Orders")
    spark.sql(f"CREATE TEMPORARY VIEW v USING eventhubs OPTIONS (connectionString '{string}')")
    assert spark.table("v").count() == EVENTS
    spark.catalog.dropTempView("v")


def assert_written_and_read(spark: SparkSession, options: dict[str, str], secret: str) -> None:
    rows = spark.createDataFrame([("a",), ("b",)], "body string")
    rows.write.format("eventhubs").options(**options).mode("append").save()
    frame = spark.read.format("eventhubs").options(**options).load()
    assert sorted(bytes(row["body"]) for row in frame.select("body").collect()) == [b"a", b"b"]
    assert secret not in frame._jdf.queryExecution().toString()  # type: ignore[operator]


def test_executors_go_through_the_proxy(spark: SparkSession, server: LocalHub) -> None:
    server.recreate("Orders", 1)
    rest = server.connection_string("Orders").split(";", 1)[1]
    with WebSocketGate(server.port) as gate, ForwardProxy(gate.port, f"user:{SECRET}") as proxy:
        options = {
            "connectionString": f"Endpoint=sb://ns.servicebus.windows.net/;{rest}",
            "httpProxy": f"http://user:{quote(SECRET, safe='')}@127.0.0.1:{proxy.port}",
        }
        assert_written_and_read(spark, options, quote(SECRET, safe=""))
        assert proxy.served >= 3


def test_executors_sign_in_with_a_class_of_the_user_and_verify_by_a_bundle(
    spark: SparkSession, tmp_path: Path
) -> None:
    with LocalHub({"orders": 1}, tls=True) as hub:
        options = {
            "fullyQualifiedNamespace": hub.namespace,
            "eventHubName": "orders",
            "credential": "own_credentials:Vault",
            "credential.tenant_id": "contoso",
            "credential.client_secret": "env:VAULT_SECRET",
            "transportType": "Amqp",
            "customEndpointAddress": hub.endpoint,
            "connectionVerify": hub.ca_file,
        }
        assert_written_and_read(spark, options, "secret of the vault")
