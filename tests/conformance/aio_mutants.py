"""Aio stores whose time is simulated: a sound one, and one for each way to exceed a limit."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from mutants_of_limits import DAWDLING, OVERDUE, OWN_LIMIT, SLOW, three_times

from eventhub_checkpoints._shared.settings import Settings
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.stores._async.checkpoints import Checkpoints
from eventhub_checkpoints.stores._async.ownership import Ownerships
from eventhub_checkpoints.stores._async.runner import HookRunner
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_time import now

Made = TypeVar("Made", bound="type[AioSound]")


class SilentRows(MemoryRows):
    """Rows that can be silent for some simulated seconds."""

    silent_until = 0.0

    def stall(self, seconds: float) -> None:
        self.silent_until = now() + seconds

    async def answer(self) -> None:
        await asyncio.sleep(max(0.0, self.silent_until - now()))

    def accessors(self) -> Accessors:
        return Accessors(put_raw=self.put_raw, stall=self.stall)


class AioSound(MemoryCheckpointStore):
    """A memory store without a fault; a mutant is a subclass with one."""

    rows: SilentRows
    Runner: type[HookRunner] = HookRunner

    def __init_subclass__(cls) -> None:
        """Let mutants redefine what stores must not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._engine.runner = self.Runner(self, self.settings)
        self._engine.ownerships = Ownerships(self._engine.runner)
        self._engine.checkpoints = Checkpoints(self._engine.runner)

    async def read_ownerships(self, scope: Any) -> Any:
        await self.rows.answer()
        return await super().read_ownerships(scope)

    async def try_claim(self, proposal: Any) -> Any:
        await self.rows.answer()
        return await super().try_claim(proposal)

    async def read_checkpoints(self, scope: Any) -> Any:
        await self.rows.answer()
        return await super().read_checkpoints(scope)

    async def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        await self.rows.answer()
        return await super().write_checkpoint(checkpoint, seen)


AIO_MUTANTS: dict[type[AioSound], tuple[str, ...]] = {}
"""Each mutant, and the checks that name its fault."""


def mutant(*caught_by: str) -> Callable[[Made], Made]:
    """A store with one fault, and the checks that must catch it."""

    def listed(made: Made) -> Made:
        AIO_MUTANTS[made] = caught_by
        return made

    return listed


@mutant(*OVERDUE)
class TakesThreeTimesItsLimit(AioSound):
    class Runner(HookRunner):
        @property
        def settings(self) -> Settings:
            return three_times(self._settings)

        @settings.setter
        def settings(self, settings: Settings) -> None:
            self._settings = settings


@mutant(*OVERDUE)
class DawdlesAfterASlowCall(AioSound):
    """Quick as long as its backend is."""

    async def dawdled(self, call: Coroutine[Any, Any, Any]) -> Any:
        began = now()
        try:
            return await call
        finally:
            await asyncio.sleep(DAWDLING if now() - began > SLOW else 0.0)

    async def list_ownership(self, *args: Any, **kwargs: Any) -> Any:
        return await self.dawdled(super().list_ownership(*args, **kwargs))

    async def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        return await self.dawdled(super().claim_ownership(*args, **kwargs))

    async def list_checkpoints(self, *args: Any, **kwargs: Any) -> Any:
        return await self.dawdled(super().list_checkpoints(*args, **kwargs))

    async def update_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        return await self.dawdled(super().update_checkpoint(*args, **kwargs))


@mutant(*OVERDUE)
class IsDeafToItsCancellation(AioSound):
    """It goes on waiting for its driver when its time is over."""

    class Runner(HookRunner):
        async def call(self, hook: Any, *args: Any, **options: Any) -> Any:
            async def deaf(*args: Any) -> Any:
                task = asyncio.ensure_future(hook(*args))
                while not task.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.shield(task)
                return task.result()

            return await super().call(deaf, *args, **options)


@mutant("calls_end_within_their_limits")
class TakesFourTimesItsOwnLimits(IsDeafToItsCancellation):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, operation_timeout=OWN_LIMIT, write_timeout=OWN_LIMIT)

    async def read_ownerships(self, scope: Any) -> Any:
        await asyncio.sleep(4 * OWN_LIMIT)
        return await super().read_ownerships(scope)


@mutant("a_hung_claim_spares_the_others")
class GivesUpABatchForOneClaim(AioSound):
    async def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        before = self.counters["unconfirmed_claims"]
        won = await super().claim_ownership(ownership_list)
        return won if self.counters["unconfirmed_claims"] == before else []


@mutant("claims_of_a_batch_run_side_by_side")
class ClaimsOneAfterTheOther(AioSound):
    async def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        claimed = [await super(type(self), self).claim_ownership([row]) for row in ownership_list]
        return [row for rows in claimed for row in rows]


@mutant("a_short_stall_costs_nothing")
class IsImpatient(AioSound):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, operation_timeout=0.1, write_timeout=0.1)
