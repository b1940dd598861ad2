"""Threads that make the calls of others: above all those of the main thread.

Python runs signal handlers, which may raise, in the main thread, between any two steps of any code:
also between the acquisition of a lock and the `try` that releases it, in the queue of a driver's
connection pool and in `threading` itself. There, a time limit by signal (Celery, RQ, Airflow) or
Ctrl-C leaves the lock held, or a connection lost, for ever. So the main thread only waits, and the
call itself completes in a thread that no signal handler interrupts.

The main thread can be interrupted at every step here: each leaves a state that the next call can
use.
"""

import _thread
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MOST_WORKERS = 32
"""Maximum number of threads; more than one is used only while interrupted calls complete."""
RECHECK_SECONDS = 5.0


class Job:
    """One call and its outcome."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.is_wanted = True

    def run(self, ended: Callable[[], None]) -> None:
        """Run the call, unless its caller has stopped waiting."""
        result: Any = None
        error: BaseException | None = None
        if self.is_wanted:
            try:
                result = self._function()
            except BaseException as raised:
                error = raised
        ended()
        self._outcome.put((result, error))

    def result(self) -> Any:
        """Wait for the outcome, and return or raise it."""
        try:
            result, error = self._outcome.get()
            if error is not None:
                raise error
            return result
        finally:
            # The error refers to this frame: without this, only the garbage collector frees both.
            error = None


class Worker:
    """Thread that runs one call after another."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.is_idle = False

    def work(self, first: Job, others: list["Worker"]) -> None:
        """Register in `others`, and run calls for ever."""
        others.append(self)
        first.run(self._ended)
        del first
        while True:
            try:
                job = self.jobs.get(timeout=RECHECK_SECONDS)
            except Empty:
                # A caller chose this thread, but was interrupted before it submitted its job.
                self.is_idle = True
                continue
            self.is_idle = False
            job.run(self._ended)
            del job

    def _ended(self) -> None:
        self.is_idle = True


class Workers:
    """Runs calls of one thread in other threads.

    Attributes:
        process: identity of this process, another object in a forked child. A comparison costs
            less than `os.getpid`, which is a call of the kernel.
    """

    def __init__(self) -> None:
        self.forget()

    def call(self, function: Callable[[], T]) -> T:
        """Call the function in another thread and wait; call it here if none can be started."""
        job = Job(function)
        try:
            worker = self._chosen()
            if worker is not None:
                worker.jobs.put(job)
            else:
                try:
                    _thread.start_new_thread(Worker().work, (job, self._workers))
                except RuntimeError:  # at interpreter shutdown
                    return function()
            result: T = job.result()
            return result
        finally:
            job.is_wanted = False

    def _chosen(self) -> Worker | None:
        for worker in self._workers:
            if worker.is_idle:
                worker.is_idle = False
                return worker
        return random.choice(self._workers) if len(self._workers) >= MOST_WORKERS else None

    def forget(self) -> None:
        """Drop all threads: a forked process does not have the threads of its parent."""
        self._workers: list[Worker] = []
        self.process = object()


def in_daemon_thread(function: Callable[[], T]) -> Future[T]:
    """Start a call in a thread of its own, which does not delay the end of the process."""
    outcome: Future[T] = Future()
    # From now on, a caller that stops waiting does not cancel it.
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=run, daemon=True).start()
    return outcome


workers = Workers()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=workers.forget)
