"""Coalescing stores of both variants, over stores that tell what they are asked."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from eventhub_checkpoints import CoalescingCheckpointStore, MemoryCheckpointStore, aio, every
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_time import DIGITS, POLL, simulation
from variants import SIMULATED
from waiting import LIMIT, eventually

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
NEVER = every(events=10**6)
Call = tuple[object, ...]


@dataclass
class Below:
    """A backend: what it was asked, and how it answers.

    Attributes:
        calls: `("write", partition, number)`, `("claim", partition)`, `("release", partition)`
            and `("list",)`, as they end.
        given: keyword arguments of each write.
        error: raised by writes, which then store nothing.
        gate: writes wait until it is set.
        entered: is set when a write has begun.
    """

    rows: MemoryRows = field(default_factory=MemoryRows)
    calls: list[Call] = field(default_factory=list)
    given: list[dict[str, Any]] = field(default_factory=list)
    error: Exception | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)

    def begin(self, kwargs: dict[str, Any]) -> None:
        self.given.append({key: kwargs[key] for key in kwargs if key != "on_stale"})
        self.entered.set()

    def wrote(self, row: Any) -> None:
        self.calls.append(("write", row["partition_id"], row["sequence_number"]))
        if self.error is not None:
            raise self.error

    def claimed(self, rows: Any) -> None:
        for row in rows:
            kind = "claim" if row.get("owner_id") else "release"
            self.calls.append((kind, row.get("partition_id")))

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call[0] == "write"]

    def stored(self, partition_id: str = "0", scope: Scope = SCOPE) -> int | None:
        rows = {row.partition_id: row for row in self.rows.checkpoints(scope).rows}
        return rows[partition_id].sequence_number if partition_id in rows else None

    def official_write(self, number: int, partition_id: str = "0") -> None:
        """Write as another library does."""
        fields = {"offset": str(100 * number), "sequencenumber": str(number)}
        self.rows.put_raw("checkpoint", SCOPE, partition_id, fields)


class SyncStore:
    """A store below; one that is not `forward_only` lets a checkpoint go back."""

    def __init__(self, below: Below, forward_only: bool) -> None:
        self.below = below
        self.inner = MemoryCheckpointStore(below.rows)
        self.forward_only = forward_only
        self.is_closed = False

    def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        return self.inner.list_ownership(*names, **kwargs)

    def claim_ownership(self, rows: Any, **kwargs: Any) -> Any:
        won = self.inner.claim_ownership(rows, **kwargs)
        self.below.claimed(rows)
        return won

    def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        self.below.calls.append(("list",))
        return self.inner.list_checkpoints(*names, **kwargs)

    def update_checkpoint(self, row: Any, **kwargs: Any) -> None:
        self.below.begin(kwargs)
        assert self.below.gate.wait(LIMIT)
        self.below.wrote(row)
        self.inner.update_checkpoint(row, **{"force": not self.forward_only} | kwargs)

    def close(self) -> None:
        self.is_closed = True


class AioStore:
    """The same, for asyncio."""

    def __init__(self, below: Below, forward_only: bool) -> None:
        self.below = below
        self.inner = aio.MemoryCheckpointStore(below.rows)
        self.forward_only = forward_only
        self.is_closed = False

    async def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        return await self.inner.list_ownership(*names, **kwargs)

    async def claim_ownership(self, rows: Any, **kwargs: Any) -> Any:
        won = await self.inner.claim_ownership(rows, **kwargs)
        self.below.claimed(rows)
        return won

    async def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        self.below.calls.append(("list",))
        return await self.inner.list_checkpoints(*names, **kwargs)

    async def update_checkpoint(self, row: Any, **kwargs: Any) -> None:
        self.below.begin(kwargs)
        while not self.below.gate.is_set():  # noqa: ASYNC110 - it is set in any thread
            await asyncio.sleep(10 * POLL)
        self.below.wrote(row)
        await self.inner.update_checkpoint(row, **{"force": not self.forward_only} | kwargs)

    async def close(self) -> None:
        self.is_closed = True


class Kept(Client):
    """A coalescing store, called as its client calls it.

    Attributes:
        below: what it is over.
        errors: what `on_error` was given.
    """

    below: Below
    errors: list[tuple[str, Exception]]
    loop: Any
    is_aio: bool
    opening: ExitStack

    def stats(self, partition_id: str = "0") -> Any:
        return self.store.stats()[partition_id]

    def flush(self) -> bool:
        return bool(self.call("flush"))

    @staticmethod
    def seconds(call: Callable[[], object]) -> float:
        """How long a call takes."""
        began = time.monotonic()
        call()
        return round(time.monotonic() - began, DIGITS)

    def entered(self) -> None:
        """Wait until a write has begun."""
        waits = self.loop.eventually if self.is_aio else eventually
        waits(self.below.entered.is_set)

    def begin(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Begin a call beside the test; what has its result, and with asyncio can be cancelled."""
        method = getattr(self.store, name)
        if not self.is_aio:
            pool = self.opening.enter_context(ThreadPoolExecutor(1))
            return pool.submit(method, *args, **kwargs)
        begun = self.loop.begin(method(*args, **kwargs))
        self.loop.elapse(POLL)  # so that it is under way
        return begun


Make = Callable[..., Kept]


def opened(variant: str, loop: Any, opening: ExitStack) -> Make:
    def make(
        policy: Policy = NEVER,
        *,
        forward_only: bool = True,
        below: Below | None = None,
        **settings: Any,
    ) -> Kept:
        below = below or Below()
        below.gate.set()
        errors: list[tuple[str, Exception]] = []
        settings = {"on_error": lambda *error: errors.append(error)} | settings
        if variant == SIMULATED:
            under: Any = AioStore(below, forward_only)
            store: Any = aio.CoalescingCheckpointStore(under, policy, **settings)
        else:
            under = SyncStore(below, forward_only)
            store = CoalescingCheckpointStore(under, policy, **settings)
        kept = Kept(store, SCOPE, loop)
        kept.below, kept.errors, kept.loop = below, errors, loop
        kept.is_aio, kept.opening = variant == SIMULATED, opening
        opening.callback(kept.close)
        opening.callback(below.gate.set)
        return kept

    return make


@pytest.fixture(params=[SIMULATED, "sync"])
def variant(request: pytest.FixtureRequest) -> str:
    """No client takes part, so that the sync code takes no time either."""
    return request.param


@pytest.fixture
def make(variant: str, loop: Any) -> Iterator[Make]:
    """Makes coalescing stores of one variant, that write when they are told to."""
    with ExitStack() as opening:
        yield opened(variant, loop, opening)


@pytest.fixture
def make_aio() -> Iterator[Make]:
    """Makes coalescing stores for asyncio."""
    with simulation() as loop, ExitStack() as opening:
        yield opened(SIMULATED, loop, opening)


@pytest.fixture
def make_sync(real_loop: Loop) -> Iterator[Make]:
    """Makes coalescing stores without asyncio."""
    with ExitStack() as opening:
        yield opened("sync", real_loop, opening)


@pytest.fixture
def kept(make: Make) -> Kept:
    """A coalescing store that writes when it is told to."""
    return make()
