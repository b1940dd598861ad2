"""What the routes share: the groups, the templates, forms, and reads that may take long."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import counted, duration
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.dead_letters import DeadLetterSource
from eventhub_checkpoints.operations.groups import Row
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.recorded_change import Command
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.access import Tokens, is_own_form
from eventhub_checkpoints.ui.board import BLOCK, CHART, Board, Boards, Lane, severity_class
from eventhub_checkpoints.ui.bodies import MOST_PROPERTIES, content, line, pieces
from eventhub_checkpoints.ui.groups import ShownGroups
from eventhub_checkpoints.ui.owners import BAR, ranges, short
from eventhub_checkpoints.ui.readings import Readings
from eventhub_checkpoints.ui.trend import CURVE_HEIGHT, CURVE_WIDTH, HEIGHT, WIDTH

MOST_BYTES = 1_000_000
"""Size of a form; a preview of 1,000 partitions has 20,000."""
LEAST_TAGGED = 24
"""Width of the narrowest share that has room for a tag, in units of `BAR`."""

Commands = Callable[[PolledGroup, str], Command]
"""Returns the command that plans a change of positions, from the name for its record."""
Form = ImmutableMultiDict[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters that the pages show.

    Attributes:
        name: where they are, without secrets.
        open: opens them.
    """

    name: str
    open: Callable[[], AbstractContextManager[DeadLetterSource]]


@dataclass
class PageContext:
    """What the routes share.

    Attributes:
        groups: the groups.
        boards: what is shown of them.
        interval: seconds between two polls, and between two refreshes of a page.
        commands: of changes; they only plan.
        may_write: whether the pages change something.
        target_of: returns the options that name a group in commands to be pasted.
        dead_letters: None if the operator has named none.
        tokens: of this run.
    """

    groups: ShownGroups
    boards: Boards
    interval: float
    commands: Commands
    may_write: bool
    target_of: Callable[[PolledGroup], str]
    dead_letters: DeadLetters | None = None
    tokens: Tokens = field(default_factory=Tokens)

    def __post_init__(self) -> None:
        self._readings = Readings()
        self._templates = Environment(
            loader=PackageLoader("eventhub_checkpoints.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "duration": in_words,
            "count": with_commas,
            "counted": partial(counted, grouped=True),
            "rate": rate,
            "position": position,
            "time": utc,
            "recorded": recorded,
            "clock": clock,
            "content": content,
            "line": line,
            "pieces": pieces,
            "short": short,
            "ranges": ranges,
            "json": json.dumps,
            "severity": severity_class,
            "query": urlencode,
            "percent": percent,
        }
        self._templates.globals |= {
            "url_of": url_of,
            "as_typed": as_typed,
            "refresh": f"{self.interval:g}",
            "most_properties": MOST_PROPERTIES,
            "trend_size": (WIDTH, HEIGHT),
            "curve_size": (CURVE_WIDTH, CURVE_HEIGHT),
            "bar": BAR,
            "least_tagged": LEAST_TAGGED,
            "block_size": BLOCK,
            "chart": CHART,
            "may_write": self.may_write,
            "has_dead_letters": self.dead_letters is not None,
            "now": time.time,
        }

    def polled(self, request: Request) -> PolledGroup:
        """Return the group that a path names.

        Raises:
            HTTPException: there is no such group.
        """
        names = (request.path_params[name] for name in ("namespace", "hub", "group"))
        polled = self.groups.of(Scope._make(names))
        if polled is None:
            raise HTTPException(404, "no such group is polled")
        return polled

    def board(self, request: Request) -> Board:
        """Return the board of the group that a path names; raises as `polled`."""
        return self.boards.of(self.polled(request).scope)

    def command(self, polled: PolledGroup, name: str, *, executes: bool = False) -> Command:
        """Return a command that changes positions of a group, or only plans that."""
        assert self.may_write or not executes, "without --allow-writes there is no such route"
        return replace(self.commands(polled, name), executes=executes)

    async def read(self, read: Callable[[], T]) -> tuple[T | None, str]:
        """Return the result of a read from store and hub, or why it failed."""
        try:
            return await self._readings.run(read), ""
        except CheckpointStoreError as failure:
            return None, str(failure)

    async def form(self, request: Request) -> Form:
        """Return the fields of a form that changes something.

        Raises:
            HTTPException: it is too long, or was not sent from one of these pages.
        """
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise HTTPException(413, "the form is too long")
        fields: Form = ImmutableMultiDict(
            parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        )
        if not is_own_form(request, fields, self.tokens):
            raise HTTPException(403, "the form was not sent from this page; open the page again")
        return fields

    def page(
        self,
        request: Request,
        name: str,
        /,
        *,
        status: int = 200,
        is_whole: bool = False,
        **values: Any,
    ) -> Response:
        """Render a page, or only its changing part if the script requests that."""
        prefix = "_" if is_part(request) and status == 200 and not is_whole else ""
        query = f"?{request.url.query}" if request.url.query else ""
        text = self._templates.get_template(f"{prefix}{name}.html").render(
            here=f"{quote(request.url.path)}{query}",
            path=quote(request.url.path),
            is_live=is_live(request),
            with_query=query_changer(request),
            form_token=self.tokens.form,
            **values,
        )
        return HTMLResponse(text, status)


def is_part(request: Request) -> bool:
    """Return whether the script requests the changing part of a page."""
    return "x-part" in request.headers


def is_live(request: Request) -> bool:
    """Return whether a page may be changed by the script."""
    return request.query_params.get("live") != "off"


def is_complete(request: Request) -> bool:
    """Return whether to include what takes long; otherwise the script requests it."""
    return is_part(request) or not is_live(request)


def query_changer(request: Request) -> Callable[..., str]:
    """Return a function that returns the address of a page with other values in its query."""
    present = dict(request.query_params)

    def changed(**values: object) -> str:
        fields: Mapping[str, object] = {**present, **values}
        query = urlencode({name: value for name, value in fields.items() if value is not None})
        return quote(request.url.path) + (f"?{query}" if query else "")

    return changed


def lane_of(board: Board, partition_id: str) -> Lane:
    """Return a partition of a group.

    Raises:
        HTTPException: it was not polled yet, or there is none.
    """
    for lane in board.lanes:
        if lane.position.partition_id == partition_id:
            return lane
    if board.sample is None:
        raise HTTPException(503, f"the partition is unknown: {board.error}")
    raise HTTPException(404, "the hub has no such partition")


def stripped_query(request: Request) -> Mapping[str, str]:
    """Return the values of a query by name, without the spaces around them."""
    return {name: value.strip() for name, value in request.query_params.items()}


def number_in(request: Request, name: str, *, least: int, most: int) -> int:
    """Return a number of the query, within limits; the least one if it is none."""
    text = request.query_params.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(most)) + 1
    return min(most, max(least, int(text))) if is_number else least


def url_of(scope: Scope, *rest: str) -> str:
    """Return the path of a group's page, or of one below it."""
    return "/".join(["/groups", *(quote(name, safe="") for name in (*scope, *rest))])


def in_words(seconds: float | None) -> str:
    """Return a duration, or a dash."""
    return duration(seconds) or "-"


def with_commas(number: int | None) -> str:
    """Return a number with thousands separators, or a dash."""
    return "-" if number is None else f"{number:,}"


def rate(per_second: float | None) -> str:
    """Return a number of events per second, or a dash."""
    if per_second is None:
        return "-"
    digits = 0 if per_second >= 10 or not per_second else 1 if per_second >= 1 else 2
    return f"{per_second:,.{digits}f}/s"


def position(row: Row) -> str:
    """Return the sequence number of a checkpoint for people; a word if another store has it."""
    stored = Position.of(row)
    return str(stored) if stored.is_closed else with_commas(stored.sequence_number)


def percent(width: float) -> str:
    """Return a part of a bar as an attribute of SVG."""
    return f"{100 * width / BAR:.4g}%"


def utc(seconds: float | None) -> str:
    """Return a time of day with its date, or a dash."""
    return (
        "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )


def recorded(text: str) -> str:
    """Return the time of a record as those of a page; unchanged if it is none."""
    try:
        return utc(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return line(text)


def clock(seconds: float) -> str:
    """Return a time of day in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}"
