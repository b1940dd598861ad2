"""The store that the mutants are made of: sound, and with all that the checks can ask for."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Timer
from typing import Any, TypeVar

from eventhub_checkpoints._shared.deadline import LONGEST_SECONDS, seconds_left
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._sync.checkpoints import Checkpoints
from eventhub_checkpoints.stores._sync.ownership import Ownerships
from eventhub_checkpoints.stores._sync.runner import HookRunner
from eventhub_checkpoints.stores.memory.rows import MemoryRows

Made = TypeVar("Made", bound="type[Sound]")


class StallingRows(MemoryRows):
    """Rows that can be silent for a while."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = Event()
        self._answers.set()
        self._ending: Timer | None = None

    def stall(self, seconds: float) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._answers.set()
        if seconds:
            self._answers.clear()
            self._ending = Timer(seconds, self._answers.set)
            self._ending.start()

    def answer(self) -> None:
        """Wait like a driver: for the answer, or until the time that is left is over."""
        if not self._answers.wait(min(seconds_left(), LONGEST_SECONDS)):
            raise TimeoutError("the rows are silent")

    def shift(self, seconds: float) -> None:
        self.clock_shift = seconds

    def accessors(self) -> Accessors:
        return Accessors(put_raw=self.put_raw, stall=self.stall, shift_clock=self.shift)

    def raw(self, kind: Any, scope: Scope) -> Iterator[tuple[str, Any]]:
        """The rows as they are."""
        yield from list(self._table(kind, scope).items())


class Sound(MemoryCheckpointStore):
    """A memory store without a fault; a mutant is a subclass with one.

    Attributes:
        rows_class, Runner, Ownerships, Checkpoints: rows and parts of the engine, for mutants that
            have others.
    """

    rows: StallingRows
    rows_class: type[StallingRows] = StallingRows
    Runner: type[HookRunner] = HookRunner
    Ownerships: type[Ownerships] = Ownerships
    Checkpoints: type[Checkpoints] = Checkpoints

    def __init_subclass__(cls) -> None:
        """Let mutants redefine what stores must not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        engine = self._engine
        engine.runner = self.Runner(self, self.settings)
        engine.ownerships = self.Ownerships(engine.runner)
        engine.checkpoints = self.Checkpoints(engine.runner)

    def read_ownerships(self, scope: Any) -> Any:
        self.rows.answer()
        return super().read_ownerships(scope)

    def try_claim(self, proposal: Any) -> Any:
        self.rows.answer()
        return super().try_claim(proposal)

    def read_checkpoints(self, scope: Any) -> Any:
        self.rows.answer()
        return super().read_checkpoints(scope)

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.rows.answer()
        return super().write_checkpoint(checkpoint, seen)

    def stored(self, proposal: Any) -> Any:
        """The ownership that is stored now; None if there is none."""
        return next(
            (
                row
                for row in self.rows.ownerships(proposal.scope).rows
                if row.partition_id == proposal.partition_id
            ),
            None,
        )

    def stored_checkpoint(self, record: Checkpoint) -> Checkpoint | None:
        """The checkpoint that is stored now; None if there is none."""
        return next(
            (
                row
                for row in self.rows.checkpoints(record.scope).rows
                if row.partition_id == record.partition_id
            ),
            None,
        )


IS_RACER: ContextVar[bool] = ContextVar("is_racer", default=False)
"""Whether the call is one of several at the same moment: a thread made it that made no rows."""


class RacedRows(StallingRows):
    """Rows at which racers meet, so that each race shows a fault, however they are scheduled."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()
        self._guard = threading.Lock()
        self._arrived: Counter[object] = Counter()
        self._events: defaultdict[object, Event] = defaultdict(Event)

    def meet(self, key: object, count: int) -> None:
        """Wait until `count` racers have come to this point."""
        if not IS_RACER.get():
            return
        with self._guard:
            self._arrived[key] += 1
            if self._arrived[key] >= count:
                self._events[key].set()
        self.await_event(key)

    def await_event(self, key: object) -> None:
        with self._guard:
            event = self._events[key]
        if not event.wait(LONGEST_SECONDS):
            raise TimeoutError(f"nobody else came to {key}")

    def set_event(self, key: object) -> None:
        with self._guard:
            self._events[key].set()


class Raced(Sound):
    """Knows whether it is called in a race, in which its racers meet."""

    rows: RacedRows
    rows_class = RacedRows

    def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        with self.as_racer():
            return super().claim_ownership(*args, **kwargs)

    def update_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        with self.as_racer():
            return super().update_checkpoint(*args, **kwargs)

    @contextmanager
    def as_racer(self) -> Iterator[None]:
        # The call itself may run in another thread, with a copy of this context.
        token = IS_RACER.set(threading.get_ident() != self.rows.thread)
        try:
            yield
        finally:
            IS_RACER.reset(token)


MUTANTS: dict[type[Sound], tuple[str, ...]] = {}
"""Each mutant, and the checks that name its fault."""


def mutant(*caught_by: str) -> Callable[[Made], Made]:
    """A store with one fault, and the checks that must catch it."""

    def listed(made: Made) -> Made:
        MUTANTS[made] = caught_by
        return made

    return listed
