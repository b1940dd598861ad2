"""Interrupt every call of a store at every step, and check what it leaves behind.

    python tools/campaign.py cancel --backend sqlite    aio: the task is cancelled at a step
    python tools/campaign.py raise --backend sqlite     sync: an exception at a line of our files
    python tools/campaign.py signal --backend sqlite    sync: an exception from a signal handler

After each interruption, and without the garbage collector, the same store and another one must
serve the same partitions within a second: no lock, connection or transaction is left, the store's
state is correct, and what was not confirmed is not reported as won.
"""

import ast
import asyncio
import dis
import gc
import itertools
import random
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ClassVar, Self

import eventhub_checkpoints
from backends import Place, Variant
from eventhub_checkpoints import StaleCheckpointError
from eventhub_checkpoints.records import Scope

PACKAGE = str(Path(eventhub_checkpoints.__file__).parent)
PARTITIONS = [str(number) for number in range(4)]
NOP = dis.opmap["NOP"]
PATIENCE = 1.0
"""Seconds within which a call must find no lock; a lock left behind is never released.

A machine that is busy with other tests needs more.
"""
CHECKPOINT = 10
OPERATIONS = (
    "list_ownership",
    "claim",
    "claim one",
    "renew",
    "release",
    "list_checkpoints",
    "first checkpoint",
    "next checkpoint",
    "forced checkpoint",
    "verify",
    "list_scopes",
    "delete_scope",
    "replace_checkpoint",
    "first use",
)
CLAIMS = {"claim", "claim one", "renew"}
Row = dict[str, Any]
Interrupt = Callable[["Bench", Callable[[], Any], int], tuple[bool, Any]]
"""Makes a call and interrupts it at a step; returns whether it got there, and the result."""


class InterruptedCallError(Exception):
    """Exception of a time limit by signal, as Celery, RQ and Airflow raise them."""


class LeftBehindError(AssertionError):
    """Something was left behind by an interrupted call."""


class Bench:
    """Store to interrupt, neighbour that checks for locks, and calls, sync or aio."""

    def __init__(self, place: Place, variant: Variant, patience: float) -> None:
        self.variant = variant
        self._patience = patience
        self._runner = asyncio.Runner() if variant == "aio" else None
        self._open = partial(place.open, variant, on_stale="raise")
        self.store = self._open()
        limits = {"operation_timeout": patience, "write_timeout": patience}
        self.neighbour = place.open("sync", **limits)
        self.interruption: object = None
        self.scope = Scope("ns.servicebus.windows.net", "orders", "none")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.do("close")
        self.neighbour.close()
        if self._runner is not None:
            self._runner.close()

    @property
    def operations(self) -> list[str]:
        """Return the operations that the store supports."""
        return [name for name in OPERATIONS if "_" not in name or hasattr(self.store, name)]

    def finished(self, result: Any) -> Any:
        """Return the result of a call, awaiting it if needed."""
        return result if self._runner is None else self._runner.run(result)

    def do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method to its end."""
        return self.finished(getattr(self.store, name)(*args, **kwargs))

    def prepared(self, operation: str) -> Callable[[], Any]:
        """Return a call in a new consumer group, to be interrupted."""
        self.scope = self.scope._replace(consumer_group=uuid.uuid4().hex)
        if operation == "first use":
            self.do("close")
            self.store = self._open()
        elif operation not in {"claim", "claim one", "first checkpoint"}:
            rows = self.do("claim_ownership", self.proposals())
            self.do("list_checkpoints", *self.scope)
            self.do("update_checkpoint", self.checkpoint(CHECKPOINT))
        stored = self.checkpoint(CHECKPOINT)
        store, scope, claim = self.store, self.scope, self.store.claim_ownership
        update = store.update_checkpoint
        calls: dict[str, Callable[[], Any]] = {
            "list_ownership": lambda: store.list_ownership(*scope),
            "first use": lambda: store.list_ownership(*scope),
            "claim": lambda: claim(self.proposals()),
            "claim one": lambda: claim(self.proposals()[:1]),
            "renew": lambda: claim(rows),
            "release": lambda: claim([{**row, "owner_id": ""} for row in rows]),
            "list_checkpoints": lambda: store.list_checkpoints(*scope),
            "first checkpoint": lambda: update(self.checkpoint(CHECKPOINT)),
            "next checkpoint": lambda: update(self.checkpoint(CHECKPOINT + 1)),
            "forced checkpoint": lambda: update(self.checkpoint(CHECKPOINT - 5), force=True),
            "verify": lambda: store.verify(),
            "list_scopes": lambda: store.list_scopes(),
            "delete_scope": lambda: store.delete_scope(*scope),
            "replace_checkpoint": lambda: store.replace_checkpoint(
                self.checkpoint(CHECKPOINT - 5), stored
            ),
        }
        return calls[operation]

    def proposals(self, owner_id: str = "me", rows: Sequence[Row] = ()) -> list[Row]:
        """Return claims of every partition, over the rows that are stored."""
        etags = {row["partition_id"]: row["etag"] for row in rows}
        names = self.scope.as_dict()
        return [
            {**names, "partition_id": key, "owner_id": owner_id, "etag": etags.get(key)}
            for key in PARTITIONS
        ]

    def checkpoint(self, sequence_number: int) -> Row:
        """Return a checkpoint of the first partition."""
        position = {"sequence_number": sequence_number, "offset": str(1000 + sequence_number)}
        return {**self.scope.as_dict(), "partition_id": PARTITIONS[0], **position}

    def look(self, reported: Any) -> None:
        """Use the same partitions again, with the same store and with the neighbour.

        Args:
            reported: result of the interrupted call, if it has returned.

        Raises:
            LeftBehindError: the state is neither that before the call nor that after it.
        """
        if reported and "etag" in reported[0]:
            stored = {row["etag"] for row in self.neighbour.list_ownership(*self.scope)}
            require({row["etag"] for row in reported} <= stored, "reported as won what is lost")
        # A request that was sent before the interruption may still be executed now, and win.
        over = time.monotonic() + self._patience
        while not (mine := self._served()):
            require(time.monotonic() < over, "what the same store stores or claims is not there")
        with self._soon("claims and a checkpoint by a neighbour"):
            rows = self.neighbour.list_ownership(*self.scope)
            taken = self.neighbour.claim_ownership(self.proposals("neighbour", rows))
            self.neighbour.update_checkpoint(self.checkpoint(100), force=True)
        require(len(taken) == len(PARTITIONS), f"a neighbour won {len(taken)} partitions")
        with self._soon("a renewal of what a neighbour has"):
            require(not self.do("claim_ownership", mine), "reported as won what is a neighbour's")
        try:
            with self._soon("a checkpoint below a neighbour's"):
                self.do("update_checkpoint", self.checkpoint(50))
        except StaleCheckpointError:
            return
        raise LeftBehindError("a checkpoint below a neighbour's was not refused")

    def _served(self) -> list[Row]:
        """Store a checkpoint and claim every partition; return the claims if all is stored."""
        with self._soon("a checkpoint below an own one, by the same store"):
            # The store would refuse if it took its own earlier row for another writer's.
            self.do("update_checkpoint", self.checkpoint(1))
        with self._soon("claims by the same store"):
            listed = self.do("list_ownership", *self.scope)
            mine = self.do("claim_ownership", self.proposals("me", listed))
        return mine if self.position() == 1 and len(mine) == len(PARTITIONS) else []

    @contextmanager
    def _soon(self, what: str) -> Iterator[None]:
        """Require that something works at once.

        Raises:
            LeftBehindError: it raised, or took too long.
        """
        began = time.monotonic()
        try:
            yield
        except StaleCheckpointError:
            raise
        except Exception as error:
            raise LeftBehindError(f"{what}: {type(error).__name__}: {error}") from error
        if (took := time.monotonic() - began) > self._patience:
            raise LeftBehindError(f"{what} took {took:.1f} s")

    def position(self) -> object:
        """Return the stored sequence number of the first partition."""
        rows = {row["partition_id"]: row for row in self.neighbour.list_checkpoints(*self.scope)}
        return rows[PARTITIONS[0]]["sequence_number"] if PARTITIONS[0] in rows else None

    def forget(self) -> None:
        """Remove the group's rows, so that lists of scopes do not grow with every attempt."""
        if hasattr(self.neighbour, "delete_scope"):
            self.neighbour.delete_scope(*self.scope)


def method(operation: str) -> str:
    """Return the method that an operation of one word calls."""
    return {
        "claim": "claim_ownership",
        "renew": "claim_ownership",
        "release": "claim_ownership",
    }.get(operation, operation)


def require(holds: object, otherwise: str) -> None:
    """Raise `LeftBehindError` unless a condition holds."""
    if not holds:
        raise LeftBehindError(otherwise)


@contextmanager
def no_collector() -> Iterator[None]:
    """Disable the garbage collector, so that it does not tidy up."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def run_steps(
    place: Place,
    variant: Variant,
    interrupt: Interrupt,
    seed: int,
    *,
    stride: int = 1,
    patience: float = PATIENCE,
) -> Counter[str]:
    """Interrupt each operation at one step after another; return the steps, by operation.

    Args:
        place: place of the stores.
        variant: of the store that is interrupted: sync or aio.
        interrupt: makes a call, and interrupts it at a step.
        seed: chooses the steps, unless all are tried.
        stride: 1 tries every step; n tries one of n, chosen at random.
        patience: seconds that a later call may take.

    Raises:
        LeftBehindError: with the operation and the step.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with Bench(place, variant, patience) as bench:
        for operation in bench.operations:
            with no_collector():
                for step in steps(order, stride):
                    reached, reported = interrupt(bench, bench.prepared(operation), step)
                    try:
                        bench.look(reported if operation in CLAIMS else None)
                    except LeftBehindError as error:
                        what = f"{operation}, step {step}, {bench.interruption}"
                        raise LeftBehindError(f"{what}: {error}") from error
                    if not reached:
                        break
                    seen[operation] += 1
                    bench.forget()
    return seen


def steps(order: random.Random, stride: int) -> Iterator[int]:
    """Yield all steps from 1, or about one of `stride`."""
    step = 0
    while True:
        step += order.randint(1, 2 * stride - 1)
        yield step


class Stepping:
    """Counts the steps of every task, and cancels one task at a given step."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.target: asyncio.Task[Any] | None = None

    def count(self) -> None:
        """Count one step; the last one cancels."""
        self._left -= 1
        if self._left == 0 and self.target is not None:
            self.target.cancel()

    @property
    def has_cancelled(self) -> bool:
        """Return whether the step to cancel was reached."""
        return self._left <= 0

    async def counted(self, awaitable: Awaitable[Any]) -> Any:
        """Await an awaitable; each of its steps counts."""
        return await Counted(awaitable, self.count)

    def task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **kwargs: Any) -> Any:
        """Create a task whose steps count: a task factory."""
        return asyncio.Task(self.counted(coroutine), loop=loop, **kwargs)


class Counted:
    """Awaitable that reports each step before it waits."""

    def __init__(self, awaitable: Awaitable[Any], count: Callable[[], None]) -> None:
        self._awaitable = awaitable
        self._count = count

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        step, argument = steps.send, None
        while True:
            try:
                awaited = step(argument)
            except StopIteration as end:
                return end.value
            self._count()
            try:
                step, argument = steps.send, (yield awaited)
            except BaseException as error:
                step, argument = steps.throw, error


def cancelled(bench: Bench, call: Callable[[], Any], step: int) -> tuple[bool, Any]:
    """Cancel the call at a step of its task, or of one that it has started."""
    stepping = Stepping(step)

    async def called() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(stepping.task)
        try:
            stepping.target = loop.create_task(call())
            return await asyncio.gather(stepping.target, return_exceptions=True)
        finally:
            loop.set_task_factory(None)

    (result,) = bench.finished(called())
    return stepping.has_cancelled, None if isinstance(result, BaseException) else result


class Lines:
    """Raises at the k-th line of our own files that a signal handler could interrupt.

    Attributes:
        excluded: lines that were reached and skipped, with the reason.
    """

    excluded: ClassVar[dict[tuple[str, int], str]] = {}

    def __init__(self, step: int, error: type[BaseException]) -> None:
        self._left = step
        self._error = error

    @property
    def has_raised(self) -> bool:
        """Return whether the line to raise at was reached."""
        return self._left <= 0

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Follow the frames of our own files: a trace function."""
        if not frame.f_code.co_filename.startswith(PACKAGE) or self.has_raised:
            return None
        return self.line

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count one line; the last one raises."""
        if event != "line" or self.has_raised:
            return self.line
        if reason := excluded(frame):
            name = frame.f_code.co_filename.removeprefix(PACKAGE + "/")
            self.excluded[name, frame.f_lineno] = reason
            return self.line
        self._left -= 1
        if self._left == 0:
            file = frame.f_code.co_filename.removeprefix(PACKAGE)
            raise self._error(f"interrupted before line {frame.f_lineno} of {file}")
        return self.line


def excluded(frame: FrameType) -> str | None:
    """Return why a line is not interrupted; None if it is."""
    line = frame.f_lineno
    if line in cleanup_lines(frame.f_code.co_filename):
        return "cleanup: a finally block"
    if frame.f_code.co_code[frame.f_lasti] == NOP:
        # CPython 3.11 omits this instruction from the exception table, so an exception there would
        # not leave the `with` block around it; it does not check for signals there either.
        return "begins a try block: no signal handler runs there"
    begins = with_lines(frame.f_code).get(line)
    if begins is not None and frame.f_lasti > begins:
        # The interpreter handles signals after calls and jumps only; there is neither between the
        # last one inside the block and the call that leaves it.
        return "leaves a with block: no signal handler runs between its last step and its end"
    return None


@cache
def cleanup_lines(path: str) -> frozenset[int]:
    """Return the lines of a file's finally blocks."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try):
            for statement in node.finalbody:
                found.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return frozenset(found)


@cache
def with_lines(code: CodeType) -> dict[int, int]:
    """Return the lines with a `with`, and the offset in the code where its block begins."""
    found: dict[int, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None:
            line = instruction.starts_line
        if instruction.opname == "BEFORE_WITH":
            found[line] = max(found.get(line, 0), instruction.offset)
    return found


def raised_at(*errors: type[BaseException]) -> Interrupt:
    """Return a function that raises errors in turn at lines of calls, in the calling thread."""
    turn = itertools.cycle(errors)

    def interrupt(bench: Bench, call: Callable[[], Any], step: int) -> tuple[bool, Any]:
        error = next(turn)
        lines, before, result = Lines(step, error), sys.gettrace(), None
        sys.settrace(lines.trace)
        try:
            result = call()
        except BaseException as raised:
            if not isinstance(raised, Exception | error):
                raise
            bench.interruption = raised
        finally:
            sys.settrace(before)
        return lines.has_raised, result

    return interrupt


class Alarm:
    """Raises in the main thread after a time, by a signal, while it is armed."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._is_armed = False
        self.count = 0

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        # Python discards what is raised in a finalizer: the call would not be interrupted.
        if self._is_armed and (frame is None or frame.f_code.co_name != "__del__"):
            self._is_armed = False
            self.count += 1
            raise self._error("time limit")

    def interrupt(self, call: Callable[[], Any], seconds: float) -> None:
        """Make a call, and interrupt it after `seconds` if it is still running."""
        try:
            self._is_armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            call()
            self._is_armed = False
        except Exception as raised:
            if not isinstance(raised, self._error | eventhub_checkpoints.CheckpointStoreError):
                raise
        finally:
            self._is_armed = False


def run_signals(
    place: Place, seed: int, interrupted: int, patience: float = PATIENCE
) -> Counter[str]:
    """Interrupt this many calls by a signal, and check the state after each thousand.

    Raises:
        LeftBehindError: a later call does not work.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with Bench(place, "sync", patience) as bench, Alarm(InterruptedCallError) as alarm:
        calls = {
            "list_ownership": lambda: bench.store.list_ownership(*bench.scope),
            "list_checkpoints": lambda: bench.store.list_checkpoints(*bench.scope),
            "claim_ownership": lambda: bench.store.claim_ownership(bench.proposals()[:1]),
            "update_checkpoint": lambda: bench.store.update_checkpoint(bench.checkpoint(1)),
        }
        took = {name: timed(bench, call) for name, call in calls.items()}
        while alarm.count < interrupted:
            bench.prepared("claim")
            until = min(alarm.count + 1000, interrupted)
            while alarm.count < until:
                name = order.choice([*calls])
                before = alarm.count
                alarm.interrupt(calls[name], order.uniform(1e-6, took[name]))
                seen[name] += alarm.count - before
            bench.look(None)
    return seen


def timed(bench: Bench, call: Callable[[], Any]) -> float:
    """Return how many seconds a call takes the second time."""
    bench.prepared("claim")
    call()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
