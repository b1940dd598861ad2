"""Address of a hub's Kafka endpoint, or of a topic of any Kafka cluster."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self, TypeVar

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from confluent_kafka import Consumer, TopicPartition

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    PartitionProperties,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.credentials import Credential
from eventhub_checkpoints.receive.kafka.asking import (
    IDLE,
    Asker,
    TopicMissingError,
    forget,
    key_of,
    shared,
)
from eventhub_checkpoints.receive.kafka.client import (
    QUEUED_MESSAGES,
    Settings,
    checked,
    first_server,
    made,
    of_connection_string,
    of_token,
    open_consumer,
    tokens_of,
)
from eventhub_checkpoints.receive.kafka.messages import HeaderForm, HeaderReader
from eventhub_checkpoints.receive.kafka.stream import KafkaStream
from eventhub_checkpoints.receive.kafka.troubles import Troubles
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.stream import Stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KafkaAddress(Address):
    """Hub or topic read over Kafka; its `repr` shows no secret.

    A hub's Kafka offsets are its sequence numbers, and its names are the same as over AMQP, so
    checkpoints are interchangeable between both.

    Attributes:
        fully_qualified_namespace: as every checkpoint store spells it.
        eventhub_name: the topic.
        consumer_group: whose checkpoints; Kafka itself does not use it, as nothing is committed
            there.
        settings: of librdkafka; they take precedence over all derived ones.
        connection_string: includes the key or signature; "" where there is none.
        credential: an object that provides tokens, or its name as in `credential_of`; "" for none.
        headers: how headers become properties.
    """

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str
    settings: Settings = field(default_factory=dict, repr=False)
    connection_string: str = field(default="", repr=False)
    credential: str | Credential = field(default="", repr=False)
    headers: HeaderForm = "auto"

    @classmethod
    def of_hub(
        cls, hub: HubAddress, settings: Settings | None = None, headers: HeaderForm = "auto"
    ) -> Self:
        """Return the address of the same hub over Kafka.

        Args:
            hub: as over AMQP; its settings are those of another client, and are not used.
            settings: of librdkafka, such as `{"socket.timeout.ms": "30000"}`.
            headers: see the attribute.

        Raises:
            ConfigurationError: one of the settings is reserved.
        """
        text = connection_string_of(hub)
        return cls(
            hub.fully_qualified_namespace,
            hub.eventhub_name,
            hub.consumer_group,
            checked(settings or {}),
            text,
            "" if text else credential_in(hub),
            headers,
        )

    @classmethod
    def of_topic(
        cls,
        topic: str,
        settings: Settings,
        consumer_group: str = DEFAULT_CONSUMER_GROUP,
        *,
        namespace: str = "",
        headers: HeaderForm = "text",
    ) -> Self:
        """Return the address of a topic of a Kafka cluster outside Event Hubs.

        Args:
            topic: its name.
            settings: of librdkafka, including `bootstrap.servers`.
            consumer_group: whose checkpoints.
            namespace: the cluster's name in checkpoints; default: its first bootstrap server.
            headers: see the attribute.

        Raises:
            ConfigurationError: a name or `bootstrap.servers` is missing, or one of the settings
                is reserved.
        """
        name = namespace or first_server(settings)
        if not (topic.strip() and first_server(settings)):
            raise ConfigurationError(
                "a topic over Kafka needs its name and kafka.bootstrap.servers, such as "
                "broker.example.net:9092"
            )
        checked_name("topic", topic, "the name of a topic")
        checked_name("namespace", name, "the name of the cluster, such as broker.example.net")
        group = checked_group("consumer_group", consumer_group)
        return cls(name, topic, group, checked(settings), headers=headers)

    def ask_partition_ids(self) -> list[str]:
        return self._asked(Asker.partition_ids)

    def ask_properties(self, partition_id: str) -> PartitionProperties:
        first, following = self._asked(lambda asker: asker.ends(partition_id))
        return PartitionProperties(partition_id, first, following, "", None)

    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        if isinstance(start, str):
            raise ConfigurationError(
                f"partition {partition_id} of {self}: the offset {quoted(start)} cannot be looked "
                "up over Kafka, whose offsets are sequence numbers; give a sequence number (a "
                "checkpoint has one), or use transport=amqp"
            )
        time = start.timestamp() * 1000
        milliseconds = math.ceil(time) if inclusive else math.floor(time) + 1

        def look_up(asker: Asker) -> int:
            # The end first: events that arrive while the time is looked up are not before it.
            _, following = asker.ends(partition_id, timeout)
            found = asker.first_at(partition_id, milliseconds, timeout)
            return following if found is None else found

        return self._asked(look_up)

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        ahead = {"queued.min.messages": str(min(QUEUED_MESSAGES, until - start))}
        consumer, troubles = self._open({**ahead, **self._settings()})
        where = TopicPartition(self.eventhub_name, int(partition_id), start)
        return KafkaStream(consumer, troubles, HeaderReader(self.headers), where)

    def _asked(self, question: Callable[[Asker], T]) -> T:
        settings = {**IDLE, **self._settings()}
        key = key_of(str(self), settings, self.credential)
        consumer, troubles = shared(key, lambda: self._open(settings))
        try:
            return question(Asker(consumer, troubles, self.eventhub_name))
        except TopicMissingError as error:
            kind = "event hub" if self._is_hub else "topic"
            raise ConfigurationError(
                f"{self.fully_qualified_namespace} has no {kind} {self.eventhub_name!r} over "
                f"Kafka, or not that partition of it ({error})"
            ) from error
        except ConfigurationError:
            forget(key)
            raise

    @property
    def _is_hub(self) -> bool:
        return bool(self.connection_string or self.credential)

    def _settings(self) -> dict[str, str]:
        namespace = self.fully_qualified_namespace
        if self.connection_string:
            return {**of_connection_string(namespace, self.connection_string), **self.settings}
        return {**(of_token(namespace) if self.credential else {}), **self.settings}

    def _open(self, settings: Mapping[str, str]) -> tuple[Consumer, Troubles]:
        secrets = (value for name, value in settings.items() if "password" in name)
        troubles = Troubles(str(self), secrets)
        tokens = (
            tokens_of(self.credential, self.fully_qualified_namespace) if self.credential else None
        )
        return open_consumer(self.consumer_group, settings, tokens, troubles), troubles


def credential_in(hub: HubAddress) -> str | Credential:
    """Return the credential of a hub, or its name."""
    given: str | Credential = hub.settings.get("credential", hub.credential)
    return given


def connection_string_of(hub: HubAddress) -> str:
    """Return a connection string with a hub's key or signature; "" if it uses tokens."""
    if hub.connection_string:
        return hub.connection_string
    credential = made(credential_in(hub))
    if isinstance(credential, AzureSasCredential):
        secret = f"SharedAccessSignature={credential.signature}"
    elif isinstance(credential, AzureNamedKeyCredential):
        name, key = credential.named_key
        secret = f"SharedAccessKeyName={name};SharedAccessKey={key}"
    else:
        return ""
    namespace = hub.fully_qualified_namespace
    return f"Endpoint=sb://{namespace}/;{secret};EntityPath={hub.eventhub_name}"
