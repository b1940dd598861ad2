"""Commands that look at events: `peek` and `at`."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.texts import printable
from eventhub_checkpoints._shared.times import parse_time
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.output import Json, plain, print_json, print_table, working
from eventhub_checkpoints.cli.target import ReadThrough, Target, on_target
from eventhub_checkpoints.dead_letters.dead_letter import encoded_body
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.peek import PeekedEvent, positions_at
from eventhub_checkpoints.operations.peek import peek as read_around
from eventhub_checkpoints.receive.position import EventPosition

LONGEST_BODY = 200
"""Characters of a body that the table shows."""


@on_target
def peek(
    target: Target,
    *,
    partition_id: Annotated[str, typer.Argument(metavar="PARTITION", help="For example 0.")],
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start at the first event enqueued then or later."),
    ] = None,
    sequence_number: Annotated[
        int | None, number_option(least=0, help="Start at this event.")
    ] = None,
    offset: Annotated[str | None, typer.Option(help="Start at the event of this offset.")] = None,
    count: Annotated[int, number_option(least=1, help="Number of events.")] = 1,
    before: Annotated[
        int, number_option(least=0, help="Number of events before the position, in addition.")
    ] = 0,
    through: ReadThrough = None,
    as_json: Annotated[
        bool, typer.Option("--json", "-J", help="Print each event as a line of JSON.")
    ] = False,
    body_only: Annotated[
        bool, typer.Option("--body-only", help="Print the bodies only, each as it is.")
    ] = False,
) -> None:
    """Show the event after a checkpoint, the one that a partition hangs on.

    Options choose another position and more events. No consumer is disconnected, and nothing is
    stored. TIME is such as 2026-11-23T10:00, and UTC without an offset.
    """
    position = chosen_position(at, sequence_number, offset)
    arguments: dict[str, Any] = {
        "count": count,
        "before": before,
        "through": through,
        "timeout": target.timeout,
    }
    if position is None:
        with target.open_store() as store, working("reading"):
            events = read_around(store, target.address, partition_id, **arguments)
    else:
        with working("reading"):
            events = read_around(None, target.address, partition_id, position, **arguments)
    if body_only:
        for event in events:
            typer.echo(event.body)
    elif as_json:
        for event in events:
            typer.echo(json.dumps(event_for_json(event), ensure_ascii=False, default=plain))
    else:
        print_events(events, f"partition {partition_id} of {target.scope}")


def chosen_position(
    at: str | None, sequence_number: int | None, offset: str | None
) -> EventPosition | None:
    """Return the position that the options name; None if they name none.

    Raises:
        ConfigurationError: they name several, or an invalid one.
    """
    if sum(each is not None for each in (at, sequence_number, offset)) > 1:
        raise ConfigurationError(
            "--at, --sequence-number and --offset each name a position: pass one of them"
        )
    if at is not None:
        return EventPosition.from_enqueued_time(parse_time(at))
    if offset is not None:
        return EventPosition.from_offset(offset, inclusive=True)
    if sequence_number is not None:
        return EventPosition.from_sequence_number(sequence_number, inclusive=True)
    return None


def event_for_json(event: PeekedEvent) -> dict[str, Any]:
    """Return an event for JSON: its body as text if it is UTF-8, else in base64."""
    body, encoding = encoded_body(event.body)
    value = asdict(event)
    del value["body"]  # the longest part comes last
    return {**value, "body_encoding": encoding, "body": body}


def print_events(events: list[PeekedEvent], title: str) -> None:
    """Print events as a table, with their bodies cut."""
    print_table(
        [">NUMBER", "OFFSET", "ENQUEUED", "PROPERTIES", "BODY"],
        [
            (
                event.sequence_number,
                event.offset,
                shown_time(event.enqueued_time),
                cut(" ".join(f"{key}={value}" for key, value in event.properties.items())),
                shown_body(event.body),
            )
            for event in events
        ],
        title=title,
    )


def shown_time(time: datetime | None) -> str | None:
    """Return a time for people, in seconds and UTC."""
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_body(body: bytes) -> str:
    """Return a body for people: its text, or its size if it is not text."""
    try:
        return cut(body.decode())
    except UnicodeDecodeError:
        return f"{len(body)} bytes, not UTF-8"


def cut(text: str) -> str:
    """Return the beginning of a text, with its control characters escaped."""
    escaped = printable(text[:LONGEST_BODY])
    return escaped if len(text) <= LONGEST_BODY else f"{escaped}... ({len(text)} characters)"


@on_target
def print_positions(
    target: Target,
    *,
    time: Annotated[
        str, typer.Argument(metavar="TIME", help="Such as 2026-11-23T10:00; UTC without an offset.")
    ],
    through: ReadThrough = None,
    as_json: Json = False,
) -> None:
    """Show the first event of each partition that was enqueued at a time or later."""
    moment = parse_time(time)
    with working("reading"):
        positions = positions_at(target.address, moment, through=through, timeout=target.timeout)
    if as_json:
        print_json(positions)
        return
    print_table(
        ["PARTITION", ">NUMBER", "OFFSET", "ENQUEUED"],
        [
            (
                each.partition_id,
                each.sequence_number,
                each.offset,
                shown_time(each.enqueued_time) or "no event since then",
            )
            for each in positions
        ],
        title=f"{target.address} at {moment.isoformat()}",
    )
