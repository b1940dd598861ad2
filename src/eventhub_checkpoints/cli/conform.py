"""`ehcp conform`: certify a store."""

import sys
from pathlib import Path

import typer


def conform(context: typer.Context) -> None:
    """Run every check of the contract on the store that a URL names.

    The same as python -m eventhub_checkpoints.conformance, with the same options.
    """
    # Imported here, because the suite is slow to import and other commands do not need it.
    from eventhub_checkpoints.conformance.__main__ import main

    # As with `python -m`; sys.path of an installed script starts with the script's folder.
    sys.path.insert(0, str(Path.cwd()))
    raise typer.Exit(main(context.args))
