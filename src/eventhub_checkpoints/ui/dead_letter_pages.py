"""Page of dead letters: those of a group, and sending them back."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.dead_letters import (
    GroupDeadLetters,
    Selection,
    error_of,
    newest_of_group,
    redrive,
    to_redrive,
)
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.ui.change_pages import ChangeResult
from eventhub_checkpoints.ui.context import Form, PageContext, is_complete, stripped_query

SHOWN = 100
"""Dead letters of a page, and of one redrive."""


class DeadLetterPages:
    """Handlers of the page of dead letters."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    async def dead_letters(self, request: Request) -> Response:
        """Show the dead letters of a group."""
        polled = self._context.polled(request)
        listed, error = None, ""
        if self._context.dead_letters and is_complete(request):
            selection = selection_of(request, polled)
            listed, error = await self._context.read(lambda: self._listed(polled, selection))
        return self._page(request, polled, listed, ChangeResult(error=error))

    async def redrive(self, request: Request) -> Response:
        """Send dead letters back to their hub."""
        polled = self._context.polled(request)
        fields = await self._context.form(request)
        changed = await run_in_threadpool(self._redriven, polled, fields)
        return self._page(request, polled, None, changed)

    def _listed(self, polled: PolledGroup, selection: Selection) -> GroupDeadLetters:
        assert self._context.dead_letters is not None
        with self._context.dead_letters.open() as source:
            return newest_of_group(source, polled.scope, selection, SHOWN)

    def _redriven(self, polled: PolledGroup, fields: Form) -> ChangeResult:
        ids = fields.getlist("shown" if fields.get("which") == "all" else "id")
        sent = 0
        try:
            if not ids or len(ids) > SHOWN or self._context.dead_letters is None:
                raise ConfigurationError("no dead letter was chosen: tick those to send back")
            selection = Selection(polled.scope.consumer_group, ids=ids)
            with self._context.dead_letters.open() as source:
                chosen = to_redrive(source, selection, polled.hub, is_elsewhere=False)
                for _ in redrive(source, chosen, polled.hub, timeout=polled.timeout):
                    sent += 1
        except CheckpointStoreError as failure:
            before = f"{counted(sent, 'dead letter')} sent; then: " if sent else ""
            return ChangeResult(error=f"{before}{failure}")
        return ChangeResult(f"Sent {counted(sent, 'dead letter')} to {polled.hub}.")

    def _page(
        self,
        request: Request,
        polled: PolledGroup,
        listed: GroupDeadLetters | None,
        changed: ChangeResult,
    ) -> Response:
        return self._context.page(
            request,
            "dead_letters",
            status=409 if changed.error and request.method == "POST" else 200,
            is_whole=request.method == "POST",
            board=self._context.boards.of(polled.scope),
            name=self._context.dead_letters.name if self._context.dead_letters else "",
            hub=str(polled.hub),
            query=request.query_params,
            listed=listed,
            error_of=error_of,
            changed=changed,
        )


def selection_of(request: Request, polled: PolledGroup) -> Selection:
    """Return the dead letters that a query chooses."""
    query = stripped_query(request)
    return Selection(
        polled.scope.consumer_group,
        query.get("partition") or None,
        error=query.get("error") or None,
        is_redriven_included=query.get("show") == "all",
    )
