"""What the author of a store may give, so that more can be shown than a black box shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows


class PutRaw(Protocol):
    """Leave a row as a stranger would, past the store; None in place of fields removes it.

    `fields` are `ownerid`, or `offset` and `sequencenumber`, or whatever another writer stores.
    """

    def __call__(
        self,
        kind: Literal["ownership", "checkpoint"],
        scope: Scope,
        partition_id: str,
        fields: Mapping[str, str | None] | None,
        /,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Accessors:
    """Ways past the store to its backend; each one is optional and a plain function.

    Attributes:
        put_raw: see `PutRaw`.
        stall: `stall(seconds)` returns at once; for so long from now the backend answers nothing.
            `stall(0)` ends it.
        shift_clock: `shift_clock(seconds)` sets how far the backend's clock is ahead.
        settle: returns when everything written so far can be read; called before each list.
    """

    put_raw: PutRaw | None = None
    stall: Callable[[float], None] | None = None
    shift_clock: Callable[[float], None] | None = None
    settle: Callable[[], None] | None = None

    @property
    def given(self) -> frozenset[str]:
        """The names of those that are there."""
        return frozenset(one.name for one in fields(self) if getattr(self, one.name) is not None)


NOTHING = Accessors()

Given = Accessors | Callable[[Any], Accessors] | None
"""What an author may give: accessors, or a function that is given a store and makes them."""


def made(given: Given, store: Any) -> Accessors:
    """The accessors for a store: those that were given, or those that it offers itself."""
    if given is None:
        return accessors_of(store)
    return given if isinstance(given, Accessors) else given(store)


def accessors_of(store: Any) -> Accessors:
    """What a store offers by itself: by a method `conformance_accessors`, if it has one."""
    if isinstance(store, (MemoryCheckpointStore, AioMemoryCheckpointStore)):
        return of_memory(store.rows)
    offered = getattr(store, "conformance_accessors", None)
    return offered() if callable(offered) else NOTHING


def of_memory(rows: MemoryRows) -> Accessors:
    """The rows of memory stores can be written and their clock moved; they never stall."""

    def shift_clock(seconds: float) -> None:
        rows.clock_shift = seconds

    return Accessors(put_raw=rows.put_raw, shift_clock=shift_clock)
