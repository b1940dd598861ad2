"""The engine of a store: what `BaseCheckpointStore` does with a backend's hooks."""

from collections.abc import Awaitable, Callable

from eventhub_checkpoints._shared._async.compat import bounded, uninterrupted
from eventhub_checkpoints._shared.deadline import UNREACHABLE_TIMEOUT, set_unreachable_timeout
from eventhub_checkpoints._shared.settings import Settings
from eventhub_checkpoints.records import (
    RELEASED,
    RESERVED_NAMESPACE,
    Checkpoint,
    Proposal,
    Scope,
    fresh_etag,
)
from eventhub_checkpoints.stores._async.checkpoints import Checkpoints
from eventhub_checkpoints.stores._async.hooks import Hooks
from eventhub_checkpoints.stores._async.ownership import Ownerships
from eventhub_checkpoints.stores._async.runner import HookRunner
from eventhub_checkpoints.stores.hook_results import Examination, ScopeRows

PROBE = Scope(RESERVED_NAMESPACE, "verify", "probe")
PROBE_PARTITION = "0"


class Engine:
    """Runs the hooks of one backend for the methods of its store and of its abilities.

    Every method but `delete`, which sets its own, runs inside of a deadline; see `compat.bounded`.

    Args:
        backend: the store that implements the hooks.
        settings: its settings.

    Attributes:
        runner: calls the hooks, and knows the state of each partition.
        ownerships, checkpoints: what is done with rows of each kind.
    """

    def __init__(self, backend: Hooks, settings: Settings) -> None:
        self.runner = HookRunner(backend, settings)
        self.ownerships = Ownerships(self.runner)
        self.checkpoints = Checkpoints(self.runner)

    def fresh_version(self) -> str:
        """Return the version of a new checkpoint; `""` if the server chooses it."""
        return "" if self.runner.backend.makes_own_etags else fresh_etag()

    async def interactive(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call that a person, or the start of a program, waits for."""
        if self.runner.settings.unreachable_timeout is None:
            set_unreachable_timeout(UNREACHABLE_TIMEOUT)
        await call()

    async def verify(self) -> None:
        """Write and read the two rows of `PROBE`."""
        await self.runner.ready()
        # Creating a row and overwriting it may take two permissions. Losing to another process
        # that verifies at the same time is a valid answer too.
        await self._probe(None)
        rows = await self.ownerships.read(PROBE)
        await self._probe(rows[0][0].etag if rows else None)
        await self.checkpoints.read(PROBE)
        record = Checkpoint(PROBE, PROBE_PARTITION, "", 0, self.fresh_version())
        seconds = self.runner.settings.write_timeout
        await bounded(seconds, self.checkpoints.update, record, "raise", is_forced=True)

    async def delete(
        self,
        delete_rows: Callable[[Scope, str | None], Awaitable[int]],
        scope: Scope,
        partition_id: str | None,
    ) -> int:
        """Delete the rows of a group, or of one partition, and forget them; return the number."""
        runner = self.runner
        request, seconds = runner.request, runner.settings.operation_timeout
        removed = await uninterrupted(seconds, request, delete_rows, scope, partition_id)
        # A hand-over request for a partition that is gone would never be answered.
        await uninterrupted(seconds, request, delete_rows, scope.handover_requests, partition_id)
        with runner.guard:
            runner.states.forget(scope, partition_id)
        return removed

    async def _probe(self, etag: str | None) -> None:
        probe = Proposal(PROBE, PROBE_PARTITION, RELEASED, etag, fresh_etag())
        answer = (await self.ownerships.settle([probe]))[probe]
        if isinstance(answer, Exception):
            raise answer

    async def examine(self, scope: Scope) -> Examination:
        """Return the rows of a scope as they are stored."""
        request, backend = self.runner.request, self.runner.backend
        rows = ScopeRows(
            scope,
            await request(backend.read_ownerships, scope),
            await request(backend.read_checkpoints, scope),
        )
        spellings = await request(backend.read_spellings, scope)
        return Examination(rows, spellings, await request(backend.read_settings))
