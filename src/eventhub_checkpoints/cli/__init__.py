"""The command `eventhub-checkpoints`, short alias `ehcp`; needs the extra `cli`.

Its modules read options and print results; what is done, `operations` decides.

- `app`: the application, with `ehcp conform`. `demo`: `ehcp demo`.
- `target`: the store, hub and group that a command works on. `durations`, `numbers`:
  options that are one. `usage`: what the parser of options lets pass. `output`: tables and JSON.
- `status`: the commands that only read. `peek`: those that look at events. `history`: earlier
  checkpoints.
- `reset`, `undo`, `delete` and `exchange` (files of positions, and copies) change positions, with
  what they share in `change`, and their journal in `records`. `ending`: what is said if a command
  ends early.
- `dead_letters`: events that could not be processed.
- `doctor`: findings about a group. `serve`: lag for Prometheus and KEDA. `ui`: a page in the
  browser.
- `transfer`: mirror, move and migrate, which bring positions into another store.
"""

import errno
import importlib.util
import io
import logging
import os
import sys
from pathlib import Path

from eventhub_checkpoints._shared.program import program
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    InvalidRecordError,
    MissingDriverError,
)

FAILED, WRONG_USAGE = 1, 2
"""Exit statuses; `ending` and `target` have those of refusals and of unknown verdicts."""
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a write to standard output; a closed pipe ends the command without a message."""
DRIVERS = ("typer", "rich", "filelock", "platformdirs")
"""Packages of the extra `cli`."""


def complain(what: object) -> None:
    """Print a line on standard error that begins with the name of this program."""
    print(f"{program()}: {what}", file=sys.stderr)


def main() -> None:
    """Run the command and exit with its status.

    An error of this package is printed as one line on standard error, with exit status 2 if an
    option or what it names is wrong, else 1. So is one of standard output. A character that a
    stream cannot encode is printed as its escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        missing = [name for name in DRIVERS if importlib.util.find_spec(name) is None]
        if missing:
            raise MissingDriverError(
                f"the command line needs {' and '.join(missing)}: "
                "python -m pip install 'eventhub-checkpoints[cli]'"
            )
        # Each failure of the client is reported in one sentence by the command.
        logging.getLogger("azure").setLevel(logging.CRITICAL)
        # Imported here, so that a missing package is reported above and not by a traceback.
        from eventhub_checkpoints.cli.app import app

        # The same name in the usage as in the messages.
        app(prog_name=program())
    except CheckpointStoreError as error:
        complain(error)
        is_missing = isinstance(error, MissingDriverError)
        is_usage = isinstance(error, ConfigurationError | InvalidRecordError) and not is_missing
        sys.exit(WRONG_USAGE if is_usage else FAILED)
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        # What is left in the stream's buffer would fail again when the interpreter flushes it.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        complain(f"standard output cannot be written ({error.strerror})")
        sys.exit(FAILED)
