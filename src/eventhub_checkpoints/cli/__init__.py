"""The command `eventhub-checkpoints`, short alias `ehcp`; needs the extra `cli`.

- `app`: the subcommands; `conform` and `demo` are two.
- `azurite`, `container`, `children`: servers and processes that the demo starts.
"""

import importlib.util
import sys

from eventhub_checkpoints.errors import CheckpointStoreError, MissingDriverError

DRIVERS = ("typer", "rich", "filelock", "platformdirs")
"""What the extra `cli` installs."""


def main() -> None:
    """Run the command and end the process with its exit status.

    An error of this package is one sentence on standard error and exit status 1.
    """
    try:
        missing = [name for name in DRIVERS if importlib.util.find_spec(name) is None]
        if missing:
            raise MissingDriverError(
                f"the command eventhub-checkpoints needs {' and '.join(missing)}: "
                "python -m pip install 'eventhub-checkpoints[cli]'"
            )
        # Here, so that a missing package is told above and not by a traceback.
        from eventhub_checkpoints.cli.app import app

        app()
    except CheckpointStoreError as error:
        sys.exit(f"eventhub-checkpoints: {error}")
