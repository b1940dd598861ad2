"""What `transport=kafka` takes, as far as that goes without a broker."""

import pickle

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.spark.source.options import SourceOptions

SECRET = "c2VjcmV0LWtleS10aGF0LW5vLWxvZy1tYXktc2hvdw=="
STRING = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;"
    f"SharedAccessKey={SECRET};EntityPath=Orders"
)
HUB = {"connectionString": STRING, "transport": "kafka"}
TOPIC = {"transport": "kafka", "kafka.bootstrap.servers": "b:9092", "eventHubName": "Orders"}


def address(options):
    return SourceOptions.parse(options).address


def test_amqp_is_the_default():
    assert isinstance(address({"connectionString": STRING}), HubAddress)
    assert isinstance(address({"connectionString": STRING, "transport": "AMQP"}), HubAddress)


def test_a_hub_has_the_same_names_over_kafka():
    over_kafka = address({**HUB, "consumerGroup": "cg"})
    assert isinstance(over_kafka, KafkaAddress)
    over_amqp = address({"connectionString": STRING, "consumerGroup": "cg"})
    assert over_kafka.scope() == over_amqp.scope()
    assert over_kafka.headers == "auto"


def test_a_topic_needs_no_connection_string():
    topic = address(TOPIC)
    assert topic == KafkaAddress.of_topic("Orders", {"bootstrap.servers": "b:9092"})
    assert topic.headers == "text"
    named = address({**TOPIC, "fullyQualifiedNamespace": "cluster-a", "kafkaHeaders": "auto"})
    assert (str(named), named.headers) == ("cluster-a/Orders", "auto")


def test_settings_of_librdkafka_are_passed_on_from_the_environment_too(monkeypatch):
    monkeypatch.setenv("BROKER_PASSWORD", SECRET)
    given = {
        **TOPIC,
        "Kafka.SASL.Password": "env:BROKER_PASSWORD",
        "eventhubs.kafka.client.id": "j",
    }
    assert address(given).settings == {
        "bootstrap.servers": "b:9092",
        "sasl.password": SECRET,
        "client.id": "j",
    }


def test_a_hub_may_be_reached_somewhere_else():
    local = {**HUB, "kafka.bootstrap.servers": "localhost:9092"}
    assert address(local).client_settings()["bootstrap.servers"] == "localhost:9092"
    assert address(local).client_settings()["sasl.password"] == STRING


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"connectionString": STRING, "transport": "mqtt"}, "expected amqp or kafka"),
        ({"connectionString": STRING, "kafka.client.id": "j"}, "kafka.client.id needs transport"),
        ({"connectionString": STRING, "kafkaHeaders": "text"}, "kafkaHeaders needs transport"),
        ({**HUB, "kafkaHeaders": "json"}, "expected auto, amqp or text"),
        ({**HUB, "kafka.group.id": "g"}, "refused: use consumerGroup"),
        ({"transport": "kafka"}, "the option connectionString is missing"),
        ({"transport": "kafka", "kafka.bootstrap.servers": "b:9092"}, "needs its name"),
        ({**HUB, "kafkaBootstrap": "b"}, "kafkaBootstrap is not known"),
    ],
)
def test_what_cannot_work_is_said_with_what_can(given, said):
    with pytest.raises(ConfigurationError, match=said):
        address(given)


def test_no_option_shows_a_secret():
    options = SourceOptions.parse({**HUB, "kafka.ssl.key.password": SECRET})
    assert SECRET not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
