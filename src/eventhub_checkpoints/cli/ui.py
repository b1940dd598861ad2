"""`ehcp ui`: a page in the browser."""

import json
import logging
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from eventhub_checkpoints._shared.drivers import require_package
from eventhub_checkpoints._shared.signals import STOP_SIGNALS, blocked_stop_signals
from eventhub_checkpoints.cli.change import Report, command_on
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.status import MissingOption
from eventhub_checkpoints.cli.target import LagThrough, Target, on_targets, polled_groups
from eventhub_checkpoints.operations.lag import Missing
from eventhub_checkpoints.operations.monitor import (
    INTERVAL,
    Monitor,
    PolledGroup,
    groups_to_poll,
)
from eventhub_checkpoints.operations.recorded_change import Command

if TYPE_CHECKING:
    from eventhub_checkpoints.ui.pages import Pages

HOST = "127.0.0.1"
PORT = 9879
PACKAGES = ("starlette", "jinja2", "uvicorn")
"""Packages of the extra `ui`."""


@on_targets
def ui(
    targets: list[Target],
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    port: Annotated[
        int, number_option(least=0, most=65535, help="Port to listen on; 0 takes a free one.")
    ] = PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also answer under this name; can be repeated."),
    ] = None,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Let the page change positions.")
    ] = False,
    interval: Annotated[
        float, duration_option(least=0.1, help="Time between two polls.")
    ] = INTERVAL,
    missing: MissingOption = "earliest",
    through: LagThrough = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the URL as one line of JSON.")
    ] = False,
) -> None:
    """Show groups, partitions, events, findings and rewinds in a browser.

    It prints a URL with a token, without which nothing is shown. All groups of a hub that the store
    has are shown, unless --group names others. --group and --profile can be repeated. SIGTERM and
    Ctrl-C end it.
    """
    for package in PACKAGES:
        require_package("ehcp ui", package, "ui")
    # Imported here, because other commands do not need these packages.
    from eventhub_checkpoints.ui.server import listen, names, serving, url

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    with ExitStack() as stack:
        stack.enter_context(blocked_stop_signals())
        opened = stack.enter_context(listen(host, port))
        pages = polled_pages(
            targets,
            stack,
            allow_writes=allow_writes,
            interval=interval,
            missing=missing,
            through=through,
        )
        application = pages.application(opened.getsockname()[1], names(host, allow_host or ()))
        stack.enter_context(serving(application, opened))
        shown = url(opened, pages.token)
        typer.echo(json.dumps({"url": shown}) if as_json else shown)
        signal.sigwait(STOP_SIGNALS)


def polled_pages(
    targets: Sequence[Target],
    stack: ExitStack,
    *,
    allow_writes: bool = False,
    interval: float = INTERVAL,
    missing: Missing = "earliest",
    through: str | None = None,
) -> "Pages":
    """Open the stores, begin to poll, and return the pages.

    Raises:
        ConfigurationError: a target is incomplete or malformed.
        StoreError: a store could not be read.
    """
    from eventhub_checkpoints.ui.board import SAMPLES
    from eventhub_checkpoints.ui.pages import Pages

    requested = polled_groups(targets, stack, missing, through)
    chosen, others = groups_to_poll(requested)
    of_target = {
        group.scope.folded: target
        for target, groups in zip(targets, chosen, strict=True)
        for group in groups
    }
    polled = [group for groups in chosen for group in groups]

    def command(group: PolledGroup, name: str) -> Command:
        target = of_target[group.scope.folded]
        return command_on(target, group.store, name, Report(target), execute=True)

    def target_of(group: PolledGroup) -> str:
        return of_target[group.scope.folded].options_for(group.scope)

    monitor = Monitor(polled, interval=interval, hold=interval * (SAMPLES - 1))
    return Pages(
        polled,
        stack.enter_context(monitor),
        interval=interval,
        others=others,
        command=command if allow_writes else None,
        target_of=target_of,
    )
