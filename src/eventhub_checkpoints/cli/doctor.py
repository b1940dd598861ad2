"""The command `doctor`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.output import COLOURS, Json, console, print_json, working
from eventhub_checkpoints.cli.target import Target, on_target, or_unknown
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.doctor import findings, status
from eventhub_checkpoints.operations.doctor.examination import examine_group
from eventhub_checkpoints.operations.doctor.finding import (
    BALANCING_INTERVAL,
    Finding,
    GroupSnapshot,
    Limits,
)
from eventhub_checkpoints.operations.doctor.fixes import mended, planned
from eventhub_checkpoints.operations.doctor.requests import cost


@or_unknown
@on_target
def doctor(
    target: Target,
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Show the fixes that need no decision.")
    ] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="With --fix: carry them out, and look again.")
    ] = False,
    no_write: Annotated[
        bool, typer.Option("--no-write", help="Write no probe row; rights are not checked then.")
    ] = False,
    balancing_interval: Annotated[
        float,
        duration_option(help="load_balancing_interval of consumers."),
    ] = BALANCING_INTERVAL,
    checkpoints_per_second: Annotated[
        float | None, typer.Option(min=0, help="Rate of the whole group, for the cost on Blob.")
    ] = None,
    measure: Annotated[
        float, duration_option(least=0, help="Measure that rate for so long.")
    ] = 0.0,
    price: Annotated[
        float | None, typer.Option(min=0, help="Dollars per 10,000 requests on Blob.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Dollars per month that requests may cost.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Examine a group, its store and its hub, and name what mends each finding.

    The exit status is 0 if nothing was found, 1 for warnings, 2 for errors, and 3 if something
    could not be examined and there is no error.
    """
    if execute and not fix:
        raise ConfigurationError("--execute carries out the fixes of --fix: pass both")
    if measure and checkpoints_per_second is not None:
        raise ConfigurationError("--measure and --checkpoints-per-second: pass one of them")
    limits = Limits(balancing_interval, target.expires_after, price, budget)
    fixes: list[dict[str, Any]] = []
    with target.open_store() as store, working("examining"):

        def look() -> GroupSnapshot:
            return examine_group(
                store,
                target.address,
                limits,
                writes=not no_write,
                checkpoint_rate=checkpoints_per_second,
                measure=measure,
                timeout=target.timeout,
            )

        snapshot = look()
        if fix and execute:
            changes = mended(store, target.address, snapshot, timeout=target.timeout)
            fixes = [{**asdict(each), "changed": changed} for each, changed in changes]
            snapshot = look()
        elif fix:
            fixes = [{**asdict(each), "changed": None} for each in planned(snapshot)]
    defects = findings(snapshot, limits)
    if as_json:
        print_json(report(snapshot, limits, defects, fixes))
    else:
        print_fixes(fixes, is_asked_for=fix)
        print_findings(snapshot, limits, defects)
    raise typer.Exit(status(defects))


def report(
    snapshot: GroupSnapshot, limits: Limits, defects: list[Finding], fixes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what was found, for JSON."""
    estimate = cost(snapshot, limits)
    return {
        **snapshot.scope.as_dict(),
        "severity": defects[0].severity if defects else "OK",
        "findings": [asdict(each) for each in defects],
        "unchecked": list(snapshot.unchecked),
        "cost": None if estimate is None else asdict(estimate),
        "fixes": fixes,
    }


def print_fixes(fixes: list[dict[str, Any]], *, is_asked_for: bool) -> None:
    """Print what was changed, or would be."""
    terminal = console()
    for each in fixes:
        would = f"partition {each['partition_id']}: would {each['action']} ({each['before']})"
        terminal.print(escape(each["changed"] or would))
    if is_asked_for and not fixes:
        terminal.print("no fix applies")
    elif is_asked_for and fixes[0]["changed"] is None:
        terminal.print("a dry run: --execute carries this out")


def print_findings(snapshot: GroupSnapshot, limits: Limits, defects: list[Finding]) -> None:
    """Print findings for people, each with its remedy on a line that is not wrapped."""
    terminal = console()
    terminal.print(escape(f"{snapshot.scope}: {counted(len(defects), 'finding')}"))
    for each in defects:
        colour = COLOURS[each.severity]
        terminal.print(f"[{colour}]{each.severity}[/] {each.code}: {escape(each.evidence)}")
        terminal.print(f"  mend: {escape(each.remedy)}", soft_wrap=True)
    estimate = cost(snapshot, limits)
    if estimate:
        terminal.print(
            f"cost: ${estimate.dollars:,.2f} a month at ${estimate.price:g} per 10,000 requests "
            f"({escape(estimate.source)})"
        )
    for sentence in snapshot.unchecked:
        terminal.print(escape(f"not examined: {sentence}"))
