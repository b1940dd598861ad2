"""Translation of librdkafka's errors into messages that show no secret."""

import re
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError

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


class Troubles:
    """Listener to the errors between a client and its servers, passed as `error_cb`.

    Args:
        where: the namespace and hub named in the errors.
        secrets: strings that no error may show, whatever their source.
    """

    def __init__(self, where: str, secrets: Iterable[str]) -> None:
        self._where = where
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
                f"{self._where} refuses this reader over Kafka: {self._last}. Check the "
                "connection string or credential, its right to listen, and "
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

    def unavailable(self, what: str, seconds: float) -> HubUnavailableError:
        """Return the error for a query `what` that was not answered in time."""
        reason = f" ({self._last})" if self._last else ""
        return HubUnavailableError(
            f"{self._where} gave no answer over Kafka within {round(seconds, 1):g} s when asked "
            f"for {what}{reason}. Can its Kafka endpoint be reached? Event Hubs has one on port "
            "9093 in every tier but Basic"
        )

    def _without_secrets(self, error: KafkaError) -> str:
        text = error.str()
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def unusable(error: KafkaException) -> ConfigurationError:
    """Return the error for a setting that librdkafka refuses: its name, never its value."""
    named = SETTING.search(error_of(error).str())
    which = f"the setting kafka.{named[1]}" if named else "the kafka.* settings together"
    return ConfigurationError(
        f"librdkafka does not take {which}; its CONFIGURATION.md has the names and values"
    )


def error_of(error: KafkaException) -> KafkaError:
    """Return the error inside an exception of the client."""
    found = error.args[0]
    assert isinstance(found, KafkaError)
    return found
