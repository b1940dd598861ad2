"""Pauses of a process at a line of a hook, while another process calls the same hook.

Whether two calls of a race overlap is left to chance: a store that reads a row and then writes it
passes many races. A trace function, as debuggers use it, pauses a call between any two lines.
"""

import inspect
import os
import sys
import threading
import time
from collections.abc import Sequence
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple

from eventhub_checkpoints.aio.base import BaseCheckpointStore as AioBaseCheckpointStore
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.conformance.clients import Client

Line = tuple[str, int]
"""File, and number of a line."""


class Pause(Enum):
    """What a process sends instead of an answer when it pauses; it goes on after any message."""

    BEGUN = "begun"


class HookCall(NamedTuple):
    """How a call of a hook ended.

    Attributes:
        answer: what it returned, or the error that it raised.
        lines: the lines of the store's own code that it executed, each once.
        seconds: how long it took.
    """

    answer: Any
    lines: Sequence[Line]
    seconds: float


class Tracer:
    """Trace function of all threads of a process, which pauses one of them at a line.

    Args:
        pipe: to the parent process, which ends the pause.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._folders: tuple[str, ...] = ()
        self._lines: dict[Line, None] = {}
        self._point: Line | None = None

    def install(self) -> None:
        """Trace the threads that are started from now on; while no hook is called, no line."""
        threading.settrace(self._called)

    def call(self, client: Client, hook: str, arguments: Sequence[Any], point: Line | None) -> Any:
        """Call a hook of a store, and pause where it executes the line `point` first."""
        self._lines, self._point = {}, point
        self._folders = folders_of(type(client.store))
        before = sys.gettrace()
        sys.settrace(self._called)
        start = time.monotonic()
        try:
            answer = client.call(hook, *arguments)
        except Exception as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}")  # can be pickled
        finally:
            sys.settrace(before)
            self._folders = ()
        return HookCall(answer, [*self._lines], time.monotonic() - start)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._stepped if frame.f_code.co_filename.startswith(self._folders) else None

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and self._folders:
            line = frame.f_code.co_filename, frame.f_lineno
            self._lines[line] = None
            if line == self._point:
                self._point = None
                self._pipe.send((None, Pause.BEGUN))
                self._pipe.recv()
        return self._stepped


def folders_of(kind: type) -> tuple[str, ...]:
    """Return the folders of the files that define a store, without this package's base class."""
    bases = {*BaseCheckpointStore.__mro__, *AioBaseCheckpointStore.__mro__}
    functions = [
        inspect.unwrap(value)  # of a decorator, which may be defined anywhere
        for each in kind.__mro__
        if each not in bases
        for value in vars(each).values()
        if isinstance(value, FunctionType)
    ]
    folders = {Path(function.__code__.co_filename).parent for function in functions}
    return tuple(f"{folder}{os.sep}" for folder in folders)
