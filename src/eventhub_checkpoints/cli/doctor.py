"""The command `doctor`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.cli.change import command_on, print_outcome, reporting
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.output import COLOURS, Json, console, print_json, working
from eventhub_checkpoints.cli.target import Target, on_target, or_unknown
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.doctor import status
from eventhub_checkpoints.operations.doctor.diagnosis import Diagnosis, diagnose
from eventhub_checkpoints.operations.doctor.finding import BALANCING_INTERVAL, Limits


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
    with reporting(target, executes=execute) as changes:
        with target.open_store() as store, working("examining"):
            diagnosis = diagnose(
                store,
                target.address,
                limits,
                fixes=fix,
                command=command_on(target, store, "doctor --fix", changes, execute=True)
                if execute
                else None,
                writes=not no_write,
                checkpoint_rate=checkpoints_per_second,
                measure=measure,
                timeout=target.timeout,
                target=target.options_for(target.scope),
            )
        if as_json:
            print_json(report(diagnosis))
        else:
            if fix:
                print_fixes(diagnosis, executed=execute)
            if diagnosis.deleted:
                print_outcome(target, diagnosis.deleted)
            print_findings(diagnosis)
    raise typer.Exit(status(diagnosis.findings))


def report(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what was found, for JSON."""
    snapshot, defects, estimate = diagnosis.snapshot, diagnosis.findings, diagnosis.cost
    return {
        **snapshot.scope.as_dict(),
        "severity": defects[0].severity if defects else "OK",
        "findings": [asdict(each) for each in defects],
        "unchecked": list(snapshot.unchecked),
        "cost": None if estimate is None else asdict(estimate),
        "record": diagnosis.deleted and str(diagnosis.deleted.record.path),
        "fixes": [{**asdict(fix), "changed": changed} for fix, changed in diagnosis.fixes],
    }


def print_fixes(diagnosis: Diagnosis, *, executed: bool) -> None:
    """Print what was changed, or would be."""
    terminal = console()
    for fix, changed in diagnosis.fixes:
        would = f"partition {fix.partition_id}: would {fix.action} ({fix.before})"
        terminal.print(escape(changed or would))
    if not diagnosis.fixes:
        terminal.print("no fix applies")
    elif not executed:
        terminal.print("a dry run: --execute carries this out")


def print_findings(diagnosis: Diagnosis) -> None:
    """Print findings for people, each with its remedy on a line that is not wrapped."""
    terminal, snapshot = console(), diagnosis.snapshot
    terminal.print(escape(f"{snapshot.scope}: {counted(len(diagnosis.findings), 'finding')}"))
    for each in diagnosis.findings:
        colour = COLOURS[each.severity]
        terminal.print(f"[{colour}]{each.severity}[/] {each.code}: {escape(each.evidence)}")
        terminal.print(f"  mend: {escape(each.remedy)}", soft_wrap=True)
    if estimate := diagnosis.cost:
        terminal.print(
            f"cost: ${estimate.dollars:,.2f} a month at ${estimate.price:g} per 10,000 requests "
            f"({escape(estimate.source)})"
        )
    for sentence in snapshot.unchecked:
        terminal.print(escape(f"not examined: {sentence}"))
