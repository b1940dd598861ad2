"""Commands that only read: `groups`, `describe`, `lag` and `check`."""

import json
import time
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from azure.eventhub import CheckpointStore
from rich.progress import track

from eventhub_checkpoints._shared.texts import duration, some
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.output import (
    Json,
    console,
    error_console,
    print_json,
    print_table,
    shown_owner,
    shown_path,
    working,
)
from eventhub_checkpoints.cli.target import LagThrough, Target, on_target, or_unknown
from eventhub_checkpoints.operations import states as rules
from eventhub_checkpoints.operations.groups import Group, group, groups, similar_groups
from eventhub_checkpoints.operations.lag import GroupLag, Missing, lag
from eventhub_checkpoints.operations.lag_seconds import EnqueuedTimes
from eventhub_checkpoints.operations.samples import read_samples, write_samples
from eventhub_checkpoints.operations.states import WINDOW, State
from eventhub_checkpoints.records import Scope

MissingOption = Annotated[
    Missing,
    typer.Option(
        "--missing", help="Where the consumers start in a partition without a checkpoint."
    ),
]
Seconds = Annotated[
    bool,
    typer.Option(
        "--seconds", help="Read the first unprocessed events, and show the lag as their age."
    ),
]


@on_target
def list_groups(target: Target, *, as_json: Json = False) -> None:
    """List the consumer groups of a store.

    A group is active if every partition that has a row has a live owner, partial if only some have,
    idle if no member is alive, and moved if another store has its positions.
    """
    with target.open_store() as store, working("reading"):
        listed = groups(store, expires_after=target.expires_after)
    if as_json:
        print_json([summary(each) for each in listed])
        return
    if not listed:
        typer.echo("note: the store has no group; do its consumers use the same URL?", err=True)
    print_table(
        ["NAMESPACE", "HUB", "GROUP", "STATE", ">PARTITIONS", ">MEMBERS"],
        [(*each.scope, each.state, len(each.partition_ids), len(each.members)) for each in listed],
    )


def summary(group: Group) -> dict[str, Any]:
    """Return a group for JSON."""
    return {
        **group.scope.as_dict(),
        "state": group.state,
        "partitions": len(group.partition_ids),
        "checkpoints": len(group.checkpoints),
        "members": len(group.members),
    }


@on_target
def describe(
    target: Target,
    *,
    members: Annotated[
        bool, typer.Option("--members", help="Show the members instead of the partitions.")
    ] = False,
    state: Annotated[
        bool, typer.Option("--state", help="Show the state of the group instead.")
    ] = False,
    missing: MissingOption = "earliest",
    seconds: Seconds = False,
    through: LagThrough = None,
    as_json: Json = False,
) -> None:
    """Show the partitions of a group: its positions, lag and owners.

    With --members or --state, only the store is read.
    """
    if members or state:
        with target.open_store() as store, working("reading"):
            rows = group(store, target.scope, expires_after=target.expires_after)
            warn_if_unknown(store, rows.scope, has_rows=bool(rows.partition_ids))
        if state:
            print_state(rows, as_json)
        else:
            print_members(rows, as_json)
        return
    with target.open_store() as store, working("reading"):
        sample = read_lag(store, target, missing)
        warn_if_unknown(store, sample.scope, has_rows=sample.has_rows)
        if seconds:
            sample = EnqueuedTimes().add_to(sample, target.address, through, target.timeout)
    states = rules.states([sample])
    if as_json:
        print_json(lag_for_json(sample, states))
        return
    behind = ["BEHIND"] if seconds else []
    print_table(
        ["PARTITION", ">BEGIN", ">LAST", ">CHECKPOINT", ">LAG", *behind, ">LOST", "AGE", "OWNER"],
        [
            (
                each.partition_id,
                each.begin,
                each.last,
                State.MOVED if each.is_moved else each.checkpoint,
                each.lag,
                *(duration(each.lag_seconds) for _ in behind),
                each.lost,
                duration(each.checkpoint_age),
                shown_owner(each.owner_id),
            )
            for each in sample.partitions
        ],
        title=str(sample.scope),
    )
    if seconds:
        print_unread(sample)


def print_state(group: Group, as_json: bool) -> None:
    """Print the state of a group."""
    if as_json:
        print_json(summary(group))
        return
    members = group.members
    print_table(
        ["STATE", ">PARTITIONS", ">MEMBERS", ">FEWEST", ">MOST"],
        [
            (
                group.state,
                len(group.partition_ids),
                len(members),
                len(members[-1].partition_ids) if members else None,
                len(members[0].partition_ids) if members else None,
            )
        ],
        title=str(group.scope),
    )


def print_members(group: Group, as_json: bool) -> None:
    """Print the live members of a group."""
    if as_json:
        print_json([asdict(member) for member in group.members])
        return
    print_table(
        ["MEMBER", ">PARTITIONS", ">RENEWED", "OWNS"],
        [
            (
                member.owner_id,
                len(member.partition_ids),
                f"{duration(member.age)} ago",
                ", ".join(member.partition_ids),
            )
            for member in group.members
        ],
        title=str(group.scope),
    )


@on_target
def print_lag(
    target: Target,
    *,
    missing: MissingOption = "earliest",
    watch: Annotated[
        float | None,
        duration_option("--watch", least=0.1, help="Repeat until interrupted."),
    ] = None,
    seconds: Seconds = False,
    through: LagThrough = None,
    as_json: Json = False,
) -> None:
    """Show how far a group is behind each partition.

    LAG is the number of retained events that are not processed, LOST that of events that expired
    before, BEHIND the age of the first event that is not processed. With --watch and --json, one
    line of JSON is printed each time.
    """
    window: deque[GroupLag] = deque(maxlen=WINDOW)
    times = EnqueuedTimes()
    with target.open_store() as store:
        while True:
            with working("reading"):
                sample = read_lag(store, target, missing)
                if not window:
                    warn_if_unknown(store, sample.scope, has_rows=sample.has_rows)
                if seconds:
                    sample = times.add_to(sample, target.address, through, target.timeout)
            window.append(sample)
            states = rules.states(list(window))
            if as_json and watch:
                typer.echo(json.dumps(lag_for_json(window[-1], states)))
            elif as_json:
                print_json(lag_for_json(window[-1], states))
            else:
                print_sample(window[-1], states, seconds)
            if watch is None:
                return
            time.sleep(watch)


def print_sample(sample: GroupLag, states: dict[str, State], seconds: bool) -> None:
    """Print one sample of a group's lag."""
    behind = ["BEHIND"] if seconds else []
    print_table(
        ["PARTITION", ">CHECKPOINT", ">LAST", ">LAG", *behind, ">LOST", "STATE", "OWNER"],
        [
            (
                each.partition_id,
                each.checkpoint,
                each.last,
                each.lag,
                *(duration(each.lag_seconds) for _ in behind),
                each.lost,
                states[each.partition_id],
                shown_owner(each.owner_id),
            )
            for each in sample.partitions
        ],
        title=str(sample.scope),
    )
    console().print(f"lag {total_lag(sample)}, lost {sample.lost}")
    if seconds:
        print_unread(sample)


def print_unread(sample: GroupLag) -> None:
    """Say why the lag in seconds of some partitions is unknown."""
    if any(each.lag and each.lag_seconds is None for each in sample.partitions):
        console().print(
            "BEHIND is unknown where the group itself receives: pass --through with the name "
            "of a consumer group that nothing else uses"
        )


def total_lag(sample: GroupLag) -> str:
    """Return the lag of all partitions for people."""
    return "unknown" if sample.lag is None else str(sample.lag)


def read_lag(store: CheckpointStore, target: Target, missing: Missing) -> GroupLag:
    """Read one sample of a group's lag."""
    return lag(
        store,
        target.address,
        missing=missing,
        expires_after=target.expires_after,
        timeout=target.timeout,
    )


def warn_if_unknown(
    store: CheckpointStore, scope: Scope, *, has_rows: bool, what: str = "rows"
) -> None:
    """Say on standard error that a store has no rows of a group, and name similar ones.

    Args:
        store: the store.
        scope: the group.
        has_rows: whether it has some; then nothing is said.
        what: the kind of rows.
    """
    if not has_rows:
        others = similar_groups(store, scope)
        known = f"; it has those of {some(map(str, others))}" if others else ""
        typer.echo(f"note: the store has no {what} of {scope}{known}", err=True)


def lag_for_json(sample: GroupLag, states: dict[str, State]) -> dict[str, Any]:
    """Return a sample with the states of its partitions for JSON."""
    return {
        **sample.scope.as_dict(),
        "time": sample.time,
        "lag": sample.lag,
        "lost": sample.lost,
        "foreign": list(sample.foreign),
        "partitions": [
            {**asdict(each), "state": str(states[each.partition_id])} for each in sample.partitions
        ],
    }


@or_unknown
@on_target
def check(
    target: Target,
    *,
    samples: Annotated[
        int, number_option(least=1, help="Number of samples to take.")
    ] = rules.FEWEST_SAMPLES,
    every: Annotated[float, duration_option(least=0.1, help="Time between two samples.")] = 10.0,
    state_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take one sample, and keep the last ones in a file between calls."
        ),
    ] = None,
    missing: MissingOption = "earliest",
    as_json: Json = False,
) -> None:
    """Check a group, for cron, probes and monitoring.

    The exit status is 0 if it follows its partitions, 1 for a warning (WARN, UNOWNED), 2 for an
    error (STALL, STOP, REWIND, LOST, GONE), and 3 if that is unknown: too few samples, or the store
    or the hub cannot be read.
    """
    window: list[GroupLag] = []
    if state_file:
        window = read_samples(state_file, shown_path(state_file), target.scope)
    terminal = error_console()
    with target.open_store() as store:
        for number in track(
            range(1 if state_file else samples),
            "sampling",
            console=terminal,
            transient=True,
            disable=not terminal.is_terminal,
        ):
            if number:
                time.sleep(every)
            window.append(read_lag(store, target, missing))
        warn_if_unknown(store, window[-1].scope, has_rows=window[-1].has_rows)
    if state_file:
        window = window[-WINDOW:]
        write_samples(state_file, shown_path(state_file), window)
    states = rules.states(window)
    state = rules.worst(states.values())
    if as_json:
        print_json({"state": state, **lag_for_json(window[-1], states)})
    else:
        ids: dict[State, list[str]] = {}
        for id_, each in sorted(states.items(), key=lambda item: -item[1].rank):
            ids.setdefault(each, []).append(id_)
        details = "".join(
            f"; {each} in partition {some(of_state)}"
            for each, of_state in ids.items()
            if each.severity
        )
        typer.echo(f"{state}: {window[-1].scope}, lag {total_lag(window[-1])}{details}")
    raise typer.Exit(state.severity)
