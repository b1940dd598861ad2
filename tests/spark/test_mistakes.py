"""Mistakes of a Spark user: each is answered by one sentence, and shows no secret.

Those that the options alone reveal need neither Spark nor a hub.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyspark.sql
import pytest
from pyspark.sql.types import (
    BinaryType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eventhub_checkpoints import MemoryCheckpointStore, Scope
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.send.arrow import read_rows
from eventhub_checkpoints.spark import (
    CheckpointPublisher,
    EventPosition,
    HubRanges,
    StartingPositions,
    read_spark_checkpoint,
    starting_positions,
)
from eventhub_checkpoints.spark.position_formats import connector_positions
from eventhub_checkpoints.spark.sink.options import SinkOptions
from eventhub_checkpoints.spark.sink.writer import Writing, new_sender
from eventhub_checkpoints.spark.source.batches import make_tasks, plan_batch, read_task
from eventhub_checkpoints.spark.source.data_source import EventHubSource
from eventhub_checkpoints.spark.source.options import SourceOptions
from forward_proxy import ForwardProxy

pytestmark = pytest.mark.usefixtures("own_module")

SECRET = "aGlkZGVuIGtleSB0aGF0IG5vYm9keSBtYXkgc2VlIQ=="
STRING = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;"
    f"SharedAccessKey={SECRET};EntityPath=orders"
)
NAMED = {"fullyQualifiedNamespace": "ns.servicebus.windows.net", "eventHubName": "orders"}
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
POSITIONS = StartingPositions("orders", {"0": EventPosition.from_sequence_number(5)})
OTHER_HUB = StartingPositions("payments", {"0": EventPosition.from_sequence_number(5)})
NOON = EventPosition.from_enqueued_time(datetime(2026, 11, 21, 12, tzinfo=UTC))


class Mistake(NamedTuple):
    """Options with a mistake, and what the user reads.

    Attributes:
        options: of a hub with a connection string, unless they name it otherwise.
        said: the sentence, or its beginning.
    """

    options: dict[str, str]
    said: str


SOURCE = [
    Mistake(
        {"startingPostion": "latest"},
        "the option startingPostion is not known to format('eventhubs'); did you mean",
    ),
    Mistake(
        {"checkpointLocation": "query"},
        "the option checkpointLocation belongs to writeStream, not to readStream",
    ),
    Mistake(
        {"connectionString": ""},
        "the option connectionString is missing; set it, or fullyQualifiedNamespace, eventHubName,",
    ),
    Mistake(
        {"connectionString": f"SharedAccessKey={SECRET}"},
        "the connection string has no Endpoint and no SharedAccessKeyName; expected Endpoint=sb://",
    ),
    Mistake(
        {"connectionString": STRING.partition(";EntityPath")[0]},
        "the connection string of ns.servicebus.windows.net names no hub; add ;EntityPath=HUB to",
    ),
    Mistake(
        {"connectionString": "env:NOT_SET"},
        "the option connectionString names the environment variable 'NOT_SET', which Spark's",
    ),
    Mistake(
        {"consumerGroup": ""},
        "consumerGroup is ''; expected a consumer group of the hub, such as $Default",
    ),
    Mistake(
        {"startingPosition": "yesterday"},
        "startingPosition is 'yesterday'; expected a time in ISO 8601, such as",
    ),
    Mistake(
        {"startingPosition": "-1"},
        "startingPosition is '-1'; expected earliest, which means the same",
    ),
    Mistake(
        {"startingPositions": OTHER_HUB.to_connector()},
        'startingPositions, key \'{"ehName":"payments","partitionId":0}\': ehName must be',
    ),
    Mistake(
        {"startingPositions": str(POSITIONS)},
        "startingPositions is an object that Spark has converted to a string; pass its options by",
    ),
    Mistake(
        {"startingPositions": '{"orders":{"0":5}}'},
        "startingPositions is the JSON of Spark's Kafka source; expected the connector's, as "
        "StartingPositions.from_kafka(text, 'orders').to_source() returns it",
    ),
    Mistake(
        {"endingPositions": '{"orders":{"0":5}}'},
        "endingPositions is the JSON of Spark's Kafka source; expected the connector's, as "
        "EndingPositions.from_kafka(text, 'orders').to_source() returns it",
    ),
    Mistake(
        {"startingPositions": '{"0":5}'},
        "startingPositions names partition '0' without the hub; expected the connector's JSON, as "
        "StartingPositions('orders', positions).to_source() returns it, with an EventPosition for",
    ),
    Mistake(
        {"startingPositions": '{"orders":5}'},
        "startingPositions, key 'orders' does not name a hub and a partition; expected a string",
    ),
    Mistake(
        {"startingPositions": "earliest"},
        "startingPositions is 'earliest'; expected the connector's JSON, with a position for each",
    ),
    Mistake(
        {"startingPosition": '{"0":5}'},
        "startingPosition is one position, for all partitions that startingPositions does not name",
    ),
    Mistake(
        {"maxRatesPerPartition": '{"0":5}'},
        "maxRatesPerPartition, key '0' does not name a hub and a partition; expected a string such "
        'as {"ehName":"orders","partitionId":0}',
    ),
    Mistake(
        {"path": "orders"},
        "format('eventhubs') has no path; call load(), save() or start() without one, and name the",
    ),
    Mistake({"paths": '["a","b"]'}, "format('eventhubs') has no path; call load(), save() or"),
    Mistake(
        {"transport": "kafka", "kafka.bootstrap.servers": "broker:9092,broker:5671"},
        "kafka.bootstrap.servers names port '5671', which is not one of Kafka; the Kafka endpoint",
    ),
    Mistake(
        {"transport": "kafka", "kafka.bootstrap.servers": "ns.servicebus.windows.net:443"},
        "kafka.bootstrap.servers names port '443', which is not one of Kafka; the Kafka endpoint",
    ),
    Mistake(
        {"maxEventsPerTrigger": "1k"},
        "maxEventsPerTrigger is '1k'; expected a whole number of at least 1",
    ),
    Mistake(
        {"receiverTimeout": "a minute"},
        "receiverTimeout is 'a minute'; expected seconds, or a duration such as 30s",
    ),
    Mistake({"failOnDataLoss": "no"}, "failOnDataLoss is 'no'; expected true or false"),
    Mistake(
        {"missing": "error"},
        "missing=error concerns partitions without a checkpoint; set checkpointStore, too",
    ),
    Mistake(
        {"kafka.security.protocol": "SSL"},
        "the option kafka.security.protocol needs transport=kafka",
    ),
]
NETWORK = [
    Mistake(
        {"transportType": "websocket"},
        "transportType is 'websocket'; expected Amqp or AmqpOverWebsocket",
    ),
    Mistake(
        {"httpProxy": f"user:{SECRET}@proxy"},
        "httpProxy is malformed; expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with",
    ),
    Mistake(
        {"httpProxy": "http://proxy:3128", "transportType": "amqp"},
        "an HTTP proxy needs transportType=AmqpOverWebsocket; leave transportType out, or set this",
    ),
    Mistake(
        {"connectionVerify": "/nowhere/ca.pem"},
        "connectionVerify is '/nowhere/ca.pem', which is not a file on this machine; expected the",
    ),
    Mistake(
        {"customEndpointAddress": "sb://"},
        "customEndpointAddress is 'sb://'; expected an address such as",
    ),
    Mistake(
        {"httpProxy": "http://proxy:3128", "transport": "kafka"},
        "with transport=kafka, httpProxy cannot be used: Kafka's client has no HTTP proxies; or",
    ),
    Mistake(
        {"customEndpointAddress": "gateway", "transport": "kafka"},
        "with transport=kafka, customEndpointAddress has no meaning; set kafka.bootstrap.servers;",
    ),
]
SIGN_IN = [
    Mistake(
        {**NAMED, "credential": "DefaultAzureCredential", "connectionString": STRING},
        "use the option connectionString or fullyQualifiedNamespace and credential, not both",
    ),
    Mistake(
        {"credential": "DefaultAzureCredential"},
        "credential also needs the option fullyQualifiedNamespace and eventHubName",
    ),
    Mistake(
        {**NAMED, "credential": SECRET},
        "the credential is not a name; expected the name of a class of azure-identity, such as",
    ),
    Mistake(
        {**NAMED, "credential": "DefaultAzureCred"},
        "the credential is not the name of a class of azure-identity; did you mean DefaultAzureCr",
    ),
    Mistake(
        {**NAMED, "credential": "azure.identity.ManagedIdentityCredential"},
        "the credential is not the name of a class of azure-identity; did you mean ManagedIdentit",
    ),
    Mistake(
        {**NAMED, "credential": "ClientSecretCredential"},
        "the credential ClientSecretCredential needs its package: python -m pip install",
    ),
    Mistake(
        {**NAMED, "credential": "no_such_module:Tokens"},
        "the module no_such_module of the credential cannot be imported (ModuleNotFoundError: No",
    ),
    Mistake(
        {**NAMED, "credential": "own_credentials:Vaults"},
        "the module own_credentials has no class or function Vaults; expected the name of a class",
    ),
    Mistake(
        {**NAMED, "credential": "own_credentials:Vault"},
        "the credential own_credentials:Vault cannot be created (TypeError: missing a required",
    ),
    Mistake(
        {
            **NAMED,
            "credential": "own_credentials:Vault",
            "credential.tenant": "contoso",
            "credential.client_secret": SECRET,
        },
        "the credential own_credentials:Vault cannot be created (TypeError: missing a required",
    ),
    Mistake(
        {**NAMED, "credential": "own_credentials:refuse", "credential.client_secret": SECRET},
        "the credential own_credentials:refuse cannot be created (KeyError: 'nobody has the secret",
    ),
    Mistake(
        {**NAMED, "credential": "own_credentials:text"},
        "the credential own_credentials:text is of type str, which has no get_token; expected a",
    ),
    Mistake(
        {**NAMED, "credential": "own_credentials:AioVault"},
        "credential is a own_credentials.AioVault, which is asynchronous; expected one of",
    ),
    Mistake(
        {**NAMED, "credential.tenant_id": "t"}, "the option credential.tenant_id needs credential"
    ),
    Mistake(
        {**NAMED, "useAadAuth": "true"},
        "useAadAuth=true needs the option credential, such as DefaultAzureCredential",
    ),
    Mistake(
        {**NAMED, "aadAuthCallback": "com.example.AuthBySecretCallBack"},
        "aadAuthCallback is 'com.example.AuthBySecretCallBack', which is not package.module:Class",
    ),
    Mistake(
        {
            **NAMED,
            "aadAuthCallback": "own_credentials:Vault",
            "aadAuthCallbackParams": f"secret={SECRET}",
        },
        'aadAuthCallbackParams is malformed; expected JSON such as {"name": "value"}',
    ),
]
SINK = [
    Mistake(
        {"path": "orders"},
        "format('eventhubs') has no path; call load(), save() or start() without one, and name the",
    ),
    Mistake(
        {"startingPosition": "latest"},
        "the option startingPosition is for reading; a sink has the options connectionString,",
    ),
    Mistake(
        {"eventKeys": "rowNumber"},
        "eventKeys=rowNumber is refused: Spark does not tell a sink whether its rows have the same",
    ),
    Mistake(
        {"eventKeys": "content", "keyColumn": "id"},
        "use the option keyColumn or eventKeys, not both",
    ),
    Mistake({"keyScope": "job"}, "the option keyScope needs eventKeys=content"),
    Mistake(
        {"batchesInFlight": "0"}, "batchesInFlight is '0'; expected a whole number of at least 1"
    ),
    Mistake(
        {"transportType": "http"}, "transportType is 'http'; expected Amqp or AmqpOverWebsocket"
    ),
]


def columns(**types: DataType) -> StructType:
    """Return a schema."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


BODY = columns(body=BinaryType())


def options_of(**options: Any) -> None:
    """Stand for `options` of Spark's reader."""


def writing(options: dict[str, str] | None = None, **types: DataType) -> Writing:
    """Return what is sent to the tasks of a sink with these columns."""
    return Writing({"connectionString": STRING, **(options or {})}, columns(**types))


CALLS = [
    (
        lambda: EventHubSource({"connectionString": STRING}).reader(BODY),
        "format('eventhubs') has the columns body, partition, offset, sequenceNumber,",
    ),
    (
        lambda: EventHubSource({}).writer(BODY, overwrite=True),
        "the events of a hub cannot be overwritten; use mode('append')",
    ),
    (
        lambda: writing(value=BinaryType()),
        "column 'value' cannot be sent: an event has the columns body, partitionKey, partitionId,",
    ),
    (
        lambda: writing(body=IntegerType()),
        "the column body has the type int32; expected binary or string",
    ),
    (
        lambda: writing(body=BinaryType(), partition=StringType()),
        "column 'partition' cannot be sent: an event has the columns body, partitionKey,",
    ),
    (
        lambda: writing(body=BinaryType(), enqueuedTime=TimestampType()),
        "column 'enqueuedTime' cannot be sent: an event has the columns body, partitionKey,",
    ),
    (
        lambda: writing(body=TimestampType()),
        "the column body has the type timestamp[us, tz=UTC]; expected binary or string",
    ),
    (
        lambda: writing(body=BinaryType(), properties=MapType(StringType(), TimestampNTZType())),
        "the column properties has the type map<string, timestamp[us]>; expected map<string,string",
    ),
    (
        lambda: writing(body=CalendarIntervalType()),
        "the column body has the type interval; expected binary or string",
    ),
    (
        lambda: writing({"keyColumn": "id"}, body=BinaryType(), id=IntegerType()),
        "keyColumn is 'id', which is of the type int; expected a column of strings: cast it",
    ),
    (
        lambda: writing({"keyColumn": "id"}, body=BinaryType(), id=TimestampType()),
        "keyColumn is 'id', which is of the type timestamp; expected a column of strings: cast it",
    ),
    (
        lambda: writing({"keyColumn": "orderid"}, body=BinaryType(), order_id=StringType()),
        "keyColumn is 'orderid', and the rows have no such column; did you mean order_id?",
    ),
    (
        lambda: writing({"keyColumn": "id"}, body=BinaryType(), partitionKey=StringType()),
        "keyColumn is 'id', and the rows have no such column; they have body, partitionKey",
    ),
    (
        lambda: options_of(**POSITIONS),
        "StartingPositions are not options themselves; pass .options(**positions.to_source()) to",
    ),
    (
        lambda: options_of(**HubRanges("orders", [OffsetRange("0", 1, 5)])),
        "HubRanges are not options themselves; pass .options(**positions.to_source()) to",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), SCOPE),
        "partition_ids is None; pass every partition of the hub, such as ['0', '1'], or hub= to",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), STRING, ["0"]),
        "scope is of type str; expected a Scope",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), SCOPE, ["a"]),
        "partition_ids holds 'a'; expected decimal numbers",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), SCOPE, ["0"], "lates"),
        "'lates' is not a position; expected for missing= one of 'earliest', 'latest', 'error', a",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), SCOPE, ["0"], "error"),
        "the store has no checkpoint of 'ns.servicebus.windows.net/orders/$Default', and holds no",
    ),
    (
        lambda: starting_positions("checkpoints.db", SCOPE, ["0"]),
        "'checkpoints.db' names no store; did you mean sqlite:///checkpoints.db? Expected one of",
    ),
    (
        lambda: starting_positions(MemoryCheckpointStore(), SCOPE, hub="orders"),
        "the connection string is malformed: it has a part that is not NAME=VALUE; expected",
    ),
    (
        lambda: StartingPositions("orders", {"0": NOON}).to_kafka(),
        "the sequence number of partition 0 (time",
    ),
    (
        lambda: StartingPositions.from_connector(OTHER_HUB.to_connector(), "orders"),
        'startingPositions, key \'{"ehName":"payments","partitionId":0}\': ehName must be',
    ),
    (
        lambda: HubRanges("orders", [OffsetRange("0", 1, 5), OffsetRange("0", 7, 9)]),
        "partition 0 has several ranges; read each with options of its own, and join them by",
    ),
    (
        lambda: CheckpointPublisher(MemoryCheckpointStore(), STRING),
        "scope is of type str; expected a Scope",
    ),
    (
        lambda: CheckpointPublisher(object(), SCOPE),
        "object cannot be written from the publisher's thread; expected a store of the synchronous",
    ),
    (
        lambda: CheckpointPublisher(MemoryCheckpointStore(), SCOPE).attach("local"),
        "spark is of type str; expected a SparkSession",
    ),
    (
        lambda: read_spark_checkpoint("/nowhere", "orders"),
        "/nowhere is not a checkpoint of a streaming query: it has no folder offsets",
    ),
]


def of_hub(options: dict[str, str]) -> dict[str, str]:
    """Return options with a connection string, unless they name the hub otherwise."""
    is_named = options.keys() & {"fullyQualifiedNamespace", "credential"}
    return options if is_named else {"connectionString": STRING, **options}


def answer(act: Callable[[], Any]) -> str:
    """Return the sentence that a mistake is answered with, after checking what it shows."""
    with pytest.raises(CheckpointStoreError) as raised:
        act()
    text = str(raised.value)
    assert SECRET not in text
    assert "\n" not in text
    return text


def names(mistakes: list[Mistake]) -> list[str]:
    """Return the names of tests."""
    return [", ".join(each.options)[-60:] for each in mistakes]


READING = [*SOURCE, *NETWORK, *SIGN_IN]


@pytest.mark.parametrize("mistake", READING, ids=names(READING))
def test_a_mistake_in_an_option_of_the_source_is_answered(mistake: Mistake) -> None:
    said = answer(lambda: SourceOptions.parse(of_hub(mistake.options)))
    assert said.startswith(mistake.said)


WRITING = [*SINK, *NETWORK, *SIGN_IN]


@pytest.mark.parametrize("mistake", WRITING, ids=names(WRITING))
def test_a_mistake_in_an_option_of_the_sink_is_answered(mistake: Mistake) -> None:
    said = answer(lambda: SinkOptions.parse(of_hub(mistake.options)))
    assert said.startswith(mistake.said)


@pytest.mark.parametrize(("act", "said"), CALLS, ids=[said[:50] for _, said in CALLS])
def test_a_mistake_in_a_call_is_answered(act: Callable[[], Any], said: str) -> None:
    assert answer(act).startswith(said)


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 1}, consumer_groups=["known"]) as running:
        running.publish("orders", "0", ["event"] * 10)
        yield running


def impatient(address: Address) -> HubAddress:
    """Return the address with a client that gives up at once, as it does after its retries."""
    assert isinstance(address, HubAddress)
    return replace(address, settings={**address.settings, "retry_total": 0})


def read(hub: LocalHub, **options: str) -> None:
    """Do what the driver and a task do to read a batch."""
    parsed = SourceOptions.parse({"connectionString": hub.connection_string("orders"), **options})
    parsed = replace(parsed, address=impatient(parsed.address))
    for task in make_tasks(parsed, plan_batch(parsed)):
        list(read_task(task))


def write(hub: LocalHub, **options: str) -> None:
    """Do what a task does to write a row."""
    parsed = SinkOptions.parse({"connectionString": hub.connection_string("orders"), **options})
    sender = new_sender(replace(parsed, address=impatient(parsed.address)))
    try:
        sender.send(read_rows(pa.RecordBatch.from_pydict({"body": [b"event"]})))
        sender.flush()
    finally:
        sender.close()


EMULATOR = "UseDevelopmentEmulator=true"
"""Part of a connection string of a hub without TLS."""
CLOSED = {
    "connectionString": STRING.replace("ns.servicebus.windows.net", "127.0.0.1:1") + f";{EMULATOR}"
}
AT_99 = connector_positions("orders", {"0": EventPosition.from_sequence_number(99)})
HUB = [
    (read, CLOSED, "127.0.0.1:1 with event hub 'orders' cannot be reached: the"),
    (write, CLOSED, "127.0.0.1:1 with event hub 'orders' cannot be reached: the"),
    (read, {"eventHubName": "order"}, "NAMESPACE has no event hub 'order'"),
    (write, {"eventHubName": "order"}, "NAMESPACE has no event hub 'order'"),
    (read, {"consumerGroup": "absent"}, "partition 0 of NAMESPACE/orders cannot be read:"),
    (
        read,
        {"consumerGroup": "absent", "receivePath": "public"},
        "partition 0 of NAMESPACE/orders cannot be read:",
    ),
    (
        read,
        {"startingPositions": AT_99, "consumerGroup": "known"},
        "",
    ),
]


@pytest.mark.parametrize(("act", "options", "said"), HUB)
def test_what_a_hub_refuses_is_answered(
    hub: LocalHub, act: Callable[..., None], options: dict[str, str], said: str
) -> None:
    assert answer(lambda: act(hub, **options)).startswith(
        said.replace("NAMESPACE", f"127.0.0.1:{hub.port}")
    )


@pytest.mark.parametrize("act", [read, write])
def test_a_wrong_key_is_answered(hub: LocalHub, act: Callable[..., None]) -> None:
    hub.refuse_tokens()
    try:
        said = answer(lambda: act(hub))
    finally:
        hub.refuse_tokens(False)
    assert said.startswith(f"127.0.0.1:{hub.port} refuses access to event hub 'orders': wrong key")


@pytest.mark.parametrize("act", [read, write])
def test_a_port_that_is_not_kafkas_is_answered(hub: LocalHub, act: Callable[..., None]) -> None:
    options = {"transport": "kafka", "eventHubName": "orders", "operationTimeout": "5"}
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{hub.port}"}

    def over_kafka() -> None:
        if act is read:
            plan_batch(SourceOptions.parse({**options, **servers}))
            return
        with new_sender(SinkOptions.parse({**options, **servers})) as sender:
            sender.send(read_rows(pa.RecordBatch.from_pydict({"body": [b"event"]})))
            sender.flush()

    said = answer(over_kafka)
    assert "over Kafka" in said
    assert said.endswith(
        "Can its Kafka endpoint be reached? Event Hubs has one on port 9093, and on no other, in "
        "every tier but Basic"
    )


def test_a_wrong_password_of_a_proxy_is_answered(hub: LocalHub) -> None:
    with ForwardProxy(hub.port, "user:other") as proxy:
        where = f"http://user:{SECRET}@127.0.0.1:{proxy.port}".replace("==", "%3D%3D")
        through = {"connectionString": f"{STRING};{EMULATOR}", "httpProxy": where}
        said = answer(lambda: read(hub, **through))
        assert proxy.refused
    assert said.startswith("the HTTP proxy on the way to ns.servicebus.windows.net refuses")


def test_a_pyspark_without_python_sources_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 3.5 lacks this module."""
    monkeypatch.delattr(pyspark.sql, "datasource")
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    for package in ("source", "sink"):
        name = f"eventhub_checkpoints.spark.{package}"
        monkeypatch.delitem(sys.modules, name, raising=False)
        said = answer(lambda name=name: importlib.import_module(name))
        assert said.startswith("format('eventhubs') needs PySpark 4, and this is PySpark ")
        assert "to_kafka() and to_connector()" in said
