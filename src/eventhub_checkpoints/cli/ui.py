"""`ehcp ui`: a page in the browser."""

import json
import logging
import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from eventhub_checkpoints._shared.drivers import require_package
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.signals import STOP_SIGNALS, blocked_stop_signals
from eventhub_checkpoints.cli.change import Report, command_on
from eventhub_checkpoints.cli.dead_letters import open_source
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.status import MissingOption
from eventhub_checkpoints.cli.target import LagThrough, Target, on_targets, polled_groups
from eventhub_checkpoints.operations.dead_letters import DeadLetterSource
from eventhub_checkpoints.operations.lag import Missing
from eventhub_checkpoints.operations.monitor import INTERVAL, Monitor, PolledGroup
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
        bool,
        typer.Option(
            "--allow-writes", help="Let the page change positions, and redrive dead letters."
        ),
    ] = False,
    interval: Annotated[
        float, duration_option(least=0.1, help="Time between two polls.")
    ] = INTERVAL,
    missing: MissingOption = "earliest",
    through: LagThrough = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            envvar="EHCP_DEAD_LETTERS",
            help="File, URL of a SQL database, or hub with the dead letters to show.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the URL as one line of JSON.")
    ] = False,
) -> None:
    """Show groups, partitions, events, dead letters, findings and rewinds in a browser.

    It prints a URL with a token, without which nothing is shown. All groups of a hub that the store
    has are shown, also those that appear later, unless --group names others. --group and --profile
    can be repeated. SIGTERM and Ctrl-C end it.
    """
    for package in PACKAGES:
        require_package("ui", package, "ui")
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
            dead_letters=dead_letters,
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
    dead_letters: str | None = None,
) -> "Pages":
    """Open the stores, begin to poll, and return the pages.

    Raises:
        ConfigurationError: a target is incomplete or malformed, or dead letters are named that
            cannot be opened.
        StoreError: a store could not be read.
    """
    from eventhub_checkpoints.ui.board import SAMPLES, Boards
    from eventhub_checkpoints.ui.context import DeadLetters, PageContext
    from eventhub_checkpoints.ui.groups import ShownGroups
    from eventhub_checkpoints.ui.observations import Observations
    from eventhub_checkpoints.ui.pages import Pages

    groups = ShownGroups(polled_groups(targets, stack, missing, through))
    observations = Observations()
    monitor = Monitor(
        groups.find(),
        interval=interval,
        hold=interval * (SAMPLES - 1),
        find=groups.find,
        observe=observations.add,
    )

    def target_for(group: PolledGroup) -> Target:
        return targets[groups.request_of(group)]

    def command(group: PolledGroup, name: str) -> Command:
        target = target_for(group)
        return command_on(target, group.store, name, Report(target), execute=False)

    def open_letters() -> AbstractContextManager[DeadLetterSource]:
        return open_source(dead_letters, targets[0], through, "--dead-letters")

    letters = None
    if dead_letters:
        with open_letters():
            letters = DeadLetters(masked(dead_letters), open_letters)
    return Pages(
        PageContext(
            groups,
            Boards(stack.enter_context(monitor), observations),
            interval,
            command,
            allow_writes,
            lambda group: target_for(group).options_for(group.scope),
            letters,
        )
    )
