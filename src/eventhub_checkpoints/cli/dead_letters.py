"""`ehcp dead-letters`: list, show, redrive and discard events that could not be processed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.texts import counted, some
from eventhub_checkpoints._shared.times import time_or_duration
from eventhub_checkpoints.cli.change import Execute
from eventhub_checkpoints.cli.ending import telling
from eventhub_checkpoints.cli.output import Json, ago, print_json, print_table, working
from eventhub_checkpoints.cli.peek import cut, print_events, shown_time
from eventhub_checkpoints.cli.target import (
    NO_HUB,
    OPTIONS,
    ReadThrough,
    Target,
    read_target,
    with_options,
)
from eventhub_checkpoints.cli.usage import STATUSES, Commands
from eventhub_checkpoints.dead_letters import StoredDeadLetter
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.dead_letters import (
    SOURCES,
    DeadLetterSource,
    Selection,
    dead_letter_by_id,
    error_of,
    open_dead_letters,
    to_discard,
    to_redrive,
)
from eventhub_checkpoints.operations.dead_letters import discard as discard_each
from eventhub_checkpoints.operations.dead_letters import redrive as send_back
from eventhub_checkpoints.operations.peek import PeekedEvent
from eventhub_checkpoints.receive.amqp.address import HubAddress

app = typer.Typer(
    cls=Commands, help="Events that could not be processed: look at them, and send them back."
)

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        "-f",
        metavar="SOURCE",
        envvar="EHCP_DEAD_LETTERS",
        help="File, URL of a SQL database, or hub with the dead letters.",
    ),
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Beginnings of ids.")]
HUB = {name: OPTIONS[name] for name in ("hub", "credential", "timeout", "profile")}
FILTERS: dict[str, Any] = {
    "group": Annotated[
        str | None, typer.Option("--group", "-g", help="Only dead letters of this consumer group.")
    ],
    "partition": Annotated[
        str | None, typer.Option("--partition", "-p", help="Only dead letters of this partition.")
    ],
    "since": Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only dead letters that failed since a time (UTC), or a duration before now.",
        ),
    ],
    "error": Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only dead letters whose error has this in its type or text."
        ),
    ],
}


def read_selection(
    *, group: str | None, partition: str | None, since: str | None, error: str | None
) -> Selection:
    """Return the selection that options name."""
    return Selection(
        group, partition, None if since is None else time_or_duration(since, "--since"), error
    )


def on_dead_letters(command: Any) -> Any:
    """Give a command the options of `HUB` and `FILTERS`, as `target` and `selection`."""
    return with_options(on_hub(command), "selection", FILTERS, read_selection)


def on_hub(command: Any) -> Any:
    """Give a command the options of `HUB`; its parameter `target` receives them."""
    return with_options(command, "target", HUB, read_target)


@contextmanager
def open_source(
    source: str | None, target: Target, through: str | None, option: str = "--from"
) -> Iterator[DeadLetterSource]:
    """Open the dead letters that an option names, and close them at the end.

    Raises:
        ConfigurationError: none are named; see also `open_dead_letters`.
    """
    if not source:
        raise ConfigurationError(
            f"no dead letters: pass --from or set EHCP_DEAD_LETTERS to {SOURCES}"
        )
    with open_dead_letters(
        source,
        lambda text: hub_of(text, target),
        through=through,
        timeout=target.timeout,
        unreachable_timeout=target.unreachable_timeout,
        option=option,
    ) as opened:
        yield opened


def hub_of(text: str, target: Target) -> HubAddress:
    """Return the hub of a connection string or `NAMESPACE/HUB`, or the one of a name.

    Raises:
        ConfigurationError: it is malformed, or a name without a hub that has the namespace.
    """
    if "=" in text or "/" in text:
        return replace(target, hub=text).address
    if target.hub is None:
        raise ConfigurationError(f"the namespace of hub {quoted(text)} is not known: {NO_HUB}")
    if "=" in target.hub:
        return HubAddress.from_connection_string(target.hub, target.group, eventhub_name=text)
    return replace(target, hub=f"{target.scope.fully_qualified_namespace}/{text}").address


@app.command("list", epilog=STATUSES)
@on_dead_letters
def list_dead_letters(
    target: Target,
    selection: Selection,
    *,
    source: Source = None,
    is_redriven_included: Annotated[
        bool, typer.Option("--all", help="Also dead letters that were redriven.")
    ] = False,
    through: ReadThrough = None,
    as_json: Json = False,
) -> None:
    """List dead letters, oldest first."""
    selection = replace(selection, is_redriven_included=is_redriven_included)
    with open_source(source, target, through) as opened, working("reading"):
        stored = opened.dead_letters()
    chosen = selection.choose(stored)
    if as_json:
        print_json([each.as_dict() for each in chosen])
        return
    print_dead_letters(chosen, shows_redriven=is_redriven_included)
    if not is_redriven_included:
        others = len(replace(selection, is_redriven_included=True).choose(stored)) - len(chosen)
        if others:
            typer.echo(f"{others} more were redriven; --all shows them")


@app.command(epilog=STATUSES)
@on_hub
def show(
    target: Target,
    *,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The beginning of an id is enough.")],
    source: Source = None,
    through: ReadThrough = None,
    as_json: Json = False,
    body_only: Annotated[
        bool, typer.Option("--body-only", help="Print the body only, as it is.")
    ] = False,
) -> None:
    """Show a dead letter: where it came from, why, and the event."""
    with open_source(source, target, through) as opened, working("reading"):
        stored = dead_letter_by_id(opened.dead_letters(), id_)
    dead_letter = stored.dead_letter
    if body_only:
        typer.echo(dead_letter.body)
        return
    if as_json:
        print_json(stored.as_dict())
        return
    fields = {
        **dead_letter.origin,
        "error_message": cut(dead_letter.error_message),
        "partition_key": dead_letter.partition_key,
        **dead_letter.amqp_properties,
        "redriven_time": shown_time(stored.redriven_time),
        "redriven_to": stored.redriven_to,
    }
    print_table(["FIELD", "VALUE"], [*fields.items()])
    typer.echo()
    event = PeekedEvent(
        dead_letter.partition_id,
        dead_letter.sequence_number,
        dead_letter.offset,
        dead_letter.enqueued_time,
        dead_letter.partition_key,
        dead_letter.body,
        {name: str(value) for name, value in dead_letter.properties.items()},
        {},
    )
    print_events([event], f"partition {dead_letter.partition_id} of {dead_letter.scope}")


@app.command(epilog=STATUSES)
@on_dead_letters
def redrive(
    target: Target,
    selection: Selection,
    *,
    ids: Ids = None,
    source: Source = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="HUB", help="Hub to send them to. [default: --hub, their own]"),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also dead letters that were redriven before.")
    ] = False,
    through: ReadThrough = None,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Send dead letters to their hub, oldest first, and remember what was sent.

    All that were not redriven are sent, unless ids or options choose some. Every consumer group of
    the hub receives them. If the command is killed after it has sent a dead letter and before this
    is remembered, the dead letter is sent again by the next call.
    """
    selection = replace(selection, ids=ids or (), is_redriven_included=again)
    hub = target.address if to is None else hub_of(to, target)
    chosen, sent = list[StoredDeadLetter](), list[StoredDeadLetter]()
    with telling(lambda: done_so_far("redriven", sent, chosen), executes=execute):
        with open_source(source, target, through) as opened:
            with working("reading"):
                chosen += to_redrive(opened, selection, hub, is_elsewhere=to is not None)
            if execute:
                with working("sending"):
                    for each in send_back(opened, chosen, hub, timeout=target.timeout):
                        sent.append(each)
        if as_json:
            rows = [each.dead_letter.as_dict() for each in chosen]
            print_json({"executed": execute, "to": str(hub), "letters": rows})
            return
        print_dead_letters(chosen)
        print_result(f"redriven to {hub}", chosen, executed=execute)


def done_so_far(
    what: str, done: Sequence[StoredDeadLetter], chosen: Sequence[StoredDeadLetter]
) -> Iterator[str]:
    """Yield how many of the chosen dead letters were done, for good: there is no undo."""
    if chosen:
        ids = f" ({some(each.dead_letter.id for each in done)})" if done else ""
        yield f"{what}: {len(done)} of {counted(len(chosen), 'dead letter')}{ids}"
    if 0 < len(done) < len(chosen):
        yield "to continue: run the same command again"


@app.command(epilog=STATUSES)
@on_dead_letters
def discard(
    target: Target,
    selection: Selection,
    *,
    ids: Ids = None,
    source: Source = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="All dead letters, also those that were redriven.")
    ] = False,
    through: ReadThrough = None,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Remove dead letters that ids or options choose; not from a hub, whose events expire."""
    selection = replace(selection, ids=ids or (), is_redriven_included=is_all)
    if selection.is_all and not is_all:
        raise ConfigurationError(
            "nothing is chosen: pass ids or filters, or --all for all dead letters"
        )
    chosen, discarded = list[StoredDeadLetter](), list[StoredDeadLetter]()
    with telling(lambda: done_so_far("discarded", discarded, chosen), executes=execute):
        with open_source(source, target, through) as opened:
            chosen += to_discard(opened, selection)
            if execute:
                for each in discard_each(opened, chosen):
                    discarded.append(each)
        if as_json:
            rows = [each.as_dict() for each in chosen]
            print_json({"executed": execute, "letters": rows})
            return
        print_dead_letters(chosen)
        print_result("discarded", chosen, executed=execute)


def print_dead_letters(
    dead_letters: list[StoredDeadLetter], *, shows_redriven: bool = False
) -> None:
    """Print dead letters as a table."""
    headings = [">ID", ">FAILED", "GROUP", "PARTITION", ">NUMBER", "ERROR"]
    print_table(
        [*headings, *([">REDRIVEN"] if shows_redriven else [])],
        [
            (
                stored.dead_letter.id,
                ago(stored.dead_letter.time.timestamp()),
                stored.dead_letter.scope.consumer_group,
                f"{stored.dead_letter.scope.eventhub_name}/{stored.dead_letter.partition_id}",
                stored.dead_letter.sequence_number,
                cut(error_of(stored.dead_letter)),
                *(
                    [stored.redriven_time and ago(stored.redriven_time.timestamp())]
                    if shows_redriven
                    else []
                ),
            )
            for stored in dead_letters
        ],
    )


def print_result(what: str, dead_letters: list[StoredDeadLetter], *, executed: bool) -> None:
    """Print how many dead letters were changed, or would be."""
    count = counted(len(dead_letters), "dead letter")
    if executed or not dead_letters:
        typer.echo(f"{count} {what}")
    else:
        typer.echo(f"{count} would be {what}; pass --execute to do it")
