"""Address of a hub's Kafka endpoint, or of a topic of any Kafka cluster, and queries to it."""

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeVar, get_args

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require, require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    HubProperties,
    HubQueries,
    PartitionProperties,
    Stream,
    check_types,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.credentials import (
    Credential,
    CredentialClass,
    CredentialName,
    credential_of,
)
from eventhub_checkpoints.receive.hub import ask_with_hub
from eventhub_checkpoints.receive.kafka import client
from eventhub_checkpoints.receive.kafka.client import ClientErrors, Settings
from eventhub_checkpoints.receive.kafka.records import HeaderForm, HeaderReader, KafkaStream
from eventhub_checkpoints.receive.ranges import ReadSettings

T = TypeVar("T")

QUERY_TIMEOUT = 30.0
FIRST_WAIT = 1.0
"""Seconds before librdkafka's errors are examined the first time; doubled after each time."""

PAUSE = 0.1
"""Seconds between two attempts: some errors are immediate and temporary."""

IDLE: Settings = {"connections.max.idle.ms": "30000"}
"""Idle time after which connections of an unused client are closed."""

CLIENTS_KEPT = 4


class TopicMissingError(Exception):
    """The topic or its partition does not exist."""


class TopicQueries:
    """Queries about one topic, through a client shared with others.

    Args:
        consumer: used from several threads, which librdkafka allows.
        errors: receives that consumer's errors.
    """

    def __init__(self, consumer: Consumer, errors: ClientErrors, topic: str) -> None:
        self._consumer = consumer
        self._errors = errors
        self._topic = topic

    def partition_ids(self, timeout: float = QUERY_TIMEOUT) -> list[str]:
        """Return the ids of all partitions, in numeric order.

        Raises:
            TopicMissingError: there is no such topic.
        """

        def query(wait: float) -> list[str]:
            topic = self._consumer.list_topics(self._topic, wait).topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            return [str(number) for number in sorted(topic.partitions)]

        return self._retry("its partitions", query, timeout)

    def ends(self, partition_id: str, timeout: float = QUERY_TIMEOUT) -> tuple[int, int]:
        """Return a partition's first retained offset, and the offset of its next record.

        With `isolation.level=read_committed`, which is librdkafka's default, an open transaction
        lies beyond the end.

        Raises:
            TopicMissingError: there is no such partition.
        """
        partition = TopicPartition(self._topic, int(partition_id))

        def query(wait: float) -> tuple[int, int]:
            ends = self._consumer.get_watermark_offsets(partition, wait)
            if ends is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            low, high = ends
            return low, high

        return self._retry(f"the ends of partition {partition_id}", query, timeout)

    def first_at(self, partition_id: str, milliseconds: int, timeout: float) -> int | None:
        """Return the offset of the first record at or after a time; None if there is none.

        Raises:
            TopicMissingError: there is no such partition.
        """
        time_ = TopicPartition(self._topic, int(partition_id), milliseconds)

        def query(wait: float) -> int | None:
            [position] = self._consumer.offsets_for_times([time_], wait)
            if position.error is not None:
                raise KafkaException(position.error)
            return position.offset if position.offset >= 0 else None

        return self._retry(f"a time in partition {partition_id}", query, timeout)

    def _retry(self, what: str, query: Callable[[float], T], timeout: float = QUERY_TIMEOUT) -> T:
        """Retry until there is an answer; the client does not report why one is missing."""
        begun, wait = time.monotonic(), FIRST_WAIT
        while (left := begun + timeout - time.monotonic()) > 0:
            try:
                return query(min(wait, left))
            except KafkaException as error:
                inner = client.error_of(error)
                if inner.code() in client.MISSING:
                    raise TopicMissingError(inner.str()) from error
                self._errors.raise_if_final(inner)
                # Also makes the client report pending errors to `errors`.
                self._consumer.poll(PAUSE)
                self._errors.raise_denied()
                wait *= 2
        raise self._errors.unavailable(what, timeout)


Key = tuple[int, str, frozenset[tuple[str, str]], CredentialName | int]
Opened = tuple[Consumer, ClientErrors]

_kept: OrderedDict[Key, Opened] = OrderedDict()
_lock = threading.Lock()


def key_of(where: str, settings: Settings, credential: object) -> Key:
    """Return the key that identifies a client, including the process: threads end at a fork."""
    name = credential if isinstance(credential, str | CredentialClass) else id(credential)
    return os.getpid(), where, frozenset(settings.items()), name


def shared(key: Key, make: Callable[[], Opened]) -> Opened:
    """Return the client of this process for these settings, created if necessary.

    A stream queries each partition every second: TLS and a log-in per query would cost more than
    the answers. Where there are many clients, the least used ones are discarded.
    """
    with _lock:
        if key not in _kept:
            _kept[key] = make()
            while len(_kept) > CLIENTS_KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return _kept[key]


def forget(key: Key) -> None:
    """Discard a client that was refused; the next query creates another."""
    with _lock:
        _kept.pop(key, None)


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
    credential: CredentialName | Credential = field(default="", repr=False)
    headers: HeaderForm = "auto"

    def __post_init__(self) -> None:
        check_types(self, self.connection_string, self.settings)
        is_form = self.headers in get_args(HeaderForm)
        require("headers", self.headers, is_form, "'auto', 'amqp' or 'text'")

    @classmethod
    def of_hub(
        cls, hub: HubAddress, settings: Settings | None = None, headers: HeaderForm = "auto"
    ) -> Self:
        """Return the address of the same hub over Kafka.

        Args:
            hub: as over AMQP; of its settings, `connection_verify` is used.
            settings: of librdkafka, such as `{"socket.timeout.ms": "30000"}`.
            headers: see the attribute.

        Raises:
            ConfigurationError: one of the settings is reserved, or the hub's have no meaning over
                Kafka.
        """
        require_type("hub", hub, isinstance(hub, HubAddress), "a HubAddress")
        require_settings(settings or {})
        text = connection_string_of(hub)
        return cls(
            hub.fully_qualified_namespace,
            hub.eventhub_name,
            hub.consumer_group,
            client.checked({**kafka_settings(hub.settings), **(settings or {})}),
            text,
            "" if text else hub.chosen_credential,
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
        require_settings(settings)
        name = namespace or client.first_server(settings)
        if not (isinstance(topic, str) and topic.strip() and client.first_server(settings)):
            raise ConfigurationError(
                "a topic over Kafka needs its name and kafka.bootstrap.servers, such as "
                "broker.example.net:9092"
            )
        checked_name("topic", topic, "the name of a topic")
        checked_name("namespace", name, "the name of the cluster, such as broker.example.net")
        group = checked_group("consumer_group", consumer_group)
        return cls(name, topic, group, client.checked(settings), headers=headers)

    @property
    def lasting_namespace(self) -> str:
        """Namespace of the hub, or name of the cluster; "" if it is only that of a server.

        The list of a cluster's servers, and so the first of them, may change.
        """
        is_server = self.fully_qualified_namespace == client.first_server(self.settings)
        return "" if is_server and not self._is_hub else self.fully_qualified_namespace

    def open_queries(self) -> HubQueries:
        return KafkaQueries(self)

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

        def look_up(queries: TopicQueries) -> int:
            # The end first: events that arrive while the time is looked up are not before it.
            _, following = queries.ends(partition_id, timeout)
            first = queries.first_at(partition_id, milliseconds, timeout)
            return following if first is None else first

        return self.query(look_up)

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """Open a stream as `Address` does.

        Raises:
            ConfigurationError: `ReadSettings.owner_level` is set, which Kafka does not have.
        """
        if settings.owner_level is not None:
            raise ConfigurationError("Kafka has no owner levels; leave owner_level out")
        ahead = {"queued.min.messages": str(min(client.QUEUED_MESSAGES, until - start))}
        consumer, errors = self._open({**ahead, **self.client_settings()})
        position = TopicPartition(self.eventhub_name, int(partition_id), start)
        return KafkaStream(consumer, errors, HeaderReader(self.headers), position)

    def query(self, query: Callable[[TopicQueries], T]) -> T:
        """Run a query through the client that this process shares.

        Raises:
            ConfigurationError: there is no such hub, topic or partition, or access is refused.
            HubUnavailableError: there was no answer in time.
        """
        settings = {**IDLE, **self.client_settings()}
        key = key_of(str(self), settings, self.credential)
        consumer, errors = shared(key, lambda: self._open(settings))
        try:
            return query(TopicQueries(consumer, errors, self.eventhub_name))
        except TopicMissingError as error:
            kind = "event hub" if self._is_hub else "topic"
            raise ConfigurationError(
                f"{self.fully_qualified_namespace} has no {kind} {self.eventhub_name!r} over "
                f"Kafka, or this {kind} lacks the partition ({error})"
            ) from error
        except ConfigurationError:
            forget(key)
            raise

    @property
    def _is_hub(self) -> bool:
        return bool(self.connection_string or self.credential)

    def tokens(self) -> client.Tokens | None:
        """Return a callback for Entra tokens; None where the hub or topic needs none.

        Raises:
            ConfigurationError: the credential cannot be created.
        """
        if not self.credential:
            return None
        return client.tokens_of(self.credential, self.fully_qualified_namespace)

    def client_settings(self) -> dict[str, str]:
        """Return librdkafka's settings for a client of this hub or topic; they hold secrets."""
        if not self._is_hub:
            return dict(self.settings)
        hub = client.hub_settings(self.fully_qualified_namespace, self.connection_string)
        return {**hub, **self.settings}

    def _open(self, settings: Mapping[str, str]) -> Opened:
        secrets = (value for name, value in settings.items() if "password" in name)
        errors = ClientErrors(str(self), secrets)
        return client.open_consumer(self.consumer_group, settings, self.tokens(), errors), errors


class KafkaQueries(HubQueries):
    """Queries through the client that this process shares, which is not closed."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address

    def ask(
        self, partition_ids: Sequence[str], timeout: float
    ) -> tuple[HubProperties, dict[str, PartitionProperties]]:
        query, deadline = self._address.query, time.monotonic() + timeout

        def left() -> float:
            return max(PAUSE, deadline - time.monotonic())

        def ask_hub() -> HubProperties:
            return HubProperties(query(lambda queries: queries.partition_ids(left())), None)

        def ask_partition(partition_id: str) -> PartitionProperties:
            first, following = query(lambda queries: queries.ends(partition_id, left()))
            return PartitionProperties(partition_id, first, following, "", None)

        # Each query gives up in time, and says why; the outer limit does not know the reason.
        hub, partitions, failed = ask_with_hub(
            self._address, partition_ids, ask_hub, ask_partition, 2 * timeout
        )
        for error in failed.values():
            raise error
        return hub, partitions

    def close(self) -> None:
        """Do nothing: the client is shared."""


AMQP_ONLY = {
    "custom_endpoint_address": "customEndpointAddress has no meaning; set kafka.bootstrap.servers",
    "http_proxy": "httpProxy cannot be used: Kafka's client has no HTTP proxies",
    "transport_type": "transportType has no meaning: Kafka's client uses TCP",
}
"""Settings of the AMQP client without a counterpart, and why, with the names of Spark's options."""


def require_settings(settings: object) -> None:
    """Refuse settings of librdkafka that are not a dict of strings.

    Raises:
        ConfigurationError: they are not; no value is shown.
    """
    if not isinstance(settings, Mapping) or not all(
        isinstance(each, str) for pair in settings.items() for each in pair
    ):
        raise ConfigurationError(
            "settings are those of librdkafka, as a dict of strings, such as "
            "{'bootstrap.servers': 'broker.example.net:9092'}"
        )


def kafka_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return librdkafka's settings that correspond to those of the AMQP client.

    Raises:
        ConfigurationError: one of them says how to reach the hub, and has no counterpart.
    """
    if refused := [why for name, why in AMQP_ONLY.items() if settings.get(name) is not None]:
        raise ConfigurationError(f"with transport=kafka, {refused[0]}; or use transport=amqp")
    verify = settings.get("connection_verify")
    return {} if verify is None else {"ssl.ca.location": str(verify)}


def connection_string_of(hub: HubAddress) -> str:
    """Return a connection string with a hub's key or signature; "" if it uses tokens."""
    if hub.connection_string:
        return hub.connection_string
    credential = credential_of(hub.chosen_credential)
    if isinstance(credential, AzureSasCredential):
        secret = f"SharedAccessSignature={credential.signature}"
    elif isinstance(credential, AzureNamedKeyCredential):
        name, key = credential.named_key
        secret = f"SharedAccessKeyName={name};SharedAccessKey={key}"
    else:
        return ""
    namespace = hub.fully_qualified_namespace
    return f"Endpoint=sb://{namespace}/;{secret};EntityPath={hub.eventhub_name}"
