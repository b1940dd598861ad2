"""`ehcp demo`: options in, exit status out."""

from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated

import typer

from eventhub_checkpoints.cli.demo.plan import Plan
from eventhub_checkpoints.cli.demo.requirements import CannotBeginError, check_requirements
from eventhub_checkpoints.cli.demo.signals import Signals, Stopped

EVENTS_A_PARTITION = 50
"""With fewer, one consumer may be through before the other one has begun."""

MOST_EVENTS = 200_000


class Colour(StrEnum):
    """Which of azure-eventhub's clients the consumers use."""

    AIO = "aio"
    SYNC = "sync"


def demo(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the checkpoints go: a URL as `open_store` takes it, or `azurite`, which "
            "needs Node or Docker. By default a SQLite file of the demo's own.",
        ),
    ] = None,
    consumer: Annotated[
        Colour, typer.Option(help="The client that both consumers use.")
    ] = Colour.AIO,
    events: Annotated[
        int,
        typer.Option(
            max=MOST_EVENTS,
            help=f"Events to publish in all, at least {EVENTS_A_PARTITION} for each partition.",
        ),
    ] = 4000,
    partitions: Annotated[int, typer.Option(min=2, max=32, help="Partitions of the hub.")] = 8,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the hub up and the checkpoints there in the end, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Kill a consumer, let another take over and PySpark go on, and count every event.

    Starts a local hub and two consumers, and stops all of it again. Needs Java; no account, and no
    server for the checkpoints. In a store of yours it creates what is missing, and removes its own
    rows in the end. The exit status is 1 if an event was lost, or if PySpark did not read exactly
    the events after the checkpoints, and 2 if the demo could not begin.
    """
    if events < partitions * EVENTS_A_PARTITION:
        raise typer.BadParameter(
            f"{events} is below {partitions * EVENTS_A_PARTITION}, which is {EVENTS_A_PARTITION} "
            f"for each of {partitions} partitions",
            param_hint="--events",
        )
    signals = Signals()
    try:
        check_requirements(store, consumer)
        plan = Plan(store, consumer, events, partitions)
        with signals.watched():
            raise typer.Exit(_run(plan, keep, signals))
    except CannotBeginError as error:
        typer.echo(f"eventhub-checkpoints: {error}", err=True)
        raise typer.Exit(2) from None
    except Stopped as stopped:
        typer.echo("stopped; everything that was started has ended", err=True)
        raise typer.Exit(128 + stopped.number) from None


def _run(plan: Plan, keep: bool, signals: Signals) -> int:
    # Here, for these need the extras that were asked for just now.
    from eventhub_checkpoints.cli.demo.ending import keep_up, report
    from eventhub_checkpoints.cli.demo.screen import Screen
    from eventhub_checkpoints.cli.demo.story import tell

    with ExitStack() as stack:
        with Screen() as screen:
            servers, outcomes = tell(plan, screen, signals, stack)
        status = report(screen, outcomes)
        if keep:
            keep_up(screen, servers)
    return status
