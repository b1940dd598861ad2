"""Pages that plan a change of positions, and carry it out: rewind, history and undo."""

from dataclasses import dataclass
from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.history import history
from eventhub_checkpoints.operations.journal import Record
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.operations.preview import (
    Preview,
    UndoPreview,
    carry_out_undo,
    preview,
    preview_undo,
    store_previewed,
)
from eventhub_checkpoints.operations.reset import goal_of
from eventhub_checkpoints.receive.position import parse_partitions
from eventhub_checkpoints.ui.context import Form, PageContext, url_of
from eventhub_checkpoints.ui.rewind import GOALS, moves_of, numbers_of

RECORDS = 50
"""Recorded changes, and earlier checkpoints, that a page shows."""
SHOWN_MOVES = 100
"""Partitions of a plan that are drawn; the others are listed."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What a form has changed, or why nothing was.

    Attributes:
        done: sentence; `""` if nothing was changed.
        undo: path of the page that takes it back; `""` if there is none.
        error: sentence; `""` if it was changed.
    """

    done: str = ""
    undo: str = ""
    error: str = ""


class ChangePages:
    """Handlers of the pages that change positions."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    async def rewind(self, request: Request) -> Response:
        """Show the form of a rewind, and its preview if the form was filled in."""
        polled = self._context.polled(request)
        fields = Form(request.query_params)
        planned, error = None, ""
        partitions = fields.get("partitions", "").strip()
        if "to" in fields:
            planned, error = await self._context.read(
                lambda: preview(
                    polled,
                    goal_of(fields["to"], fields.get("value", "").strip()),
                    parse_partitions(partitions, "partitions") if partitions else (),
                )
            )
        return self._rewind_page(request, polled, fields, planned, ChangeResult(error=error))

    async def store_rewind(self, request: Request) -> Response:
        """Carry out the rewind of a preview."""
        polled = self._context.polled(request)
        fields = await self._context.form(request)
        changed = await run_in_threadpool(self._rewound, polled, fields)
        return self._rewind_page(request, polled, fields, None, changed)

    def _rewound(self, polled: PolledGroup, fields: Form) -> ChangeResult:
        try:
            command = self._context.command(polled, name_of(fields), executes=True)
            numbers = numbers_of(fields.get("numbers", ""))
            outcome = store_previewed(command, polled, numbers, fields.get("seen", ""))
        except CheckpointStoreError as failure:
            return ChangeResult(error=str(failure))
        return ChangeResult(
            f"Changed {counted(outcome.changed, 'partition')} of {command.store_name}. What was "
            f"there before is recorded on the machine of {as_typed('ui')}, in "
            f"{outcome.record.path}.",
            undo_url(polled, outcome.record),
        )

    def _rewind_page(
        self,
        request: Request,
        polled: PolledGroup,
        fields: Form,
        planned: Preview | None,
        changed: ChangeResult,
    ) -> Response:
        return self._context.page(
            request,
            "rewind",
            status=409 if changed.error else 200,
            is_whole=True,
            board=self._context.boards.of(polled.scope),
            fields=fields,
            goals=GOALS,
            preview=planned,
            moves=moves_of(planned.plan) if planned else [],
            most_moves=SHOWN_MOVES,
            changed=changed,
        )

    async def history(self, request: Request) -> Response:
        """Show recorded changes of a group, and its earlier checkpoints."""
        polled = self._context.polled(request)
        records, error = await self._context.read(lambda: self._records(polled))
        entries, failure = await self._context.read(
            lambda: history(polled.store, polled.scope, limit=RECORDS)
        )
        return self._context.page(
            request,
            "history",
            is_whole=True,
            board=self._context.boards.of(polled.scope),
            records=records or [],
            history=entries,
            error=error or failure,
        )

    def _records(self, polled: PolledGroup) -> list[Record]:
        command = self._context.command(polled, "history")
        own = (
            record
            for record in command.journal.records(polled.scope)
            if record.store == command.store_name
        )
        return [*islice(own, RECORDS)]

    def _record(self, polled: PolledGroup, name: str) -> Record:
        """Return a record by the name of its file, which is never made a path.

        Raises:
            HTTPException: there is none.
        """
        command = self._context.command(polled, "undo")
        for record in command.journal.records(polled.scope):
            if record.path.name == name and record.store == command.store_name:
                return record
        raise HTTPException(404, "there is no such record of a change of this group")

    async def undo(self, request: Request) -> Response:
        """Show what an undo would restore."""
        polled = self._context.polled(request)
        name = request.query_params.get("record", "")
        record = await run_in_threadpool(self._record, polled, name)
        planned, error = await self._context.read(lambda: preview_undo(polled, record))
        return self._undo_page(request, polled, record, planned, ChangeResult(error=error))

    async def store_undo(self, request: Request) -> Response:
        """Undo a recorded change."""
        polled = self._context.polled(request)
        fields = await self._context.form(request)
        record = await run_in_threadpool(self._record, polled, fields.get("record", ""))
        changed = await run_in_threadpool(self._undone, polled, record)
        return self._undo_page(request, polled, record, None, changed)

    def _undone(self, polled: PolledGroup, record: Record) -> ChangeResult:
        try:
            command = self._context.command(polled, f"undo {record.path.name}", executes=True)
            outcome = carry_out_undo(command, polled, record)
        except CheckpointStoreError as failure:
            return ChangeResult(error=str(failure))
        return ChangeResult(
            f"Restored {counted(outcome.changed, 'partition')} of {command.store_name}.",
            undo_url(polled, outcome.record),
        )

    def _undo_page(
        self,
        request: Request,
        polled: PolledGroup,
        record: Record,
        planned: UndoPreview | None,
        changed: ChangeResult,
    ) -> Response:
        return self._context.page(
            request,
            "undo",
            status=409 if changed.error else 200,
            is_whole=True,
            board=self._context.boards.of(polled.scope),
            record=record,
            preview=planned,
            changed=changed,
        )


def undo_url(polled: PolledGroup, record: Record) -> str:
    """Return the path of the page that takes a change back."""
    return f"{url_of(polled.scope, 'undo')}?record={record.path.name}"


def name_of(fields: Form) -> str:
    """Return the name of a change, for the record that undo reads."""
    kind, value = fields.get("to", ""), fields.get("value", "")
    goal = f"--to {kind if kind in GOALS else '?'}" + (f" {masked(value)}" if value else "")
    return f"ui reset {goal}"
