"""Routes of the page, and what each of them shows."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints._shared.texts import counted, duration
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.doctor.diagnosis import diagnose
from eventhub_checkpoints.operations.doctor.finding import Limits
from eventhub_checkpoints.operations.groups import Row
from eventhub_checkpoints.operations.history import history
from eventhub_checkpoints.operations.monitor import Monitor, PolledGroup
from eventhub_checkpoints.operations.peek import PeekedEvent, peek
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.preview import Preview, preview, store_previewed
from eventhub_checkpoints.operations.recorded_change import Command
from eventhub_checkpoints.operations.reset import goal_of
from eventhub_checkpoints.receive.position import EventPosition, is_digits, parse_partitions
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.access import AccessMiddleware, Tokens, is_own_form
from eventhub_checkpoints.ui.board import Board, Boards, Lane, Order
from eventhub_checkpoints.ui.events import EVENTS, MOST_PROPERTIES, Start, content, line, start_of
from eventhub_checkpoints.ui.readings import Readings
from eventhub_checkpoints.ui.rewind import GOALS, numbers_of
from eventhub_checkpoints.ui.trend import HEIGHT, WIDTH

log = logging.getLogger(__name__)

HISTORY_ROWS = 50
MOST_BYTES = 1_000_000
"""Size of a form; a preview of 1,000 partitions has 20,000."""

Recorded = Callable[[PolledGroup, str], Command]
"""Returns the command that changes positions of a group, from the name for its record."""
Fields = Mapping[str, str]

T = TypeVar("T")


class Pages:
    """The pages of a number of groups.

    Args:
        groups: the groups.
        monitor: polls them.
        interval: seconds between two polls, and between two refreshes of a page.
        others: groups of the store whose hub is not known; only their names are shown.
        command: returns the command of a change; None if the pages only read.
        target_of: returns the options that name a group in the commands of remedies.
    """

    def __init__(
        self,
        groups: Iterable[PolledGroup],
        monitor: Monitor,
        *,
        interval: float,
        others: Sequence[Scope] = (),
        command: Recorded | None = None,
        target_of: Callable[[PolledGroup], str] = lambda group: "",
    ) -> None:
        self._polled = {each.scope.folded: each for each in groups}
        self._boards = Boards(monitor)
        self._others = others
        self._command = command
        self._target_of = target_of
        self._readings = Readings()
        self._tokens = Tokens()
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
            "position": position,
            "time": utc,
            "content": content,
            "line": line,
            "json": json.dumps,
        }
        self._templates.globals |= {
            "url_of": url_of,
            "refresh": f"{interval:g}",
            "most_properties": MOST_PROPERTIES,
            "width": WIDTH,
            "height": HEIGHT,
        }

    @property
    def token(self) -> str:
        """Return the token that admits to the pages."""
        return self._tokens.token

    def application(self, port: int, hosts: Sequence[str]) -> ASGIApp:
        """Return the application.

        Args:
            port: on which it is served.
            hosts: names under which it may be called.
        """
        group = "/groups/{namespace}/{hub}/{group}"
        routes = [
            Route("/", self._groups),
            Route(group, self._group),
            Route(f"{group}/partitions/{{partition}}", self._partition),
            Route(f"{group}/partitions/{{partition}}/events", self._events),
            Route(f"{group}/findings", self._findings),
            Route(f"{group}/rewind", self._rewind),
            Mount("/static", StaticFiles(packages=[("eventhub_checkpoints.ui", "static")])),
        ]
        if self._command is not None:
            routes.append(Route(f"{group}/rewind", self._change, methods=["POST"]))
        application = Starlette(
            routes=routes,
            exception_handlers={
                CheckpointStoreError: self._failed,
                HTTPException: self._failed,
                Exception: self._failed,
            },
        )
        # Not Starlette's own list of middleware: the answer to an unknown error would lack headers.
        return TrustedHostMiddleware(
            AccessMiddleware(application, self._tokens, port),
            allowed_hosts=[*hosts],
            www_redirect=False,
        )

    def _groups(self, request: Request) -> Response:
        boards = [self._boards.of(scope) for scope in self._boards.scopes]
        return self._page(request, "groups", boards=boards, others=self._others)

    def _group(self, request: Request) -> Response:
        board = self._boards.of(self._find(request).scope)
        query = request.query_params
        order = Order(query["sort"]) if query.get("sort") in [*Order] else Order.NUMBER
        attention = query.get("show") == "attention"
        return self._page(
            request,
            "group",
            board=board,
            lanes=board.arranged(order, attention=attention),
            order=order,
            orders=[*Order],
            attention=attention,
        )

    async def _partition(self, request: Request) -> Response:
        polled = self._find(request)
        board = self._boards.of(polled.scope)
        lane = lane_of(board, request.path_params["partition"])
        values: dict[str, Any] = {}
        if not is_part(request):
            id_ = lane.position.partition_id
            read = partial(history, polled.store, polled.scope, [id_], limit=HISTORY_ROWS)
            entries, error = await self._read(read)
            if entries is not None or error:
                values = {"history": entries, "error": error}
        return self._page(request, "partition", board=board, lane=lane, **values)

    async def _events(self, request: Request) -> Response:
        """Show the events around a checkpoint, or around the event that the query names."""
        polled = self._find(request)
        board = self._boards.of(polled.scope)
        lane = lane_of(board, request.path_params["partition"])
        start = start_of(lane.position, polled.missing)
        chosen = request.query_params.get("at", "")
        events, error = None, ""
        if is_complete(request):
            events, error = await self._read(partial(read_events, polled, lane, start, chosen))
        return self._page(
            request,
            "events",
            board=board,
            lane=lane,
            start=start,
            chosen=chosen,
            events=events,
            error=error,
            reach=EVENTS,
        )

    async def _findings(self, request: Request) -> Response:
        """Examine a group without writing to the store."""
        polled = self._find(request)
        limits = Limits(expires_after=polled.expires_after)
        diagnosis, error = None, ""
        if is_complete(request):
            examine = partial(
                diagnose,
                polled.store,
                polled.hub,
                limits,
                writes=False,
                timeout=polled.timeout,
                target=self._target_of(polled),
            )
            diagnosis, error = await self._read(examine)
        return self._page(
            request,
            "findings",
            scope=polled.scope,
            diagnosis=diagnosis,
            error=error,
            time=time.time(),
        )

    async def _rewind(self, request: Request) -> Response:
        """Show the form of a rewind, and its preview if the form was filled in."""
        polled = self._find(request)
        fields = dict(request.query_params)
        planned, error = None, ""
        partitions = fields.get("partitions", "").strip()
        if "to" in fields:
            planned, error = await self._read(
                lambda: preview(
                    polled,
                    goal_of(fields["to"], fields.get("value", "").strip()),
                    parse_partitions(partitions) if partitions else (),
                )
            )
        return self._rewind_page(request, polled, fields, planned=planned, error=error)

    async def _read(self, read: Callable[[], T]) -> tuple[T | None, str]:
        """Return the result of a read from store and hub, or why it failed."""
        try:
            return await self._readings.run(read), ""
        except CheckpointStoreError as failure:
            return None, str(failure)

    async def _change(self, request: Request) -> Response:
        """Carry out the rewind of a preview."""
        polled = self._find(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise HTTPException(413, "the form is too long")
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not is_own_form(request, fields, self._tokens):
            raise HTTPException(403, "the form was not sent from this page; preview it again")
        return await run_in_threadpool(self._changed, request, polled, fields)

    def _changed(self, request: Request, polled: PolledGroup, fields: Fields) -> Response:
        assert self._command is not None
        done, error = "", ""
        try:
            command = self._command(polled, name_of(fields))
            numbers = numbers_of(fields.get("numbers", ""))
            outcome = store_previewed(command, polled, numbers, fields.get("seen", ""))
            done = (
                f"Changed {counted(outcome.changed, 'partition')} of {command.store_name}; on the "
                f"machine of ehcp ui, ehcp undo {outcome.record.path} restores the positions "
                "before."
            )
        except CheckpointStoreError as failure:
            error = str(failure)
        return self._rewind_page(request, polled, fields, done=done, error=error)

    def _rewind_page(
        self,
        request: Request,
        polled: PolledGroup,
        fields: Fields,
        *,
        planned: Preview | None = None,
        done: str = "",
        error: str = "",
    ) -> Response:
        return self._page(
            request,
            "rewind",
            status=409 if error else 200,
            scope=polled.scope,
            fields=fields,
            goals=GOALS,
            preview=planned,
            done=done,
            error=error,
            may_write=self._command is not None,
            form_token=self._tokens.form,
        )

    def _failed(self, request: Request, failure: Exception) -> Response:
        """Show an error in one sentence."""
        if isinstance(failure, HTTPException):
            status, message = failure.status_code, failure.detail
        elif isinstance(failure, CheckpointStoreError):
            status, message = 503, str(failure)
        else:
            # The message of an unknown error may quote a credential.
            log.error("%s failed: %s", request.url.path, described(failure))
            status, message = 500, "this page failed; the log of ehcp ui has the error"
        return self._page(request, "failure", status=status, message=message)

    def _find(self, request: Request) -> PolledGroup:
        """Return the group that a path names.

        Raises:
            HTTPException: there is no such group.
        """
        names = (request.path_params[name] for name in ("namespace", "hub", "group"))
        polled = self._polled.get(Scope._make(names).folded)
        if polled is None:
            raise HTTPException(404, "no such group is polled")
        return polled

    def _page(self, request: Request, name: str, *, status: int = 200, **values: Any) -> Response:
        """Render a page, or only its changing part if the script requests that."""
        prefix = "_" if is_part(request) and status == 200 else ""
        query = f"?{request.url.query}" if request.url.query else ""
        text = self._templates.get_template(f"{prefix}{name}.html").render(
            here=f"{quote(request.url.path)}{query}",
            path=quote(request.url.path),
            is_live=is_live(request),
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


def read_events(polled: PolledGroup, lane: Lane, start: Start, chosen: str) -> list[PeekedEvent]:
    """Read the events around a position.

    Args:
        chosen: sequence number; `""` for the events around the checkpoint.

    Raises:
        ConfigurationError: it is not a sequence number; see also `peek`.
        DataLossError: the event has expired.
        StoreError: the store could not be read.
        HubUnavailableError: the hub did not answer in time, or admits no reader.
    """
    number = start.number
    if chosen:
        if not is_digits(chosen):
            raise ConfigurationError(f"the number is {quoted(chosen)}; expected digits")
        number = int(chosen)
    return peek(
        polled.store,
        polled.hub,
        lane.position.partition_id,
        None if number is None else EventPosition.from_sequence_number(number, inclusive=True),
        count=EVENTS,
        before=EVENTS,
        through=polled.through,
        timeout=polled.timeout,
    )


def name_of(fields: Fields) -> str:
    """Return the name of a change, for the record that undo reads."""
    kind, value = fields.get("to", ""), fields.get("value", "")
    goal = f"--to {kind if kind in GOALS else '?'}" + (f" {masked(value)}" if value else "")
    return f"ui reset {goal}"


def url_of(scope: Scope, *rest: str) -> str:
    """Return the path of a group's page, or of one below it."""
    return "/".join(["/groups", *(quote(name, safe="") for name in (*scope, *rest))])


def in_words(seconds: float | None) -> str:
    """Return a duration, or a dash."""
    return duration(seconds) or "-"


def with_commas(number: int | None) -> str:
    """Return a number with thousands separators, or a dash."""
    return "-" if number is None else f"{number:,}"


def position(row: Row) -> str:
    """Return the sequence number of a checkpoint for people; a word if another store has it."""
    stored = Position.of(row)
    return str(stored) if stored.is_closed else with_commas(stored.sequence_number)


def utc(seconds: float | None) -> str:
    """Return a time of day with its date, or a dash."""
    return (
        "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
