"""Options on `docs/how-to/spark-connector.md`: each is accepted, or refused with its sentence."""

import re
from pathlib import Path

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.spark.refused_options import REFUSED
from eventhub_checkpoints.spark.sink.options import NAMES as SINK_NAMES
from eventhub_checkpoints.spark.sink.options import SinkOptions
from eventhub_checkpoints.spark.source.options import SourceOptions

pytestmark = pytest.mark.usefixtures("own_module")

PAGE = Path(__file__).parents[2] / "docs/how-to/spark-connector.md"
STRING = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"
POSITION = '{"offset":null,"seqNo":7,"enqueuedTime":null,"isInclusive":true}'
POSITIONS = '{"{\\"ehName\\":\\"orders\\",\\"partitionId\\":0}":' + POSITION + "}"

OF_CONNECTOR = {
    *("connectionString", "consumerGroup", "startingPositions", "startingPosition"),
    *("endingPositions", "endingPosition", "maxEventsPerTrigger", "receiverTimeout"),
    *("operationTimeout", "prefetchCount", "threadPoolSize", "useExclusiveReceiver"),
    *("maxSilentTime", "dynamicPartitionDiscovery", "slowPartitionAdjustment"),
    *("maxAcceptableBatchReceiveTime", "throttlingStatusPlugin", "useAadAuth"),
    *("aadAuthCallback", "aadAuthCallbackParams", "metricPlugin"),
}
"""Options in the tables of the connector's two documents, at the commit a1d92a93."""
OF_KAFKA_SOURCE = {
    *("assign", "subscribe", "subscribePattern", "kafka.bootstrap.servers", "startingTimestamp"),
    *("startingOffsetsByTimestamp", "startingOffsets", "endingTimestamp", "endingOffsets"),
    *("endingOffsetsByTimestamp", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger"),
    *("minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "groupIdPrefix"),
    *("kafka.group.id", "includeHeaders", "startingOffsetsByTimestampStrategy"),
    *("kafka.auto.offset.reset", "kafka.key.deserializer", "kafka.value.deserializer"),
    *("kafka.enable.auto.commit", "kafka.interceptor.classes"),
}
OF_KAFKA_SINK = {
    *("kafka.bootstrap.servers", "topic", "includeHeaders"),
    *("kafka.key.serializer", "kafka.value.serializer"),
}
"""Options in Spark's guide to its Kafka source and sink, those that cannot be set among them."""
NEWER = {"maxRecordsPerPartition"}
"""In the source of Spark 4, and not in the guide."""

VALUES = {
    "connectionString": STRING,
    "startingPositions": POSITIONS,
    "startingPosition": POSITION,
    "endingPositions": POSITIONS,
    "endingPosition": POSITION,
    "receiverTimeout": "PT00H03M20S",
    "operationTimeout": "PT00H01M00S",
    "useExclusiveReceiver": "true",
    "failOnDataLoss": "false",
    "maxTriggerDelay": "15m",
}
"""A value for each option that is accepted; those that are not named count something."""


def rows(title):
    """The options of a table by name: what is here, and the sentence without its marks."""
    section = PAGE.read_text().split(f"\n### {title}\n")[1].split("\n##")[0]
    cells = [re.split(r" ?\| ?", line)[1:-1] for line in section.splitlines() if "| `" in line]
    return {name.strip("`"): (here, text.replace("`", "")) for name, here, text in cells}


SOURCES = {**rows("Options of the JVM connector"), **rows("Options of Spark's Kafka source")}
SINKS = rows("The sinks")


ENTRA = {"fullyQualifiedNamespace": "ns", "eventHubName": "orders"}
CALLBACK = {**ENTRA, "aadAuthCallback": "own_credentials:token"}
SIGN_IN = {
    "useAadAuth": {**CALLBACK, "useAadAuth": "true"},
    "aadAuthCallback": CALLBACK,
    "aadAuthCallbackParams": {**CALLBACK, "aadAuthCallbackParams": '{"expires_on": "4102444800"}'},
}
"""Options for signing in, which replace the connection string."""


def options(name):
    """Options of a hub, with one more and what it needs."""
    if name in SIGN_IN:
        return SIGN_IN[name]
    needed = {"maxTriggerDelay": {"minEventsPerTrigger": "5"}}.get(name, {})
    if name.startswith("kafka."):
        needed = {"transport": "kafka"}
    return {"connectionString": STRING, **needed, name: VALUES.get(name, "5")}


def test_the_page_has_every_option_of_the_documents():
    assert set(rows("Options of the JVM connector")) == OF_CONNECTOR
    assert set(rows("Options of Spark's Kafka source")) == OF_KAFKA_SOURCE | NEWER
    assert set(SINKS) == OF_KAFKA_SINK
    refused = {name for name, (here, _) in {**SOURCES, **SINKS}.items() if here == "refused"}
    assert refused == set(REFUSED)


def answer(parse, given):
    """The sentence with which options are refused; "" if they are accepted."""
    try:
        parse(given)
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("prefix", ["", "eventhubs."])
def test_an_option_is_accepted_or_refused_with_the_sentence_of_the_page(prefix):
    offenders = {}
    for name, (here, sentence) in {**SOURCES, **SINKS}.items():
        given = options(name)
        given = {**{key: given[key] for key in given if key != name}, prefix + name: given[name]}
        expected = f"the option {name} is refused: {sentence}" if here == "refused" else ""
        parsers = [SourceOptions.parse]
        if here == "refused" or name in SINKS or name in SINK_NAMES:
            parsers.append(SinkOptions.parse)
        found = {answer(parse, given) for parse in parsers}
        if found != {expected} or here not in {"refused", "same name"}:
            offenders[name] = found
    assert not offenders


def test_a_sink_accepts_an_option_or_names_it_as_one_for_reading():
    # Jobs share the options of the hub between source and sink.
    offenders = {}
    for name in sorted({*OF_CONNECTOR, *OF_KAFKA_SOURCE} - {*REFUSED}):
        is_taken = name in {*SINK_NAMES, "consumerGroup"} or name.startswith("kafka.")
        found = answer(SinkOptions.parse, options(name))
        is_for_reading = re.search(r"the option \w+ is for reading", found)
        if found if is_taken else not is_for_reading:
            offenders[name] = found
    assert not offenders


REFERENCE = PAGE.parents[1] / "reference"
TABLES = (PAGE, *(REFERENCE / f"spark-{name}.md" for name in ("source", "sink", "kafka")))
IN_DOCS = {
    name
    for page in TABLES
    for row in re.findall(r"^\| (`[^|]*) \|", page.read_text(), re.MULTILINE)
    for name in re.findall(r"`([A-Za-z.]+)`", row)
}
"""Every name in the first column of a table: the options, and some other words."""
ODD = [
    *("", " ", "x", "-1", "0", "1_0", "1e999", "nan", "9" * 400, "ünï", "\udc80", "/nowhere/x"),
    *("a/b", "a,b", "sb://x", "2026-13-45", "TRUE", "None", "null", "1.5", "env:", "env:NOPE"),
    *("memory:", "sqlite:///", "\x00", "[" * 5000, "5m", "16mb", "P1D", "http://:x@h"),
    *("[]", "{}", "[1]", '{"a":1}', '{"0":"x"}', '{"orders":{"0":"x"}}', '{"ehName":"orders"}'),
]


@pytest.mark.parametrize("transport", ["amqp", "kafka"])
@pytest.mark.parametrize("options", [SourceOptions, SinkOptions])
def test_an_odd_value_of_any_option_is_accepted_or_refused_in_one_line(
    options: type[SourceOptions] | type[SinkOptions], transport: str
) -> None:
    assert len(IN_DOCS) > 90
    strays = []
    for name in sorted(IN_DOCS):
        for value in ODD:
            try:
                options.parse({"connectionString": STRING, "transport": transport, name: value})
            except CheckpointStoreError as error:
                strays += [str(error)] if "\n" in str(error) else []
            except Exception as error:
                strays.append(f"{name}={value[:20]!r}: {type(error).__name__}: {error}"[:200])
    assert strays == []
