"""A secret that was pasted into the wrong option or argument comes back in no message."""

import traceback
from functools import partial
from itertools import product

import pytest
from pyspark.errors import AnalysisException

from eventhub_checkpoints import CheckpointStoreError, MemoryCheckpointStore, Scope, open_store
from eventhub_checkpoints.receive import HubAddress, OffsetRange, PartitionProperties
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.spark import (
    EndingPositions,
    EventPosition,
    HubRanges,
    StartingPositions,
    checkpoint_positions,
    ending_positions,
    gap_report,
    parse_progress,
    starting_positions,
)
from eventhub_checkpoints.spark.offsets import StreamOffset
from eventhub_checkpoints.spark.source.batches import starts_of
from eventhub_checkpoints.spark.source.options import NAMES, SourceOptions

ARGUMENT = "credential.client_secret"

pytestmark = pytest.mark.waits

HIDDEN = "aGlkZGVuIGtleQhiddenaGlkZGVuIGtleQhiddenaGk="
STRING = f"Endpoint=sb://ns/;SharedAccessKeyName=name;SharedAccessKey={HIDDEN};EntityPath=orders"
PLANTED = {
    "connection string": STRING,
    "signature": f"SharedAccessSignature sr=sb%3A%2F%2Fns&sig={HIDDEN}&se=1&skn=name",
    "sas": f"?sv=2022-11-02&ss=b&sig={HIDDEN}",
    "url": f"postgresql://user:{HIDDEN}@host/database",
    "token": f"Bearer {HIDDEN}",
    "json": f'{{"password": "{HIDDEN}"}}',
    "list": f'["{STRING}"]',
    "variable": f"env:{STRING}",
}
GOOD = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"
SCOPE = Scope("ns", "orders", "$Default")
HELD = PartitionProperties("0", 0, 10, "9", None)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch):
    """A store that cannot be reached is tried for a second, not for 30."""
    impatient = partial(open_store, operation_timeout=1)
    monkeypatch.setattr(checkpoint_positions, "open_store", impatient)


def shown(act, *args, **kwargs):
    """What a call shows of what it was given: its error with all causes, or its result."""
    try:
        result = act(*args, **kwargs)
    except Exception as error:
        lines = traceback.TracebackException.from_exception(error)
        return type(error), "\n".join(one for one in lines.format() if "File " not in one)
    return None, f"{result} {result!r}"


OPTIONS = [*NAMES, "kafka.bootstrap.servers", "kafka.group.id", "kafka.socket.timeout.ms", ARGUMENT]


@pytest.mark.parametrize("transport", ["amqp", "kafka"])
def test_no_option_of_the_source_is_echoed_with_a_secret(transport, searched):
    """Every option with a secret of each kind, in the one parser of a transport."""

    def plan(name, secret):
        given = {"connectionString": GOOD, "transport": transport, name: secret}
        options = SourceOptions.parse(given)
        return options, str(options.address), starts_of(options, {"0": HELD})

    offenders = []
    for name, (planted, secret) in product(OPTIONS, PLANTED.items()):
        kind, text = shown(plan, name, secret)
        is_ours = kind is None or issubclass(kind, CheckpointStoreError)
        offenders += [] if is_ours and "hidden" not in text else [(name, planted, kind)]
        searched("options of the Spark source", 1)
    assert not offenders


def test_no_name_of_an_option_is_echoed_with_a_secret():
    offenders = [
        (planted, name.replace(secret, "..."))
        for planted, secret in PLANTED.items()
        for name in (secret, f"startingPosition{secret}")
        if "hidden" in shown(SourceOptions.parse, {"connectionString": GOOD, name: "x"})[1].lower()
    ]
    assert not offenders


# An item is a kind of secret, of which each argument is given one.
@pytest.mark.parametrize("secret", PLANTED.values(), ids=PLANTED.keys())
def test_no_argument_of_positions_is_echoed_with_a_secret(secret, caplog, searched):
    store = MemoryCheckpointStore()
    bare = secret.replace('"', "")
    json = f'{{"{bare}": 1}}'
    keyed = f'{{"{{\\"ehName\\":\\"{bare}\\",\\"partitionId\\":0}}":{{}}}}'
    calls = [
        (EventPosition.from_sequence_number, (secret,)),
        (EventPosition.from_enqueued_time, (secret,)),
        (EventPosition.from_offset, ([secret],)),
        (str, (EventPosition.from_offset(secret),)),
        (EventPosition, (secret, secret, secret)),
        (HubAddress.from_connection_string, (secret,)),
        (HubAddress.from_connection_string, (GOOD, secret)),
        (HubAddress.from_credential, (secret, "orders", "DefaultAzureCredential")),
        (HubAddress.from_credential, ("ns", secret, "DefaultAzureCredential")),
        (HubAddress.from_credential, ("ns", "orders", secret)),
        (HubAddress.from_credential, ("ns", "orders", "DefaultAzureCredential", secret)),
        (KafkaAddress.of_topic, (secret, {"bootstrap.servers": "host:9092"})),
        (KafkaAddress.of_topic, ("orders", {"bootstrap.servers": "host:9092"}, secret)),
        (OffsetRange, ("0", secret, secret)),
        (starting_positions, (store, SCOPE, secret)),
        (starting_positions, (store, SCOPE, [secret])),
        (starting_positions, (store, secret, ["0"])),
        (starting_positions, (secret, SCOPE, ["0"])),
        (starting_positions, (store, SCOPE, ["0"], secret)),
        (starting_positions, (store, SCOPE, ["0"], {"1": secret})),
        (starting_positions, (store, SCOPE, ["0"], {"0": secret})),
        (starting_positions, (store, SCOPE._replace(consumer_group=secret), ["0"])),
        (starting_positions, (store, SCOPE._replace(eventhub_name=secret), ["0"], "error")),
        (starting_positions, (store, SCOPE._replace(fully_qualified_namespace=secret), ["0"])),
        (ending_positions, (store, SCOPE, ["0"], secret)),
        (StartingPositions.from_connector, (secret, "orders")),
        (StartingPositions.from_connector, (keyed, "orders")),
        (StartingPositions.from_connector, (keyed, secret)),
        (StartingPositions.from_kafka, (secret, "orders")),
        (StartingPositions.from_kafka, (json, "orders")),
        (StartingPositions.from_kafka, (json, secret)),
        (StartingPositions, ("orders", {"0": secret})),
        (StartingPositions.after, ("orders", {"0": secret}, ["0"])),
        (StartingPositions.after, ("orders", {"0": 1}, [secret])),
        (EndingPositions, (secret, secret)),
        (HubRanges, ("orders", [secret])),
        (gap_report, ({"0": secret}, secret)),
        (parse_progress, (secret,)),
        (parse_progress, ({"sources": []}, secret)),
        (StreamOffset.from_json, ({"_hub": secret, "0": 1}, "orders", "ns")),
        (StreamOffset.from_json, ({"_namespace": secret, "0": 1}, "orders", "ns")),
        (StreamOffset.from_json, ({secret: secret}, "orders", "ns")),
    ]
    for act, args in calls:
        _, text = shown(act, *args)
        assert "hidden" not in text, (act, args)
        searched("calls with a secret as an argument", 1)
    place = EventPosition.from_offset(secret)
    for act in (place.__str__, StartingPositions("orders", {"0": place}).to_kafka):
        assert "hidden" not in shown(act)[1]
    assert "hidden" not in caplog.text


def test_no_error_of_spark_shows_a_planted_secret(spark, hub):
    good = hub.connection_string("Orders")
    planted = good.replace("any-key-will-do", HIDDEN)
    for name in ("startingPosition", "eventHubName", "consumerGroup", "prefetchCount"):
        source = spark.read.format("eventhubs").option("connectionString", good)
        with pytest.raises(AnalysisException) as caught:
            source.option(name, planted).load()
        assert name in str(caught.value)
        assert "hidden" not in str(caught.value)


@pytest.fixture
def one_partition(server):
    """Connection string, with a planted key, of a hub whose jobs have one task."""
    server.create("Planted", 1)
    server.publish("Planted", "0", ["first", "second"])
    yield server.connection_string("Planted").replace("any-key-will-do", HIDDEN)
    server.delete("Planted")


def test_no_event_log_of_spark_shows_a_secret_of_the_source_or_the_sink(
    spark, one_partition, event_log, tmp_path, wait, searched
):
    planted = one_partition
    store = f"sqlite:///{tmp_path}/checkpoints.db"
    with open_store(store) as opened:
        opened.create()
    options = {"connectionString": planted, "checkpointStore": store}
    reader = spark.read.format("eventhubs").options(**options)
    sink = reader.load().select("body").write.format("eventhubs").mode("append")
    sink.option("connectionString", planted).save()
    stream = spark.readStream.format("eventhubs").options(**options).load().select("body")
    writer = stream.writeStream.format("eventhubs").option("connectionString", planted)
    place = str(tmp_path / "query")
    query = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
    query.awaitTermination()

    def logged():
        return "".join(path.read_text() for path in event_log.rglob("*") if path.is_file())

    def has_ended():
        lines = logged().splitlines()
        return any("QueryTerminatedEvent" in line and query.id in line for line in lines)

    wait(has_ended)
    text = logged()
    assert "eventhubs" in text
    assert "hidden" not in text.lower()
    assert HIDDEN not in text
    kept = [path.read_bytes() for path in (tmp_path / "query").rglob("*") if path.is_file()]
    assert kept
    assert not any(HIDDEN.encode() in each for each in kept)
    searched("lines of Spark's event log", len(text.splitlines()))
    searched("files of a query's checkpoint folder", len(kept))
