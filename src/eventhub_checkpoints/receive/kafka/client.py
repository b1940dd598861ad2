"""Consumer of librdkafka that commits nothing: its settings and its errors."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from eventhub_checkpoints._shared.clouds import is_event_hubs
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.credentials import (
    Credential,
    CredentialName,
    credential_of,
)

DENIED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Errors for which a retry does not help."""

VAGUE = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})
"""Errors of a failed query; the cause was reported earlier."""

MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
"""Errors for a missing topic or partition, perhaps a temporary one."""

OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
"""Errors for a position that has expired, or a topic that was replaced by another."""

SETTING = re.compile(r'configuration property:? "([\w.]+)"$')
"""How librdkafka names a setting at the end of a message."""


FOREIGN = re.compile(r"Receive failed: Invalid response size .*", re.DOTALL)
"""What librdkafka says, with advice that does not help, of a server of another protocol."""

ENDPOINT = (
    "Can its Kafka endpoint be reached? Event Hubs has one on port 9093, and on no other, in every "
    "tier but Basic"
)
"""What to check where servers do not answer, or not in Kafka's protocol."""


class ClientErrors:
    """Errors between a client and its servers, as messages without secrets; passed as `error_cb`.

    Args:
        where: the namespace and hub named in the errors.
        secrets: strings that no error may show, whatever their source.
        right: that the client needs, "listen" or "send".
    """

    def __init__(self, where: str, secrets: Iterable[str], right: str = "listen") -> None:
        self._where, self._right = where, right
        self._secrets = tuple(filter(None, secrets))
        self._last = ""
        self._is_denied = False

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = self._without_secrets(error)
        self._is_denied = self._is_denied or error.code() in DENIED

    def raise_denied(self) -> None:
        """Raise if a connection was refused for good; the client would retry for ever.

        Raises:
            ConfigurationError: the servers have refused the client.
        """
        if self._is_denied:
            raise ConfigurationError(
                f"{self._where} refuses this client over Kafka: {self._last}. Check the "
                f"connection string or credential, its right to {self._right}, and "
                "kafka.security.protocol"
            )

    def raise_if_final(self, error: KafkaError) -> None:
        """Raise if an error means that waiting does not help.

        Raises:
            ConfigurationError: the servers have refused the client.
            HubUnavailableError: the client cannot go on.
        """
        if not (self._last and error.code() in VAGUE):
            self(error)
        self.raise_denied()
        if error.fatal():
            raise HubUnavailableError(f"{self._where} cannot be read over Kafka: {self._last}")

    @property
    def reason(self) -> str:
        """Return the last error in brackets, to end a sentence; "" if there was none."""
        return f" ({self._last})" if self._last else ""

    def unavailable(self, what: str, seconds: float) -> HubUnavailableError:
        """Return the error for a query `what` that was not answered in time."""
        return HubUnavailableError(
            f"{self._where} gave no answer over Kafka within {round(seconds, 1):g} s to a query "
            f"for {what}{self.reason}. {ENDPOINT}"
        )

    def _without_secrets(self, error: KafkaError) -> str:
        text = FOREIGN.sub("the server at this port does not speak Kafka's protocol", error.str())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def unusable_setting(error: KafkaException) -> ConfigurationError:
    """Return the error for a setting that librdkafka refuses: its name, never its value."""
    named = SETTING.search(error_of(error).str())
    which = f"the setting kafka.{named[1]}" if named else "the kafka.* settings together"
    return ConfigurationError(
        f"librdkafka does not accept {which}; its CONFIGURATION.md has the names and values"
    )


def error_of(error: KafkaException) -> KafkaError:
    """Return the error inside an exception of the client."""
    inner = error.args[0]
    assert isinstance(inner, KafkaError)
    return inner


Settings = Mapping[str, str]
"""Settings of librdkafka by name, such as `socket.timeout.ms`."""

BOOTSTRAP = "bootstrap.servers"
PORT = 9093
"""The only port of Kafka that a namespace of Event Hubs has."""
AMQP_PORTS = ("5671", "5672")
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
    # What librdkafka would print to stderr, `ClientErrors` raises.
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
    **dict.fromkeys(OURS, "reading exact ranges depends on it"),
    "group.id": "give consumerGroup instead",
}


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings passed by a job, after checking that none is reserved.

    Raises:
        ConfigurationError: one is reserved, or a server's port is not one of Kafka. The message
            shows no value but the port.
    """
    for name in settings:
        if name in RESERVED:
            raise ConfigurationError(f"kafka.{name} cannot be set: {RESERVED[name]}")
    for server in servers(settings):
        host, _, port = server.partition(":")
        if port in AMQP_PORTS or (is_event_hubs(host) and port != str(PORT)):
            named = f"port {quoted(port)}, which is not one of Kafka" if port else "no port"
            raise ConfigurationError(
                f"kafka.{BOOTSTRAP} names {named}; the Kafka endpoint of Event Hubs has port {PORT}"
            )
    return dict(settings)


def hub_settings(namespace: str, connection_string: str) -> dict[str, str]:
    """Return the settings to reach a hub's Kafka endpoint.

    Args:
        namespace: a port in its name is that of AMQP.
        connection_string: "" to use tokens, which are fetched when needed.
    """
    endpoint = {BOOTSTRAP: f"{namespace.partition(':')[0]}:{PORT}", "security.protocol": "SASL_SSL"}
    if not connection_string:
        return {**endpoint, "sasl.mechanism": "OAUTHBEARER"}
    return {
        **endpoint,
        "sasl.mechanism": "PLAIN",
        "sasl.username": CONNECTION_STRING_USER,
        "sasl.password": connection_string,
    }


def servers(settings: Mapping[str, str]) -> list[str]:
    """Return the bootstrap servers, without the name of a protocol."""
    listed = settings.get(BOOTSTRAP, "").split(",")
    return [server.strip().rpartition("://")[2] for server in listed]


def first_server(settings: Mapping[str, str]) -> str:
    """Return the first of the bootstrap servers."""
    return servers(settings)[0]


Tokens = Callable[[str], tuple[str, float]]
"""Callback of librdkafka for tokens: returns the token and its expiry (s since the epoch)."""


def open_consumer(
    group: str, settings: Mapping[str, str], tokens: Tokens | None, errors: ClientErrors
) -> Consumer:
    """Open a consumer; the caller closes it.

    Args:
        group: a name that the servers see in requests; nothing is stored under it.
        settings: of librdkafka; they take precedence over `FIXED`.
        tokens: provides tokens, where the servers require them.
        errors: receives the consumer's errors.

    Raises:
        ConfigurationError: librdkafka does not accept a setting.
    """
    whole: dict[str, Any] = {**FIXED, **settings, **OURS, "group.id": group, "error_cb": errors}
    if tokens:
        whole["oauth_cb"] = tokens
    try:
        return Consumer(whole)
    except KafkaException as error:
        # Not chained: the message may contain a value.
        refused = unusable_setting(error)
    except (TypeError, ValueError):
        refused = ConfigurationError("librdkafka does not accept one of the kafka.* settings")
    raise refused


def tokens_of(credential: CredentialName | Credential, namespace: str) -> Tokens:
    """Return a callback for Entra tokens of a namespace; fetch the first one immediately.

    The client waits ten seconds for a token that does not come, and reports no reason; so this
    function reports it. The credential caches its tokens and renews them.
    """
    source: Any = credential_of(credential)
    scope = f"https://{namespace.partition(':')[0]}/.default"
    source.get_token(scope)

    def fetch(_: str) -> tuple[str, float]:
        token = source.get_token(scope)
        return token.token, float(token.expires_on)

    return fetch
