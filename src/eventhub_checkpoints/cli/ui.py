"""`ehcp ui`: a page in the browser."""

import json
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventhub_checkpoints._shared.drivers import require_package
from eventhub_checkpoints._shared.signals import STOP_SIGNALS, blocked_stop_signals
from eventhub_checkpoints._shared.texts import partitions
from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.cli.change import change_group, store_name
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.records import locked
from eventhub_checkpoints.cli.status import From
from eventhub_checkpoints.cli.target import Target, Through, on_targets, open_stores
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import Targets
from eventhub_checkpoints.operations.groups import Group
from eventhub_checkpoints.operations.lag import Missing
from eventhub_checkpoints.operations.monitor import INTERVAL, Monitor, Watched
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP
from eventhub_checkpoints.records import Scope

if TYPE_CHECKING:
    from eventhub_checkpoints.ui.pages import Pages

HOST = "127.0.0.1"
PORT = 9879
PACKAGES = ("starlette", "jinja2", "uvicorn", "django_htmx")
"""Packages of the extra `ui`."""


@on_targets
def ui(
    targets: list[Target],
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
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
    missing: From = "earliest",
    through: Through = None,
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
    from eventhub_checkpoints.ui.pages import Pages, Shown
    from eventhub_checkpoints.ui.server import htmx

    script = htmx()
    stores = open_stores(targets, stack)
    found, others = groups_of(targets, stores)
    shown = []
    for target, scope in found:
        store = stores[targets.index(target)]
        own = target.address_of(scope.consumer_group)
        watched = Watched(store, own, missing, target.expires_after, target.timeout)
        shown.append(Shown(watched, own, through))
    monitor = Monitor(
        [each.watched for each in shown], interval=interval, hold=interval * (SAMPLES - 1)
    )
    changed = {
        each.watched.scope: (each.watched, target)
        for each, (target, _) in zip(shown, found, strict=True)
    }
    return Pages(
        shown,
        stack.enter_context(monitor),
        interval=interval,
        htmx=script,
        others=others,
        write=writer(changed) if allow_writes else None,
    )


def groups_of(
    targets: Sequence[Target], stores: Sequence[Any]
) -> tuple[list[tuple[Target, Scope]], list[Scope]]:
    """Return the groups to poll with their targets, and groups of other hubs.

    Raises:
        ConfigurationError: a target names no hub, or a malformed one.
        StoreError: a store could not be read.
    """
    chosen: dict[Scope, tuple[Target, Scope]] = {}
    listed: list[Scope] = []
    for target, store in zip(targets, stores, strict=True):
        own = target.address.scope()
        stored = store.list_scopes() if isinstance(store, ListsScopes) else []
        listed += stored
        of_hub = [scope for scope in stored if hub_of(scope) == hub_of(own)]
        if target.group.lower() != DEFAULT_CONSUMER_GROUP.lower() or not of_hub:
            of_hub = [own]
        for scope in of_hub:
            # Some stores keep names in lower case: the operator's spelling is nicer to read.
            named = own if scope.folded == own.folded else scope
            chosen.setdefault(scope.folded, (target, named))
    hubs = {hub_of(scope) for scope in chosen}
    others = {scope.folded: scope for scope in listed if hub_of(scope) not in hubs}
    return [*chosen.values()], [*others.values()]


def hub_of(scope: Scope) -> tuple[str, str]:
    """Return the names of a group's hub."""
    return scope.folded.fully_qualified_namespace, scope.folded.eventhub_name


def writer(
    groups: Mapping[Scope, tuple[Watched, Target]],
) -> Callable[[Scope, str, Callable[[], tuple[Group, Targets]]], str]:
    """Return the function that changes positions of a group, with a record for `ehcp undo`."""

    def write(scope: Scope, command: str, decide: Callable[[], tuple[Group, Targets]]) -> str:
        watched, target = groups[scope]
        with locked(scope):
            found, targets = decide()
            if not targets:
                raise ConfigurationError("there is nothing to change")
            record, _ = change_group(
                watched.store,
                replace(target, group=scope.consumer_group),
                found,
                command,
                targets,
                force=False,
                hold=0.0,
            )
        return (
            f"Changed {partitions([*targets])} of {store_name(target)}; on the machine of ehcp "
            f"ui, ehcp undo {record.path} restores the positions before."
        )

    return write
