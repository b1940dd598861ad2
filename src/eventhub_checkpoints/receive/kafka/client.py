"""A consumer of librdkafka that commits nothing and belongs to no group."""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.credentials import Credential, credential_of
from eventhub_checkpoints.receive.kafka.settings import FIXED, OURS
from eventhub_checkpoints.receive.kafka.troubles import Troubles, unusable

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
