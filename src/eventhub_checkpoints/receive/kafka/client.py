"""Consumer of librdkafka that commits nothing, and its settings."""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.credentials import Credential, credential_of
from eventhub_checkpoints.receive.kafka.troubles import Troubles, unusable

Settings = Mapping[str, str]
"""Settings of librdkafka by name, such as `socket.timeout.ms`."""

BOOTSTRAP = "bootstrap.servers"
PORT = 9093
CONNECTION_STRING_USER = "$ConnectionString"
"""User name with which the service accepts a whole connection string as password."""

QUEUED_MESSAGES = 10_000
"""Number of messages librdkafka tries to keep ready; more would not fit the processor's cache."""
QUEUED_KBYTES = 16 * 1024

FIXED: Settings = {
    # The service closes idle connections, and Azure's networks do so silently.
    "socket.keepalive.enable": "true",
    "metadata.max.age.ms": "180000",
    "queued.max.messages.kbytes": str(QUEUED_KBYTES),
    # The default waits a second each time the queue was full.
    "fetch.queue.backoff.ms": "20",
    # Delay before the end of a partition is reported; a fetch that finds data returns at once.
    "fetch.wait.max.ms": "100",
    # librdkafka's stderr lines repeat what `troubles` raises; they do not belong in a driver's log.
    "log_level": "0",
}
"""Settings that a job may override."""

OURS: Settings = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}
"""Settings that exact ranges rely on: nothing is committed to Kafka, nothing is skipped silently,
and the end of a partition is reported even where its last offsets hold no record."""

RESERVED = {
    **dict.fromkeys(OURS, "reading exact ranges rests upon it"),
    "group.id": "give consumerGroup instead",
}


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings passed by a job, after checking that none is reserved.

    Raises:
        ConfigurationError: one is reserved. The message shows no value.
    """
    for name in settings:
        if name in RESERVED:
            raise ConfigurationError(f"kafka.{name} cannot be set: {RESERVED[name]}")
    return dict(settings)


def of_connection_string(namespace: str, connection_string: str) -> dict[str, str]:
    """Return the settings to reach a hub's endpoint with its connection string."""
    return {
        **of_endpoint(namespace),
        "sasl.mechanism": "PLAIN",
        "sasl.username": CONNECTION_STRING_USER,
        "sasl.password": connection_string,
    }


def of_token(namespace: str) -> dict[str, str]:
    """Return the settings to reach a hub's endpoint with tokens, fetched when needed."""
    return {**of_endpoint(namespace), "sasl.mechanism": "OAUTHBEARER"}


def of_endpoint(namespace: str) -> dict[str, str]:
    """Return host and port of a namespace's Kafka endpoint; a port in its name is that of AMQP."""
    return {BOOTSTRAP: f"{namespace.partition(':')[0]}:{PORT}", "security.protocol": "SASL_SSL"}


def first_server(settings: Mapping[str, str]) -> str:
    """Return the first of the bootstrap servers, without the name of a protocol."""
    return settings.get(BOOTSTRAP, "").split(",")[0].strip().rpartition("://")[2]


Tokens = Callable[[str], tuple[str, float]]
"""Callback of librdkafka for tokens: returns the token and its expiry (s since the epoch)."""


def open_consumer(
    group: str, settings: Mapping[str, str], tokens: Tokens | None, troubles: Troubles
) -> Consumer:
    """Open a consumer; the caller closes it.

    Args:
        group: a name that the servers see in requests; nothing is stored under it.
        settings: of librdkafka; they take precedence over `FIXED`.
        tokens: provides tokens, where the servers require them.
        troubles: receives the consumer's errors.

    Raises:
        ConfigurationError: librdkafka does not accept a setting.
    """
    whole: dict[str, Any] = {**FIXED, **settings, **OURS, "group.id": group, "error_cb": troubles}
    if tokens:
        whole["oauth_cb"] = tokens
    try:
        return Consumer(whole)
    except KafkaException as error:
        # Not chained: the message may contain a value.
        refused = unusable(error)
    except (TypeError, ValueError):
        refused = ConfigurationError("librdkafka does not take one of the kafka.* settings")
    raise refused


def made(credential: str | Credential) -> Credential:
    """Return the credential, created if it is passed by name."""
    return credential_of(credential) if isinstance(credential, str) else credential


def tokens_of(credential: str | Credential, namespace: str) -> Tokens:
    """Return a callback for Entra tokens of a namespace; fetch the first one immediately.

    The client waits ten seconds for a token that does not come, and reports no reason; so this
    function reports it. The credential caches its tokens and renews them.
    """
    source: Any = made(credential)
    scope = f"https://{namespace.partition(':')[0]}/.default"
    source.get_token(scope)

    def fetch(_: str) -> tuple[str, float]:
        token = source.get_token(scope)
        return token.token, float(token.expires_on)

    return fetch
