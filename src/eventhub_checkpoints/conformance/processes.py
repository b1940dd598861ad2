"""Processes that race for one backend, each with a store object from the same factory.

Threads cannot show that a claim has one winner: a lock in memory guards all threads, but no other
process. The processes are spawned, not forked, so they share nothing but the backend.

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import logging
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.conformance.contract import NotRaced
from eventhub_checkpoints.conformance.pauses import HookCall, Line, Pause, Tracer
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope

Item = TypeVar("Item")
Result = TypeVar("Result")
Racing = Callable[[Client, float], Result]
"""Part of one process in a race; takes its client and the time (`time.time()`) of the start."""
Call = tuple[str, Sequence[Any], Line | None]
"""Name of a hook, its arguments, and the line at which it pauses."""

RACERS = 2
START_SECONDS = 120.0
"""Time to start the interpreters, import the factory, open the stores and list once."""
RACE_SECONDS = 120.0
STOP_SECONDS = 5.0
HEADWAY = 0.02
"""Seconds between the request to race and the start."""
SLOT = 0.002
"""Seconds between two starts of one race."""
SPIN = 0.001


def in_step(start: float, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items one per time slot, at the same moments in all processes.

    The end of each wait is a busy loop, because a sleep ends later than a racing call takes.
    """
    for number, item in enumerate(items):
        moment = start + number * SLOT
        time.sleep(max(0.0, moment - SPIN - time.time()))
        while time.time() < moment:
            pass
        yield item


class Racers:
    """Processes that race for the backend of a factory; started on first use.

    Args:
        make_store: makes a store object; must be picklable, because each process unpickles it.
    """

    def __init__(self, make_store: Callable[[], Any]) -> None:
        if getattr(current_process(), "_inheriting", False):
            # Racing processes import the main module, which has started to certify again here.
            raise ConfigurationError(
                "the main module certifies a store when it is imported, and the processes that "
                "race import it; put the call under `if __name__ == '__main__':`"
            )
        self._make_store = make_store
        self._racers: list[tuple[BaseProcess, Connection]] = []
        self._failure: NotRaced | None = None

    def start(self) -> None:
        """Start the processes, unless they are running.

        Raises:
            NotRaced: they cannot open a store; the message has the reason.
        """
        if self._failure is None and not self._racers:
            try:
                self._start()
            except NotRaced as failure:
                self.stop()
                self._failure = failure
        if self._failure is not None:
            raise self._failure

    def _start(self) -> None:
        try:
            pickled = bytes(ForkingPickler.dumps(self._make_store))
        except Exception as error:
            raise NotRaced(
                f"the factory cannot be passed to another process ({in_one_line(error)}); make it "
                "a function of a module, a class, or a functools.partial of one"
            ) from None
        for _ in range(RACERS):
            self._racers.append(started(pickled))
        end = time.monotonic() + START_SECONDS
        for racer in self._racers:
            try:
                answer_of(racer, end, START_SECONDS)
            except AssertionError as error:
                raise NotRaced(f"another process could not open the store: {error}") from None

    def race(self, racing: Sequence[Racing[Result]], scope: Scope) -> list[Result]:
        """Run one part in each process, all from the same moment, and return the results.

        Raises:
            AssertionError: a process failed, exited, or took too long.
        """
        start, end = time.time() + HEADWAY, time.monotonic() + RACE_SECONDS
        try:
            for (_, pipe), part in zip(self._racers, racing, strict=True):
                pipe.send((part, scope, start))
            return [answer_of(racer, end, RACE_SECONDS) for racer in self._racers]
        except BaseException:
            # The pending results of the other processes would be taken for those of the next race.
            self.stop()
            raise

    def call_during_pause(
        self, paused: Call, other: Call, scope: Scope, seconds: float
    ) -> list[HookCall]:
        """Call a hook in one process, and during its pause a hook in another; return both results.

        The pause ends with the other call, or after `seconds`: the other may wait for the first.

        Raises:
            AssertionError: a process failed, exited, or took too long.
        """
        first, second = self._racers
        end = time.monotonic() + RACE_SECONDS
        try:
            first[1].send((paused, scope, 0.0))
            result = answer_of(first, end, RACE_SECONDS)
            second[1].send((other, scope, 0.0))
            if result is Pause.BEGUN:
                second[1].poll(seconds)
                first[1].send(None)
                result = answer_of(first, end, RACE_SECONDS)
            return [result, answer_of(second, end, RACE_SECONDS)]
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the processes; kill those that do not exit soon."""
        racers, self._racers = self._racers, []
        for _, pipe in racers:
            pipe.close()
        end = time.monotonic() + STOP_SECONDS
        for process, _ in racers:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


def answer_of(racer: tuple[BaseProcess, Connection], end: float, seconds: float) -> Any:
    """Return the answer of a process, which must come by `end`, within `seconds` of the request."""
    process, pipe = racer
    assert pipe.poll(max(0.0, end - time.monotonic())), f"no answer within {seconds:g} s"
    try:
        failure, result = pipe.recv()
    except (EOFError, OSError):
        process.join(max(0.0, end - time.monotonic()))
        raise AssertionError(
            f"a process ended with exit code {process.exitcode} instead of answering"
        ) from None
    assert failure is None, failure
    return result


def started(pickled: bytes) -> tuple[BaseProcess, Connection]:
    """Start a process that opens a store; return it and the pipe to it."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    try:
        process = context.Process(target=serve, args=(pickled, theirs), name="racer", daemon=True)
        process.start()
    except Exception as error:
        ours.close()
        raise NotRaced(f"no process could be started ({in_one_line(error)})") from error
    finally:
        # With a copy left open here, the exit of the process would not close the pipe.
        theirs.close()
    return process, ours


def serve(pickled: bytes, pipe: Connection) -> None:
    """Open a store and run the requested races, until the other end of the pipe is closed."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops this process
    logging.basicConfig(handlers=[logging.NullHandler()])
    tracer = Tracer(pipe)
    tracer.install()
    with suppress(EOFError, OSError), Loop() as loop:
        try:
            client = Client(loop.finished(pickle.loads(pickled)()), Scope("-", "-", "-"), loop)
            client.list_ownership()
        except Exception as error:
            pipe.send((in_one_line(error), None))
            return
        try:
            pipe.send((None, None))
            while True:
                part, scope, start = pipe.recv()
                answer: tuple[str | None, Any]
                try:
                    racer = client.within(scope)
                    is_call = isinstance(part, tuple)
                    answer = None, tracer.call(racer, *part) if is_call else part(racer, start)
                except Exception as error:
                    answer = in_one_line(error), None
                pipe.send(answer)
        finally:
            client.close()


def end_with_parent() -> None:
    """Exit at once when the parent process has exited, whatever is pending."""
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def in_one_line(error: Exception) -> str:
    """Return an error's type and message."""
    return " ".join(described(error).split())
