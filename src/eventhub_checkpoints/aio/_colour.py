"""What is of the other colour, told before it does harm."""

import inspect

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints.errors import ConfigurationError


def check_store(store: object) -> None:
    """Refuse what is no store for an aio client; what it answers would be lost.

    Raises:
        ConfigurationError: it is none.
    """
    update = getattr(store, "update_checkpoint", None)
    if isinstance(store, CheckpointStore) or inspect.iscoroutinefunction(update):
        return
    # Not what it is: a URL may hold a password.
    raise ConfigurationError(
        f"store is a {type(store).__name__}; expected a checkpoint store for azure.eventhub.aio, "
        "such as those of eventhub_checkpoints.aio"
    )
