"""What librdkafka is told: where the endpoint is, who reads, and how it fetches."""

from collections.abc import Mapping

from eventhub_checkpoints.errors import ConfigurationError

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
