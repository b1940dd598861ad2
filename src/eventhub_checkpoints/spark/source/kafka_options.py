"""Options of `transport=kafka`: a hub's Kafka endpoint, or a topic of another cluster."""

from collections.abc import Callable, Mapping
from typing import cast, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.receive.kafka.records import HeaderForm
from eventhub_checkpoints.spark.source.options import KAFKA, from_environment, read_group


def read_kafka_address(
    given: Mapping[str, str], read_hub: Callable[[Mapping[str, str]], HubAddress]
) -> KafkaAddress:
    """Return the hub if there is a connection string or a credential, else the topic.

    Args:
        given: the options.
        read_hub: reads those of a hub.

    Raises:
        ConfigurationError: the options name neither, or one is malformed or reserved.
    """
    settings = {
        name.removeprefix(KAFKA): from_environment(name, value)
        for name, value in given.items()
        if name.startswith(KAFKA)
    }
    if "bootstrap.servers" not in settings or given.keys() & {"connectionString", "credential"}:
        return KafkaAddress.of_hub(read_hub(given), settings, read_headers(given, "auto"))
    return KafkaAddress.of_topic(
        given.get("eventHubName", ""),
        settings,
        read_group(given, "consumerGroup", DEFAULT_CONSUMER_GROUP),
        namespace=given.get("fullyQualifiedNamespace", ""),
        headers=read_headers(given, "text"),
    )


def read_headers(given: Mapping[str, str], default: HeaderForm) -> HeaderForm:
    """Return how headers are converted to properties."""
    text = given.get("kafkaHeaders", default).strip().lower()
    if text not in get_args(HeaderForm):
        raise ConfigurationError(
            f"kafkaHeaders is {quoted(text)}; expected one of {', '.join(get_args(HeaderForm))}"
        )
    return cast("HeaderForm", text)
