"""The command `eventhub-checkpoints`, short alias `ehcp`; needs the extra `cli`.

Its modules read options and print results; what is done, `operations` decides.

- `app`: the application, with `ehcp conform`. `demo`: `ehcp demo`.
- `target`: the store, hub and group that a command works on. `durations`, `numbers`:
  options that are one. `output`: tables and JSON.
- `status`: the commands that only read. `peek`: those that look at events. `history`: earlier
  checkpoints.
- `reset`, `undo`, `delete` and `exchange` (files of positions, and copies) change positions, with
  what they share in `change`, and their journal in `records`.
- `dead_letters`: events that could not be processed.
- `doctor`: findings about a group. `serve`: lag for Prometheus and KEDA. `ui`: a page in the
  browser.
- `transfer`: mirror, move and migrate, which bring positions into another store.
"""

import importlib.util
import logging
import sys

from eventhub_checkpoints.errors import CheckpointStoreError, MissingDriverError

DRIVERS = ("typer", "rich", "filelock", "platformdirs")
"""Packages of the extra `cli`."""


def main() -> None:
    """Run the command and exit with its status.

    An error of this package is printed as one line on standard error, with exit status 1.
    """
    try:
        missing = [name for name in DRIVERS if importlib.util.find_spec(name) is None]
        if missing:
            raise MissingDriverError(
                f"the command eventhub-checkpoints needs {' and '.join(missing)}: "
                "python -m pip install 'eventhub-checkpoints[cli]'"
            )
        # Each failure of the client is reported in one sentence by the command.
        logging.getLogger("azure").setLevel(logging.CRITICAL)
        # Imported here, so that a missing package is reported above and not by a traceback.
        from eventhub_checkpoints.cli.app import app

        app()
    except CheckpointStoreError as error:
        sys.exit(f"eventhub-checkpoints: {error}")
