"""Pages of groups: the overview, a group, its members, its findings, and a partition."""

import time
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from eventhub_checkpoints.operations.doctor.diagnosis import diagnose
from eventhub_checkpoints.operations.doctor.finding import Limits
from eventhub_checkpoints.operations.history import history
from eventhub_checkpoints.ui.board import BLOCK, Order, blocks
from eventhub_checkpoints.ui.context import (
    PageContext,
    is_complete,
    is_part,
    lane_of,
    number_in,
)

HISTORY_ROWS = 50
"""Earlier checkpoints that a page shows."""


class GroupPages:
    """Handlers of the pages of groups."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    def overview(self, request: Request) -> Response:
        """Show a tile for each group, the worst first."""
        boards = [self._context.boards.of(scope) for scope in self._context.boards.scopes]
        boards.sort(key=lambda board: -board.state.rank)
        return self._context.page(
            request,
            "overview",
            boards=boards,
            others=self._context.groups.others,
            attention=sum(bool(board.state.severity) for board in boards),
        )

    def group(self, request: Request) -> Response:
        """Show a lane for each partition, of one block if there are many."""
        board = self._context.board(request)
        query = request.query_params
        order = Order(query["sort"]) if query.get("sort") in [*Order] else Order.NUMBER
        attention = query.get("show") == "attention"
        owner_id = query.get("owner")
        lanes = board.arranged(order, attention=attention, owner_id=owner_id)
        parts = blocks(lanes)
        number = number_in(request, "page", least=1, most=max(1, len(parts)))
        return self._context.page(
            request,
            "group",
            board=board,
            lanes=lanes[(number - 1) * BLOCK : number * BLOCK],
            chosen=len(lanes),
            blocks=parts,
            block=number,
            order=order,
            orders=[*Order],
            attention=attention,
            owner_id=owner_id,
        )

    def members(self, request: Request) -> Response:
        """Show what each member holds."""
        return self._context.page(request, "members", board=self._context.board(request))

    async def partition(self, request: Request) -> Response:
        """Show a partition, and its earlier checkpoints where the store keeps them."""
        polled = self._context.polled(request)
        board = self._context.boards.of(polled.scope)
        lane = lane_of(board, request.path_params["partition"])
        values: dict[str, Any] = {}
        if not is_part(request):
            id_ = lane.position.partition_id
            read = partial(history, polled.store, polled.scope, [id_], limit=HISTORY_ROWS)
            entries, error = await self._context.read(read)
            values = {"history": entries, "error": error}
        return self._context.page(request, "partition", board=board, lane=lane, **values)

    async def findings(self, request: Request) -> Response:
        """Examine a group without writing to the store."""
        polled = self._context.polled(request)
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
                target=self._context.target_of(polled),
            )
            diagnosis, error = await self._context.read(examine)
        return self._context.page(
            request,
            "findings",
            board=self._context.boards.of(polled.scope),
            diagnosis=diagnosis,
            error=error,
            time=time.time(),
        )
