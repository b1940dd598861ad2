"""A consumer of librdkafka that commits nothing, and its settings."""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.credentials import Credential, credential_of
from eventhub_checkpoints.receive.kafka.troubles import Troubles, unusable

Settings = Mapping[str, str]
"""Settings of librdkafka by their names, such as `socket.timeout.ms`."""

BOOTSTRAP = "bootstrap.servers"
PORT = 9093
CONNECTION_STRING_USER = "$ConnectionString"
"""The name under which the service takes a whole connection string as password."""

QUEUED_MESSAGES = 10_000
"""How many librdkafka tries to have ready; more of them leave the processor's cache."""
QUEUED_KBYTES = 16 * 1024

FIXED: Settings = {
    # The service cuts idle connections off, and Azure's networks do so silently.
    "socket.keepalive.enable": "true",
    "metadata.max.age.ms": "180000",
    "queued.max.messages.kbytes": str(QUEUED_KBYTES),
    # Its default waits a second after each time that the queue was full.
    "fetch.queue.backoff.ms": "20",
    # How late the end of a partition is told; a fetch that finds anything is answered at once.
    "fetch.wait.max.ms": "100",
    # Its lines on stderr say what `troubles` raises; a driver's log is not their place.
    "log_level": "0",
}
"""How the client works unless a job says something else."""

OURS: Settings = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}
"""What exact ranges rest upon: nothing is committed to Kafka, nothing is skipped in silence, and
the end of a partition is told even where its last offsets hold no record."""

RESERVED = {
    **dict.fromkeys(OURS, "reading exact ranges rests upon it"),
    "group.id": "give consumerGroup instead",
}


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that a job gave, without those that are not a job's to choose.

    Raises:
        ConfigurationError: one is reserved. The message shows no value.
    """
    for name in settings:
        if name in RESERVED:
            raise ConfigurationError(f"kafka.{name} cannot be set: {RESERVED[name]}")
    return dict(settings)


def of_connection_string(namespace: str, connection_string: str) -> dict[str, str]:
    """How a hub's endpoint is reached with its connection string."""
    return {
        **of_endpoint(namespace),
        "sasl.mechanism": "PLAIN",
        "sasl.username": CONNECTION_STRING_USER,
        "sasl.password": connection_string,
    }


def of_token(namespace: str) -> dict[str, str]:
    """How a hub's endpoint is reached with tokens, which are fetched when they are needed."""
    return {**of_endpoint(namespace), "sasl.mechanism": "OAUTHBEARER"}


def of_endpoint(namespace: str) -> dict[str, str]:
    """Where the Kafka endpoint of a namespace is; a port in its name is that of AMQP."""
    return {BOOTSTRAP: f"{namespace.partition(':')[0]}:{PORT}", "security.protocol": "SASL_SSL"}


def first_server(settings: Mapping[str, str]) -> str:
    """The first of the bootstrap servers, without the name of a protocol."""
    return settings.get(BOOTSTRAP, "").split(",")[0].strip().rpartition("://")[2]


Tokens = Callable[[str], tuple[str, float]]
"""What librdkafka asks for a token: the token, and when it expires (s since the epoch)."""


def open_consumer(
    group: str, settings: Mapping[str, str], tokens: Tokens | None, troubles: Troubles
) -> Consumer:
    """A consumer; whoever asked for it closes it.

    Args:
        group: a name that the servers see in requests; nothing is stored under it.
        settings: of librdkafka; they win over `FIXED`.
        tokens: gives tokens, where the servers want them.
        troubles: is told what goes wrong.

    Raises:
        ConfigurationError: librdkafka does not take a setting.
    """
    whole: dict[str, Any] = {**FIXED, **settings, **OURS, "group.id": group, "error_cb": troubles}
    if tokens:
        whole["oauth_cb"] = tokens
    try:
        return Consumer(whole)
    except KafkaException as error:
        # Not chained: its text may hold a value.
        refused = unusable(error)
    except (TypeError, ValueError):
        refused = ConfigurationError("librdkafka does not take one of the kafka.* settings")
    raise refused


def made(credential: str | Credential) -> Credential:
    """The credential itself, where it may be given by its name."""
    return credential_of(credential) if isinstance(credential, str) else credential


def tokens_of(credential: str | Credential, namespace: str) -> Tokens:
    """Tokens of Entra for a namespace, and the first of them at once.

    The client waits ten seconds for a token that does not come, and says no reason; so the
    reason is said here. The credential keeps its tokens and renews them.
    """
    source: Any = made(credential)
    scope = f"https://{namespace.partition(':')[0]}/.default"
    source.get_token(scope)

    def fetch(_: str) -> tuple[str, float]:
        token = source.get_token(scope)
        return token.token, float(token.expires_on)

    return fetch
