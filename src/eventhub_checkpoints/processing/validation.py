"""What an event processor is given to work with, refused where it cannot work."""

from inspect import signature
from typing import Any

from eventhub_checkpoints._shared.settings import kind_of, name_of, require
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
    context = checkpoints = object()
    require_call("processor", "a partition context and a manager", processor, context, checkpoints)


def require_call(name: str, given: str, called: Any, *args: object, **kwargs: object) -> None:
    """Refuse a callable that cannot be called with these arguments.

    Raises:
        ConfigurationError: it cannot. Where Python does not know its signature, it may.
    """
    try:
        signature(called).bind(*args, **kwargs)
    except TypeError as error:
        raise ConfigurationError(f"{name} cannot be called with {given}: {error}") from None
    except ValueError:
        return


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


def require_same_store(found: object, store: object) -> None:
    """Refuse a client that is ready and would claim partitions elsewhere, or share none.

    Args:
        found: its checkpoint store; None: it has none.
        store: the store of the processor.

    Raises:
        ConfigurationError: they are not the same object.
    """
    if found is None:
        raise other_store("no checkpoint_store")
    if found is not store:
        raise other_store()


def other_store(has: str = "another checkpoint_store than the processor") -> ConfigurationError:
    """Return the error of a client that is ready and does not share the processor's store."""
    return ConfigurationError(
        f"client is ready and has {has}, so that several processors would all process every "
        "event: give the client and the processor the same store object, or pass a callable that "
        "is given checkpoint_store= and returns the client"
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
        f"and returns an {name_of(kind)}, or such a client"
    )
