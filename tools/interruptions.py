"""Interrupt every call of a store at every step, and look at what it leaves behind.

    python tools/campaign.py cancel --backend sqlite    aio: the task is cancelled at a step
    python tools/campaign.py raise --backend sqlite     sync: an exception at a line of our files
    python tools/campaign.py signal --backend sqlite    sync: an exception from a signal handler

After each interruption, and without the garbage collector, the same store and another one must
serve the same partitions within a second: no lock, connection or transaction is left, nothing that
the store remembers is wrong, and what was not confirmed is not reported as won.
"""

import ast
import asyncio
import dis
import gc
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
from backends import Colour, Place
from eventhub_checkpoints import StaleCheckpointError
from eventhub_checkpoints.records import Scope

PACKAGE = str(Path(eventhub_checkpoints.__file__).parent)
PARTITIONS = [str(number) for number in range(4)]
NOP = dis.opmap["NOP"]
PATIENCE = 1.0
"""Seconds in which a call must find no lock; one that was left stays for ever.

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
    "first use",
)
CLAIMS = {"claim", "claim one", "renew"}
Row = dict[str, Any]
Interrupt = Callable[["Bench", Callable[[], Any], int], tuple[bool, Any]]
"""Makes a call and interrupts it at a step; whether it came to that step, and its result."""


class InterruptedCallError(Exception):
    """What a time limit by signal raises: Celery's, RQ's and Airflow's are such exceptions."""


class LeftBehindError(AssertionError):
    """Something was left by a call that was interrupted."""


class Bench:
    """A store to interrupt, a neighbour that looks for locks, and the calls of one colour."""

    def __init__(self, place: Place, colour: Colour, patience: float) -> None:
        self.colour = colour
        self._patience = patience
        self._runner = asyncio.Runner() if colour == "aio" else None
        self._open = partial(place.open, colour, on_stale="raise")
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
        """Those that the store has."""
        return [name for name in OPERATIONS if "_" not in name or hasattr(self.store, name)]

    def finished(self, result: Any) -> Any:
        """The result of a call, in either colour."""
        return result if self._runner is None else self._runner.run(result)

    def do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method to its end."""
        return self.finished(getattr(self.store, name)(*args, **kwargs))

    def prepared(self, operation: str) -> Callable[[], Any]:
        """A call in a consumer group of its own, whose interruption is tried next."""
        self.scope = self.scope._replace(consumer_group=uuid.uuid4().hex)
        if operation == "first use":
            self.do("close")
            self.store = self._open()
        elif operation not in {"claim", "claim one", "first checkpoint"}:
            rows = self.do("claim_ownership", self.proposals())
            self.do("list_checkpoints", *self.scope)
            self.do("update_checkpoint", self.checkpoint(CHECKPOINT))
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
        }
        return calls[operation]

    def proposals(self, owner_id: str = "me", rows: Sequence[Row] = ()) -> list[Row]:
        """Claims of every partition, over the rows that are stored."""
        etags = {row["partition_id"]: row["etag"] for row in rows}
        names = self.scope.as_dict()
        return [
            {**names, "partition_id": key, "owner_id": owner_id, "etag": etags.get(key)}
            for key in PARTITIONS
        ]

    def checkpoint(self, sequence_number: int) -> Row:
        """A checkpoint of the first partition."""
        position = {"sequence_number": sequence_number, "offset": str(1000 + sequence_number)}
        return {**self.scope.as_dict(), "partition_id": PARTITIONS[0], **position}

    def look(self, reported: Any) -> None:
        """Use the same partitions again, with the same store and with the neighbour.

        Args:
            reported: what the interrupted call has returned, if it has.

        Raises:
            LeftBehindError: something is not as if the call had ended or never begun.
        """
        if reported and "etag" in reported[0]:
            stored = {row["etag"] for row in self.neighbour.list_ownership(*self.scope)}
            require({row["etag"] for row in reported} <= stored, "reported as won what is lost")
        # A request that was sent before the interruption may be carried out just now, and win.
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
            # A row of its own that it does not know any more would be another writer's, and refuse.
            self.do("update_checkpoint", self.checkpoint(1))
        with self._soon("claims by the same store"):
            listed = self.do("list_ownership", *self.scope)
            mine = self.do("claim_ownership", self.proposals("me", listed))
        return mine if self.position() == 1 and len(mine) == len(PARTITIONS) else []

    @contextmanager
    def _soon(self, what: str) -> Iterator[None]:
        """Require that something works at once.

        Raises:
            LeftBehindError: it raised, or took longer than its time.
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
        """The stored sequence number of the first partition."""
        rows = {row["partition_id"]: row for row in self.neighbour.list_checkpoints(*self.scope)}
        return rows[PARTITIONS[0]]["sequence_number"] if PARTITIONS[0] in rows else None

    def forget(self) -> None:
        """Remove the group's rows: a list of scopes must not grow with what was tried."""
        if hasattr(self.neighbour, "delete_scope"):
            self.neighbour.delete_scope(*self.scope)


def method(operation: str) -> str:
    """The method that an operation of one word calls."""
    return {
        "claim": "claim_ownership",
        "renew": "claim_ownership",
        "release": "claim_ownership",
    }.get(operation, operation)


def require(holds: object, otherwise: str) -> None:
    """Raise what was left behind, if it does not hold."""
    if not holds:
        raise LeftBehindError(otherwise)


@contextmanager
def no_collector() -> Iterator[None]:
    """Keep the garbage collector from tidying up."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def run_steps(
    place: Place,
    colour: Colour,
    interrupt: Interrupt,
    seed: int,
    *,
    stride: int = 1,
    patience: float = PATIENCE,
) -> Counter[str]:
    """Interrupt each operation at one step after another; how many steps, by operation.

    Args:
        place: where the stores are.
        colour: of the store that is interrupted.
        interrupt: makes a call, and interrupts it at a step.
        seed: of the steps that are tried, where not all are.
        stride: 1 tries every step; more tries one of so many, chosen at random.
        patience: seconds that a later call may take.

    Raises:
        LeftBehindError: with the operation and the step.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with Bench(place, colour, patience) as bench:
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
    """All steps from 1, or about one of `stride`."""
    step = 0
    while True:
        step += order.randint(1, 2 * stride - 1)
        yield step


class Stepping:
    """Counts the steps of every task, and cancels one of them at a step."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.target: asyncio.Task[Any] | None = None

    def count(self) -> None:
        """Count one step; the last cancels."""
        self._left -= 1
        if self._left == 0 and self.target is not None:
            self.target.cancel()

    @property
    def has_cancelled(self) -> bool:
        """Whether it came so far."""
        return self._left <= 0

    async def counted(self, awaitable: Awaitable[Any]) -> Any:
        """Await it; each of its steps counts."""
        return await Counted(awaitable, self.count)

    def task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **kwargs: Any) -> Any:
        """Make a task whose steps count: a task factory."""
        return asyncio.Task(self.counted(coroutine), loop=loop, **kwargs)


class Counted:
    """An awaitable that reports each step before it waits."""

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
        excluded: the lines that were met and left out, with the reason.
    """

    excluded: ClassVar[dict[tuple[str, int], str]] = {}

    def __init__(self, step: int, error: type[BaseException]) -> None:
        self._left = step
        self._error = error

    @property
    def has_raised(self) -> bool:
        """Whether it came so far."""
        return self._left <= 0

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Follow the frames of our own files: a trace function."""
        if not frame.f_code.co_filename.startswith(PACKAGE) or self.has_raised:
            return None
        return self.line

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count one line; the last raises."""
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
    """Why a line is not interrupted; None where it is."""
    line = frame.f_lineno
    if line in cleanup_lines(frame.f_code.co_filename):
        return "cleanup: a finally block"
    if frame.f_code.co_code[frame.f_lasti] == NOP:
        # CPython 3.11 leaves this instruction out of the exception table, so that a `with` around
        # it would not be left; it does not check for signals there either.
        return "begins a try block: no signal handler runs there"
    begins = with_lines(frame.f_code).get(line)
    if begins is not None and frame.f_lasti > begins:
        # The interpreter handles signals after calls and jumps only; there is neither between the
        # last one of the block, inside of it, and the call that leaves it.
        return "leaves a with block: no signal handler runs between its last step and its end"
    return None


@cache
def cleanup_lines(path: str) -> frozenset[int]:
    """The lines of a file's finally blocks."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try):
            for statement in node.finalbody:
                found.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return frozenset(found)


@cache
def with_lines(code: CodeType) -> dict[int, int]:
    """The lines with a `with`, and where in the code its block is entered."""
    found: dict[int, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None:
            line = instruction.starts_line
        if instruction.opname == "BEFORE_WITH":
            found[line] = max(found.get(line, 0), instruction.offset)
    return found


def raised_at(error: type[BaseException]) -> Interrupt:
    """What raises an error at a line of a call, in the thread that calls."""

    def interrupt(bench: Bench, call: Callable[[], Any], step: int) -> tuple[bool, Any]:
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
        if self._is_armed:
            self._is_armed = False
            self.count += 1
            raise self._error("time limit")

    def interrupt(self, call: Callable[[], Any], seconds: float) -> None:
        """Make a call, and interrupt it after so long if it still runs."""
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
    """Interrupt calls by a signal, so many times, and look after each thousand.

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
    """How long a call takes, in seconds, the second time."""
    bench.prepared("claim")
    call()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
