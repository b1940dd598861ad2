"""What is of the other colour, told before it does harm."""

import inspect

from eventhub_checkpoints.errors import ConfigurationError


def check_store(store: object) -> None:
    """Refuse what is no store for a sync client; nobody would wait for what it does.

    Raises:
        ConfigurationError: it is none.
    """
    # A store need not be of the client's class, which asks for no method.
    update = getattr(store, "update_checkpoint", None)
    if callable(update) and not inspect.iscoroutinefunction(update):
        return
    # Not what it is: a URL may hold a password.
    raise ConfigurationError(
        f"store is a {type(store).__name__}; expected a checkpoint store for azure.eventhub, such "
        "as those of eventhub_checkpoints (those of eventhub_checkpoints.aio are for the other "
        "client)"
    )
