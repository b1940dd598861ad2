"""Commands that bring positions into another store: `mirror`, `move` and `migrate`."""

import json
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Annotated

import typer

from eventhub_checkpoints._shared.signals import on_stop_signals
from eventhub_checkpoints._shared.texts import partitions, some
from eventhub_checkpoints.abilities import FullCheckpointStore
from eventhub_checkpoints.cli.change import Execute
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.ending import telling
from eventhub_checkpoints.cli.output import Json, print_json, print_table, working
from eventhub_checkpoints.cli.target import Target, on_target, read_profile
from eventhub_checkpoints.errors import ConfigurationError, StoreError
from eventhub_checkpoints.operations import mirror as mirrors
from eventhub_checkpoints.operations import move as moves
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.mirror import Mirror
from eventhub_checkpoints.operations.move import Move, PartitionMove, Stage
from eventhub_checkpoints.operations.transfer import Step
from eventhub_checkpoints.receive.hub import list_partitions

NO_OTHER_STORE = (
    "name the other store: pass --to-store URL, set EHCP_TO_STORE, or pass --to-profile NAME"
)

ToStore = Annotated[
    str | None,
    typer.Option(
        "--to-store", metavar="URL", envvar="EHCP_TO_STORE", help="URL of the other store."
    ),
]
ToProfile = Annotated[
    str | None,
    typer.Option("--to-profile", metavar="NAME", help="Profile with the other store."),
]


@contextmanager
def open_both(
    target: Target, to_store: str | None, to_profile: str | None
) -> Iterator[tuple[FullCheckpointStore, FullCheckpointStore]]:
    """Open the store of the target, and the one that receives its positions.

    Raises:
        ConfigurationError: they are the same, or one is not named or cannot be opened.
    """
    other = read_profile(to_profile).get("store") if to_profile else to_store
    if other is None:
        raise ConfigurationError(NO_OTHER_STORE)
    receiving = replace(target, store=other)
    if receiving.has_store_of(target):
        raise ConfigurationError(
            "--to-store or --to-profile must name a store other than the source"
        )
    with target.open_store() as source, receiving.open_store() as receiver:
        yield source, receiver


@on_target
def mirror(
    target: Target,
    *,
    to_store: ToStore = None,
    to_profile: ToProfile = None,
    every: Annotated[float, duration_option(least=0.1, help="Time between two passes.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Make one pass and exit.")] = False,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Copy the checkpoints of a group to another store, again and again.

    The other store is never overwritten with something older. If the group is rewound, the other
    store follows, provided that it still has what this mirror copied. Ends on SIGTERM or Ctrl-C.
    """
    stopping, copied = threading.Event(), set[str]()
    with (
        telling(lambda: copied_so_far(copied), executes=execute),
        open_both(target, to_store, to_profile) as (source, receiver),
        on_stop_signals(stopping.set),
    ):
        copier = Mirror(source, receiver, target.scope, target.expires_after, written=copied)
        if not execute:
            print_steps(copier.preview(), as_json, executed=False)
            return
        if once:
            result = copier.copy()
            print_steps(result.steps, as_json, executed=True, copied=result.copied)
            if result.error:
                raise StoreError(result.error)
            return
        for result in copier.run(every, stopping):
            print_pass(result, as_json)


def copied_so_far(partition_ids: Collection[str]) -> Iterator[str]:
    """Yield which positions were copied; a copy never overwrites something later."""
    if partition_ids:
        yield f"copied: partition {some(in_order(partition_ids))}"
        yield "to continue: run the same command again"


def print_steps(
    steps: Sequence[Step], as_json: bool, *, executed: bool, copied: Sequence[str] = ()
) -> None:
    """Print what is done, or was done, with each partition."""
    if as_json:
        print_json(steps)
        return
    print_table(
        ["PARTITION", ">SOURCE", ">TARGET", "ACTION"],
        [(step.partition_id, step.source, step.target, step.action) for step in steps],
    )
    if executed:
        typer.echo(f"copied {len(copied)} of {len(steps)} checkpoints")
    else:
        count = sum(step.action.writes for step in steps)
        typer.echo(f"dry run: would copy {count} of {len(steps)} checkpoints; pass --execute")


def print_pass(result: mirrors.Pass, as_json: bool) -> None:
    """Print one line on a pass of a mirror; nothing for people if nothing happened."""
    if as_json:
        actions = Counter(str(step.action) for step in result.steps)
        line = {
            "time": result.time,
            "copied": result.copied,
            "actions": actions,
            "error": result.error,
        }
        typer.echo(json.dumps(line))
    elif result.error:
        print_line(result.time, f"not complete: {result.error}")
    elif result.copied:
        of_which = f"partition {', '.join(result.copied)}"
        print_line(result.time, f"copied {len(result.copied)} of {len(result.steps)}: {of_which}")


def print_line(seconds: float, text: str) -> None:
    """Print a line with its time in UTC."""
    typer.echo(f"{time.strftime('%H:%M:%SZ', time.gmtime(seconds))} {text}")


@on_target
def move(
    target: Target,
    *,
    to_store: ToStore = None,
    to_profile: ToProfile = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Move a partition once its consumer has released it, instead of taking it away.",
        ),
    ] = False,
    settle: Annotated[
        float | None,
        duration_option(
            least=0,
            help="Time without a new checkpoint after a partition was taken from its consumer. "
            "[default: a third of --expires-after]",
        ),
    ] = None,
    hold: Annotated[
        float,
        duration_option(
            least=0,
            help="Keep consumers of the old store idle for this long after the move.",
        ),
    ] = 0.0,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Move a group to another store while its consumers run.

    The consumers of the old store lose their partitions, or release them, and those of the new
    store get them with the final positions. Run it again if it was interrupted: it continues.
    """
    stopping, stages = threading.Event(), dict[str, Stage]()
    with telling(lambda: moved_so_far(stages), executes=execute):
        with working("reading the hub"):
            partition_ids = list_partitions(target.address, timeout=target.timeout)
        with (
            open_both(target, to_store, to_profile) as (source, receiver),
            on_stop_signals(stopping.set) as signals,
            Move(
                source,
                receiver,
                target.scope,
                partition_ids,
                expires_after=target.expires_after,
                settle=settle,
                waits=wait,
            ) as mover,
        ):
            if not execute:
                print_moves(mover.check(), as_json)
                return
            result = moves.Pass(time.time())
            for result in mover.run(mover.interval, stopping):
                print_progress(result, stages, as_json)
            if not result.is_done:
                raise SystemExit(128 + signals[0])
            if not as_json:
                typer.echo(f"moved {partitions(result.partitions)}; stop the old store's consumers")
            mover.hold(mover.interval, hold, stopping)


def moved_so_far(stages: Mapping[str, Stage]) -> Iterator[str]:
    """Yield what a move has done, by the last known stages of the partitions."""
    words = {
        Stage.DONE: "moved",
        Stage.CLOSED: "in neither store until the move goes on",
        Stage.PREPARED: "not moved",
        Stage.OPEN: "not moved",
    }
    by_word: dict[str, list[str]] = {}
    for id_ in in_order(stages):
        by_word.setdefault(words[stages[id_]], []).append(id_)
    for word, ids in by_word.items():
        yield f"{word}: partition {some(ids)}"
    if stages:
        yield (
            "to continue: run the same command again; to go back after that, run it with the "
            "stores exchanged"
        )


def print_moves(partitions: Sequence[PartitionMove], as_json: bool) -> None:
    """Print how far the move of each partition is."""
    if as_json:
        print_json(partitions)
        return
    print_table(
        ["PARTITION", ">CHECKPOINT", "STAGE", "OLD OWNER", "NEW OWNER"],
        [
            (each.partition_id, each.position, each.stage, each.owner_id, each.target_owner_id)
            for each in partitions
        ],
    )
    left = sum(each.stage is not Stage.DONE for each in partitions)
    typer.echo(f"dry run: would move {left} of {len(partitions)} partitions; pass --execute")


def print_progress(result: moves.Pass, stages: dict[str, Stage], as_json: bool) -> None:
    """Print the partitions whose stage has changed, and note their stages."""
    changed = [each for each in result.partitions if stages.get(each.partition_id) != each.stage]
    stages.update({each.partition_id: each.stage for each in changed})
    if as_json:
        partitions = [asdict(each) for each in changed]
        line = {"time": result.time, "partitions": partitions, "error": result.error}
        if changed or result.error:
            typer.echo(json.dumps(line))
    elif result.error:
        print_line(result.time, f"not complete: {result.error}")
    else:
        for each in changed:
            position = "none" if each.position is None else str(each.position)
            text = f"partition {each.partition_id}: {each.stage}, position {position}"
            print_line(result.time, text)


@on_target
def migrate(
    target: Target,
    *,
    format: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="What wrote the positions: eph, eph-python, eph-go, functions, dapr, "
            "iothub-react, or as-typed for names in another case.",
        ),
    ],
    container: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Container with them. [default: that of --store]"),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Prefix of the blobs' names, as the old program had it.")
    ] = "",
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Copy the positions of an older program, or in another format, into the store of a group.

    A checkpoint is never overwritten with something older, and a partition with a live owner is
    left alone. Hub and group are named in the case in which the old program had them.
    """
    # Imported here, because reading blobs needs the extra `blob`, and other commands do not.
    from eventhub_checkpoints.operations import migrate as migration

    source = target.store if container is None else container
    if not isinstance(source, str):
        raise ConfigurationError("no container: pass --container URL")
    with working("reading"):
        saved = migration.read(format, source, target.scope, prefix=prefix)
        numbered = migration.with_numbers(saved, target.address, timeout=target.timeout)
    migrated = migration.Migrated()
    with (
        telling(lambda: copied_so_far(migrated.copied), executes=execute),
        target.open_store() as store,
    ):
        planned = migration.Migration.planned(store, target.scope, numbered, target.expires_after)
        if execute:
            planned.execute(migrated)
        print_steps(planned.steps, as_json, executed=execute, copied=migrated.copied)
    if migrated.failures:
        reasons = "; ".join(
            f"partition {id_}: {reason}" for id_, reason in migrated.failures.items()
        )
        raise StoreError(f"not everything was copied: {reasons}")
