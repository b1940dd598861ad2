"""`ehcp conform`: hold a store against the contract."""

import sys
from pathlib import Path

import typer


def conform(context: typer.Context) -> None:
    """Try a store, given by its URL, against every check of the contract.

    The same as python -m eventhub_checkpoints.conformance, with the same options.
    """
    # Here, for the suite is much to import, and other commands do without it.
    from eventhub_checkpoints.conformance.__main__ import main

    # As `python -m` does; an installed script starts with the folder of the script instead.
    sys.path.insert(0, str(Path.cwd()))
    raise typer.Exit(main(context.args))
