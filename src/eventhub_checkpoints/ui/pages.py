"""Routes of the pages."""

import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.ui.access import AccessMiddleware
from eventhub_checkpoints.ui.change_pages import ChangePages
from eventhub_checkpoints.ui.context import PageContext
from eventhub_checkpoints.ui.dead_letter_pages import DeadLetterPages
from eventhub_checkpoints.ui.event_pages import EventPages
from eventhub_checkpoints.ui.group_pages import GroupPages

log = logging.getLogger(__name__)

GROUP = "/groups/{namespace}/{hub}/{group}"
PARTITION = f"{GROUP}/partitions/{{partition}}"


class Pages:
    """The pages of a number of groups."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    @property
    def token(self) -> str:
        """Return the token that admits to the pages."""
        return self._context.tokens.token

    def application(self, port: int, hosts: Sequence[str]) -> ASGIApp:
        """Return the application.

        Args:
            port: on which it is served.
            hosts: names under which it may be called.
        """
        groups, events = GroupPages(self._context), EventPages(self._context)
        changes, letters = ChangePages(self._context), DeadLetterPages(self._context)
        routes: list[Route | Mount] = [
            Route("/", groups.overview),
            Route(GROUP, groups.group),
            Route(f"{GROUP}/members", groups.members),
            Route(f"{GROUP}/events", events.group_events),
            Route(f"{GROUP}/findings", groups.findings),
            Route(f"{GROUP}/history", changes.history),
            Route(f"{GROUP}/rewind", changes.rewind),
            Route(f"{GROUP}/undo", changes.undo),
            Route(f"{GROUP}/dead-letters", letters.dead_letters),
            Route(PARTITION, groups.partition),
            Route(f"{PARTITION}/events", events.events),
            Mount("/static", StaticFiles(packages=[("eventhub_checkpoints.ui", "static")])),
        ]
        if self._context.may_write:
            routes += [
                Route(f"{GROUP}/rewind", changes.store_rewind, methods=["POST"]),
                Route(f"{GROUP}/undo", changes.store_undo, methods=["POST"]),
                Route(f"{GROUP}/dead-letters", letters.redrive, methods=["POST"]),
            ]
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
            AccessMiddleware(application, self._context.tokens, port),
            allowed_hosts=[*hosts],
            www_redirect=False,
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
            status, message = 500, f"this page failed; the log of {as_typed('ui')} has the error"
        return self._context.page(request, "failure", status=status, message=message)
