"""Checks of the contract, and accessors with which authors of stores enable more checks."""

import unittest
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from eventhub_checkpoints._shared.settings import require
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope

if TYPE_CHECKING:
    from eventhub_checkpoints.conformance.harness import Subject

GUARANTEES = {
    "G1": "one winner",
    "G2": "no invented ownership",
    "G3": "no checkpoint goes back",
    "G4": "saved never passes processed",
    "G5": "one bad record harms nobody",
    "G6": "clock skew causes no takeover",
    "G7": "the same bytes",
    "G8": "release is calm",
    "G9": "nothing shared",
    "G10": "bounded",
    "G11": "a good guest",
}
"""Number and short name, as in `docs/reference/guarantees.md`."""

LEVELS = {
    1: "black box",
    2: "our base class, with faults between it and the hooks",
    3: "what only the store's author can cause",
}
BASE = "base"
"""Need of a check that applies only to a store on this package's base class."""
PROCESSES = "processes"
"""Need of a check that races processes; without it a store is not certified."""
ONE_PROCESS = "the store declares that it is for one process"
"""Reason why processes cannot race a store that has `for_one_process`."""
NOT_ON_BASE = "the store is not on our base class"
"""Reason why a check does not apply to a store without hooks."""


class NotShown(unittest.SkipTest):
    """Raised if a check does not apply to this store; unittest and pytest report a skip."""


class NotRaced(NotShown):
    """Raised if processes cannot race a store that does not declare `for_one_process`."""


@dataclass(frozen=True, slots=True)
class Check:
    """Sentence of the contract, and the function that verifies it.

    Attributes:
        name: the function's name, which states the property.
        guarantees: numbers of its guarantees; reports list it under the first one.
        habits: client behaviour that it follows from, as numbered in the guarantees' page.
        needs: what it requires to run: `"base"`, `"processes"`, or names of accessors.
        sentence: the sentence of the contract.
        waits: whether it waits for the time limit of a call that hangs, and disturbs no other check
            that does.
    """

    name: str
    guarantees: tuple[str, ...]
    habits: tuple[str, ...]
    needs: tuple[str, ...]
    sentence: str
    function: Callable[["Subject"], None]
    waits: bool = False

    @property
    def level(self) -> int:
        """Return the level of the check, a key of `LEVELS`."""
        if set(self.needs) - {BASE, PROCESSES}:
            return 3
        return 2 if BASE in self.needs else 1


CHECKS: list[Check] = []
"""Every check, in the order of the contract."""


def check(
    *tags: str, needs: tuple[str, ...] = (), waits: bool = False
) -> Callable[..., Callable[["Subject"], None]]:
    """Register a function as a check; its docstring is the sentence of the contract.

    Args:
        *tags: `G1` to `G11`, and `P1` to `P24` for the client's behaviour.
        needs: see `Check`.
        waits: see `Check`.
    """

    def registered(function: Callable[["Subject"], None]) -> Callable[["Subject"], None]:
        CHECKS.append(
            Check(
                function.__name__,
                tuple(tag for tag in tags if tag in GUARANTEES),
                tuple(tag for tag in tags if tag not in GUARANTEES),
                needs,
                " ".join((function.__doc__ or "").split()),
                function,
                waits,
            )
        )
        return function

    return registered


class PutRaw(Protocol):
    """Write a row directly to the backend, as another program would; None as fields removes it.

    `fields` has `ownerid`, or `offset` and `sequencenumber`, or any fields of another writer.
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
    """Functions that access a store's backend directly; each is optional and synchronous.

    Attributes:
        put_raw: see `PutRaw`.
        stall: `stall(seconds)` returns at once; the backend then does not respond for this many
            seconds. `stall(0)` ends it.
        shift_clock: `shift_clock(seconds)` sets how far the backend's clock is ahead.
        settle: returns when all completed writes can be read; called before each list.
    """

    put_raw: PutRaw | None = None
    stall: Callable[[float], None] | None = None
    shift_clock: Callable[[float], None] | None = None
    settle: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        for name in self.names:
            accessor = getattr(self, name)
            require(name, accessor, callable(accessor), "a function, or None")

    @property
    def names(self) -> frozenset[str]:
        """Names of the accessors that are set."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name) is not None)


AccessorsArgument = Accessors | Callable[[Any], Accessors] | None
"""Accessors, or a function that returns the accessors of a store."""


def accessors_for(store: Any, argument: AccessorsArgument) -> Accessors:
    """Return the accessors that were passed for a store, or else the store's own."""
    if isinstance(argument, Accessors):
        return argument
    if argument is not None:
        return argument(store)
    if isinstance(store, (MemoryCheckpointStore, AioMemoryCheckpointStore)):
        return Accessors(
            store.rows.put_raw, shift_clock=partial(setattr, store.rows, "clock_shift")
        )
    own = getattr(store, "conformance_accessors", None)
    return own() if callable(own) else Accessors()
