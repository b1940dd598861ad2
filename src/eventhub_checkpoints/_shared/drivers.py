"""Check that a backend's driver is installed."""

from importlib.util import find_spec

from eventhub_checkpoints.errors import MissingDriverError


def require_driver(what: str, extra: str, *modules: str) -> None:
    """Check that the modules of a driver are installed; it is imported where it is used.

    Called by the `__init__` of the package whose modules need the driver.

    Args:
        what: what needs the driver, for the message.
        extra: the extra that installs it.
        modules: the modules that are needed.

    Raises:
        MissingDriverError: one of them is not installed.
    """
    try:
        is_installed = all(map(find_spec, modules))
    except ImportError:  # of a parent package
        is_installed = False
    if not is_installed:
        raise MissingDriverError.of_extra(what, extra)
