"""Check that a backend's driver is installed."""

from importlib import import_module

from eventhub_checkpoints.errors import MissingDriverError


def require_driver(what: str, extra: str, *modules: str) -> None:
    """Import the modules of a driver; the caller's own import statements follow.

    Called by the `__init__` of the package whose modules need the driver.

    Args:
        what: what needs the driver, for the message.
        extra: the extra that installs it.
        modules: the modules that are needed.

    Raises:
        MissingDriverError: one of them cannot be imported.
    """
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        raise MissingDriverError.of_extra(what, extra) from error
