import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import EventPosition
from eventhub_checkpoints.spark.position_formats import connector_positions
from eventhub_checkpoints.spark.source.options import Limits, SourceOptions

SECRET = "c2VjcmV0LWtleS10aGF0LW5vLWxvZy1tYXktc2hvdw=="
STRING = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;"
    f"SharedAccessKey={SECRET};EntityPath=Orders"
)


def parse(**options):
    return SourceOptions.parse({"connectionString": STRING, **options})


@pytest.mark.parametrize(
    "name", ["connectionString", "eventhubs.connectionString", "EVENTHUBS.CONNECTIONSTRING"]
)
def test_names_are_taken_with_and_without_prefix_in_any_case(name):
    options = SourceOptions.parse({name: STRING})
    assert options.address.eventhub_name == "Orders"
    assert options.address.fully_qualified_namespace == "ns.servicebus.windows.net"


def test_a_batch_is_everything_unless_said_otherwise():
    options = parse()
    assert options.starting_position == EventPosition.from_start_of_stream()
    assert options.ending_position == EventPosition.from_end_of_stream()
    assert options.address.consumer_group == "$Default"
    assert options.reading.fail_on_data_loss


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("startingPostion", "startingPosition"),
        ("eventhubs.connectionstrng", "connectionString"),
        ("checkpoint_store", "checkpointStore"),
        ("failOnDataloss2", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_names_the_nearest_known_one(given, nearest):
    with pytest.raises(ConfigurationError, match=f"{given} is not known.*did you mean {nearest}"):
        parse(**{given: SECRET})


def test_an_option_of_the_sink_is_sent_there():
    with pytest.raises(ConfigurationError, match="belongs to writeStream"):
        parse(checkpointLocation="query")


def test_an_option_like_no_other_is_answered_with_the_list():
    with pytest.raises(ConfigurationError, match="expected one of connectionString, fullyQ"):
        parse(zzz="1")


def test_an_option_given_twice_with_two_values_is_an_error():
    with pytest.raises(ConfigurationError, match="consumerGroup is set twice"):
        parse(**{"consumerGroup": "a", "eventhubs.consumerGroup": "b"})


def test_the_connection_string_is_needed():
    with pytest.raises(ConfigurationError, match="connectionString is missing"):
        SourceOptions.parse({})


def test_a_secret_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("HUB_FOR_TEST", STRING)
    assert SourceOptions.parse({"connectionString": "env:HUB_FOR_TEST"}) == parse()


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(ConfigurationError, match="NO_SUCH_VARIABLE"):
        SourceOptions.parse({"connectionString": "env:NO_SUCH_VARIABLE"})


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"SharedAccessKey={SECRET}",
        f"Endpoint=sb://ns/;SharedAccessKey={SECRET}",
        f"Endpoint=sb://ns/;{SECRET}",
    ],
)
def test_no_error_shows_the_connection_string(text):
    with pytest.raises(ConfigurationError) as caught:
        SourceOptions.parse({"connectionString": text})
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_repr_shows_a_secret():
    assert SECRET not in repr(parse(checkpointStore=f"https://a/c?sig={SECRET}"))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EventPosition.from_start_of_stream()),
        ("latest", EventPosition.from_end_of_stream()),
        (
            "2026-11-21T10:00:00+01:00",
            EventPosition.from_enqueued_time(datetime(2026, 11, 21, 9, tzinfo=UTC)),
        ),
        (
            '{"offset":null,"seqNo":7,"enqueuedTime":null,"isInclusive":true}',
            EventPosition.from_sequence_number(7, inclusive=True),
        ),
    ],
)
def test_a_position_is_a_word_a_time_or_the_connectors_json(text, position):
    assert parse(startingPosition=text).starting_position == position
    assert parse(endingPosition=text).ending_position == position


@pytest.mark.parametrize("name", ["consumerGroup", "checkpointConsumerGroup"])
@pytest.mark.parametrize("group", ["", " "])
def test_an_empty_consumer_group_is_refused(name, group):
    with pytest.raises(ConfigurationError, match=f"{name} is '{group}'; expected a consumer group"):
        parse(**{name: group})


def test_a_word_that_is_no_position_is_answered_with_the_words_that_are():
    with pytest.raises(ConfigurationError, match=r"is 'soon'; .* earliest, latest"):
        parse(startingPosition="soon")


@pytest.mark.parametrize(("given", "meant"), [("-1", "earliest"), ("@latest", "latest")])
def test_the_clients_word_for_an_end_is_answered_with_the_sources(given, meant):
    with pytest.raises(
        ConfigurationError, match=f"startingPosition is '{given}'; expected {meant}, which"
    ):
        parse(startingPosition=given)


@pytest.mark.parametrize("text", ["2026-11-21T25:00:00", "yesterday", "", "123"])
def test_a_position_that_is_no_time_is_named(text):
    with pytest.raises(ConfigurationError, match="startingPosition is "):
        parse(startingPosition=text)


@pytest.mark.parametrize("text", ["2026-11-21T10:00", "2026-11-21T11:00+01:00"])
def test_a_time_without_an_offset_is_utc(text):
    moment = datetime(2026, 11, 21, 10, tzinfo=UTC)
    expected = EventPosition.from_enqueued_time(moment)
    assert parse(startingPosition=text).starting_position == expected


def test_positions_by_partition_are_the_connectors_json():
    positions = {"3": EventPosition.from_sequence_number(9)}
    options = parse(endingPositions=connector_positions("Orders", positions))
    assert options.ending_positions == positions


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("0.5", 0.5), ("PT12S", 12), ("PT1H1M1.5S", 3661.5)]
)
def test_durations_are_seconds_or_iso_8601(text, seconds):
    assert parse(receiverTimeout=text).reading.receiver_timeout == seconds
    assert parse(operationTimeout=text).reading.operation_timeout == seconds
    assert parse(idlePollInterval=text).idle_poll_interval == seconds


@pytest.mark.parametrize(
    "text", ["PT", "0", "-1", "soon", "inf", "nan", "1e300", "9" * 400 + "s", "9" * 5000 + "m"]
)
def test_a_duration_that_is_none_is_refused(text):
    for name in ("receiverTimeout", "idlePollInterval"):
        with pytest.raises(ConfigurationError, match=f"{name} is"):
            parse(**{name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("failOnDataLoss", "no"),
        ("prefetchCount", "0"),
        ("prefetchCount", "1e3"),
        ("prefetchCount", "9" * 5000),
    ],
)
def test_flags_and_counts_are_checked(name, text):
    with pytest.raises(ConfigurationError, match=f"{name} is '{text[:50]}"):
        parse(**{name: text})


@pytest.mark.parametrize("text", ["auto", "fast", "Public"])
def test_the_receive_path_is_read(text):
    assert parse(receivePath=text).reading.receive_path == text.lower()


def test_the_receive_path_is_auto_where_nothing_is_said():
    assert parse().reading.receive_path == "auto"


def test_a_receive_path_that_does_not_exist_is_refused():
    with pytest.raises(ConfigurationError, match="'slow'; expected auto, fast or public"):
        parse(receivePath="slow")


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({}, None),
        ({"ownerLevel": "7"}, 7),
        ({"eventhubs.useExclusiveReceiver": "true"}, 0),
        ({"eventhubs.useExclusiveReceiver": "false"}, None),
    ],
)
def test_a_reader_is_exclusive_only_if_the_job_says_so(given, level):
    assert parse(**given).reading.owner_level == level


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ownerLevel": "-1"}, "ownerLevel is '-1'; expected a whole number of at least 0"),
        ({"ownerLevel": "1", "useExclusiveReceiver": "true"}, "not both"),
        ({"ownerLevel": "0", "transport": "kafka"}, "ownerLevel is refused with transport=kafka"),
        ({"useExclusiveReceiver": "yes"}, "expected true or false"),
        ({"minPartitions": "8", "useExclusiveReceiver": "true"}, "several receivers"),
        ({"minPartitions": "8", "partitionsPerTask": "2"}, "joins them"),
        ({"minPartitions": "0"}, "minPartitions is '0'"),
        ({"maxTriggerDelay": "15m"}, "needs minEventsPerTrigger"),
        (
            {"minEventsPerTrigger": "9", "maxTriggerDelay": "900000"},
            "is .* with its unit",
        ),
        ({"minEventsPerTrigger": "9", "maxTriggerDelay": "15 parsecs"}, "maxTriggerDelay is"),
    ],
)
def test_options_that_contradict_each_other_are_named(given, said):
    with pytest.raises(ConfigurationError, match=said):
        parse(**given)


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("16m", 2**24), ("16 MB", 2**24), ("3k", 3072), ("5b", 5)]
)
def test_bytes_are_written_with_and_without_a_unit(text, size):
    assert parse(maxBytesPerTrigger=text).limits.size == size


@pytest.mark.parametrize("text", ["0", "", "m", "-1", "1.5g", "many"])
def test_bytes_that_are_none_are_refused(text):
    with pytest.raises(ConfigurationError, match="maxBytesPerTrigger is"):
        parse(maxBytesPerTrigger=text)


@pytest.mark.parametrize("delay", ["15m", "900s", "15 min", "PT15M", "900000ms"])
def test_a_delay_is_written_as_in_spark_or_as_in_the_connector(delay):
    assert parse(minEventsPerTrigger="9", maxTriggerDelay=delay) == replace(
        parse(minEventsPerTrigger="9"),
        names=frozenset({"connectionString", "minEventsPerTrigger", "maxTriggerDelay"}),
    )


BY_NAME = {"fullyQualifiedNamespace": "ns.servicebus.windows.net", "eventHubName": "Orders"}


def test_a_hub_may_be_given_by_names_and_a_credential_from_the_environment(monkeypatch):
    monkeypatch.setenv("HUB_KEY", f"SharedAccessKeyName=n;SharedAccessKey={SECRET}")
    options = SourceOptions.parse({**BY_NAME, "credential": "env:HUB_KEY", "consumerGroup": "g"})
    assert options.address.scope().as_dict() == {
        "fully_qualified_namespace": "ns.servicebus.windows.net",
        "eventhub_name": "Orders",
        "consumer_group": "g",
    }
    assert SECRET not in repr(options)


def test_a_connection_string_of_a_namespace_needs_the_hubs_name():
    bare = STRING.replace(";EntityPath=Orders", "")
    options = SourceOptions.parse({"connectionString": bare, "eventHubName": "clicks"})
    assert options.address.eventhub_name == "clicks"
    with pytest.raises(ConfigurationError, match="names no hub"):
        SourceOptions.parse({"connectionString": bare})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "connectionString is missing; set it, or fullyQualifiedNamespace, eventHubName, cred"),
        ({**BY_NAME}, "fullyQualifiedNamespace also needs the option credential"),
        (
            {"credential": "DefaultAzureCredential"},
            "needs the option fullyQualifiedNamespace and eventHubName",
        ),
        ({"connectionString": STRING, **BY_NAME}, "connectionString or fullyQ.*, not both"),
    ],
)
def test_a_hub_is_given_in_one_way_and_whole(given, said):
    with pytest.raises(ConfigurationError, match=said) as caught:
        SourceOptions.parse(given)
    assert SECRET not in str(caught.value)


def test_limits_are_the_connectors():
    key = '{"ehName":"Orders","partitionId":3}'
    limits = parse(
        **{
            "maxEventsPerTrigger": "1000",
            "eventhubs.maxRatePerPartition": "100",
            "eventhubs.maxRatesPerPartition": json.dumps({key: 7}),
        }
    ).limits
    assert limits == Limits(1000, 100, {"3": 7})
    assert parse().limits == Limits()


@pytest.mark.parametrize("count", ["7", 0, -1, 1.5, True, None])
def test_a_rate_that_is_no_count_names_its_partition(count):
    rates = json.dumps({'{"ehName":"Orders","partitionId":3}': count})
    with pytest.raises(ConfigurationError, match=r"maxRatesPerPartition, entry .*partitionId.:3"):
        parse(maxRatesPerPartition=rates)


def test_a_rate_of_another_hub_is_refused():
    with pytest.raises(ConfigurationError, match="ehName must be 'Orders'"):
        parse(maxRatesPerPartition='{"{\\"ehName\\":\\"o\\",\\"partitionId\\":0}":5}')


def test_a_task_reads_as_many_partitions_as_configured():
    assert parse().ranges_per_task == 1
    assert parse(partitionsPerTask="4").ranges_per_task == 4
    auto = parse(partitionsPerTask="Auto", parallelism="8")
    assert (auto.ranges_per_task, auto.parallelism) == (None, 8)
    with pytest.raises(ConfigurationError, match=r"'many'; expected .* at least 1, or auto"):
        parse(partitionsPerTask="many")
