"""`ehcp history`: earlier checkpoints of a group."""

from typing import Annotated

import typer

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import plural, some
from eventhub_checkpoints.cli.change import Partitions, partition_list
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.output import Json, ago, print_json, print_table, working
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.history import history as read_history
from eventhub_checkpoints.operations.positions import Position


@on_target
def history(
    target: Target,
    *,
    partitions: Partitions = None,
    limit: Annotated[int, number_option(least=1, help="Number of entries to show.")] = 20,
    as_json: Json = False,
) -> None:
    """Show earlier checkpoints of a group: who stored which position when, newest first.

    SQL stores keep one checkpoint a minute of each partition, and for each rewind the position that
    it replaced (replaced) and the one that it stored (rewind). Table stores keep those of changes
    by ehcp, and the others on request.
    """
    ids = partition_list(partitions)
    with target.open_store() as store, working("reading"):
        entries = read_history(store, target.scope, ids, limit=limit)
        if entries is None:
            raise ConfigurationError(
                f"{type(store).__name__} keeps no history; {as_typed('undo --list')} shows the "
                "positions before changes by ehcp, and SQL stores keep a history"
            )
    if not entries:
        more = f"; {as_typed('groups')} lists the groups of the store"
        if ids:
            more = f", {plural('partition', len(ids))} {some(ids)}"
        none = f"note: the store has no earlier checkpoints of {target.scope}"
        typer.echo(f"{none}{more}", err=True)
    if as_json:
        print_json(entries)
        return
    print_table(
        ["PARTITION", ">CHECKPOINT", "KIND", "STORED", "WRITER"],
        [
            (
                row["partition_id"],
                Position.of(row),
                row["kind"],
                ago(row["last_modified_time"]),
                row["writer"],
            )
            for row in entries
        ],
        title=str(target.scope),
    )
