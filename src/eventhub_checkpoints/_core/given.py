"""What an event processor is given to work with, refused where it cannot work."""

from eventhub_checkpoints._core.settings import kind_of, name_of, require
from eventhub_checkpoints.errors import ConfigurationError


def require_maker(processor: object) -> None:
    """Refuse what makes no processors, and a class of such that can be given no events.

    Raises:
        ConfigurationError: it cannot work.
    """
    expected = "a class with process_events, or a callable that returns an object with it"
    require("processor", processor, callable(processor), expected)
    if isinstance(processor, type):
        require_handler(processor)


def require_handler(processor: object) -> None:
    """Refuse a processor, or a class of them, that can be given no events.

    Raises:
        ConfigurationError: it has no such method.
    """
    holds = callable(getattr(processor, "process_events", None))
    require("processor", processor, holds, "one that has process_events")


def require_ready(wrapping: str | None) -> None:
    """Refuse an option that no client follows which is ready.

    Raises:
        ConfigurationError: it cannot work.
    """
    if wrapping is not None:
        raise ConfigurationError(
            f"client is ready, and {wrapping} needs one that is made with the processor's own "
            "store: pass a callable, such as functools.partial("
            "EventHubConsumerClient.from_connection_string, ...)"
        )


def require_made(client: object, kind: type) -> None:
    """Refuse what a callable returned that is no client.

    Raises:
        ConfigurationError: it cannot work.
    """
    if not isinstance(client, kind):
        raise no_client("client returned one", client, kind)


def no_client(what: str, client: object, kind: type) -> ConfigurationError:
    """Say what was expected."""
    return ConfigurationError(
        # Not what it is: a connection string is a secret.
        f"{what} of type {kind_of(client)}; expected a callable that is given checkpoint_store= "
        f"and returns a {name_of(kind)}, or such a client"
    )
