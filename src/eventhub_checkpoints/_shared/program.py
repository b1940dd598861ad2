"""Name of the command line, as it was typed: messages print commands to copy with it."""

import sys
from pathlib import Path

NAMES = ("ehcp", "eventhub-checkpoints")
"""Scripts that the package installs; the first is the name in other programs, and in the docs."""
PACKAGE = "eventhub_checkpoints.cli"
"""Package that is run by `python -m`."""


def program() -> str:
    """Return the name by which the command line was started; `ehcp` in any other program."""
    typed = Path(sys.argv[0]).stem if sys.argv else ""
    if typed in NAMES:
        return typed
    # Read at each call: while `python -m` imports the package, `__main__` is not it yet.
    specification = getattr(sys.modules.get("__main__"), "__spec__", None)
    is_run = getattr(specification, "parent", None) == PACKAGE
    return f"python -m {PACKAGE}" if is_run else NAMES[0]


def as_typed(words: str) -> str:
    """Return a command line of this program as it would be typed, for a message.

    Args:
        words: what follows the name, such as `undo --list`.
    """
    return f"{program()} {words}"
