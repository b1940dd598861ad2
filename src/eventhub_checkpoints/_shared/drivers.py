"""Check that what an extra installs is installed."""

import importlib.util

from eventhub_checkpoints._shared.program import as_typed
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
    if not all(map(is_installed, modules)):
        raise MissingDriverError.of_extra(what, extra)


def require_package(words: str, package: str, extra: str) -> None:
    """Check that a package that a command needs is installed.

    Args:
        words: the command.
        package: what it imports.
        extra: the extra that installs it.

    Raises:
        MissingDriverError: it is not.
    """
    if not is_installed(package):
        raise MissingDriverError(
            f"{as_typed(words)} needs {package}: "
            f"python -m pip install 'eventhub-checkpoints[cli,{extra}]'"
        )


def is_installed(module: str) -> bool:
    """Return whether a module could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of a parent package
        return False
