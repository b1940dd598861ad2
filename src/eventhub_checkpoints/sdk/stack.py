"""The client's loops and handlers, found on the stack: a handler is not passed its client.

Source: azure-eventhub 5.12.0 and 5.15.1, `_eventprocessor/event_processor.py` and its aio twin.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

LOOP_PACKAGES = "azure.eventhub._eventprocessor", "azure.eventhub.aio._eventprocessor"
"""Packages of the client's loops that call handlers and the store."""

try:
    from azure.eventhub._eventprocessor.event_processor import EventProcessor

    RECEIVING: object = EventProcessor.start.__code__
except (ImportError, AttributeError):
    RECEIVING = None


def is_called_by_loop_of(package: str) -> bool:
    """Return whether the function that calls this one was called by a loop of the client.

    Args:
        package: `azure.eventhub` or `azure.eventhub.aio`.
    """
    module = sys._getframe(2).f_globals.get("__name__", "")
    return bool(module.startswith(f"{package}._eventprocessor."))


def is_client_closed() -> bool:
    """Return whether this thread runs a callback of a sync client that has been closed since.

    Closing a sync client neither interrupts nor notifies a handler. False for an aio client, which
    cancels its handlers, and where the state cannot be determined.
    """
    for frame in frames_from(inspect.currentframe()):
        if frame.f_code is RECEIVING:
            return not getattr(frame.f_locals.get("self"), "_running", True)
    return False


def calling_loop() -> Any:
    """Return the loop of a client that calls the handler that runs here; None: it is not known."""
    for frame in frames_from(inspect.currentframe()):
        if is_of_loop(frame):
            return frame.f_locals.get("self")
    return None


def running_handler(context: object, *, in_threads: bool) -> str | None:
    """Return where the client's handler of a partition is; None: the client calls none.

    Args:
        context: the client's context of the partition.
        in_threads: look at threads, not at the tasks of the current event loop.
    """
    stacks: Iterable[list[FrameType]]
    if in_threads:
        stacks = ([*frames_from(innermost)][::-1] for innermost in sys._current_frames().values())
    else:
        import asyncio

        stacks = ([*frames_of(task)] for task in asyncio.all_tasks())
    for frames in stacks:
        if any(handled_context(frame) is context for frame in frames):
            return line_of(frames[-1])
    return None


def awaits(task: "asyncio.Task[Any]", function: Callable[..., Awaitable[object]]) -> bool:
    """Return whether a task awaits a call of a coroutine function, not through another task."""
    code = getattr(function, "__code__", None)
    return any(frame.f_code is code for frame in frames_of(task))


def is_between_rounds(task: "asyncio.Task[Any]") -> bool:
    """Return whether a client's task sleeps between two rounds of load balancing."""
    import asyncio

    *_, caller, innermost = (None, None, *frames_of(task))
    return (
        caller is not None
        and innermost is not None
        and innermost.f_code is asyncio.sleep.__code__
        and is_of_loop(caller)
        and caller.f_code.co_name == "start"
    )


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, and those that wait for it, outwards."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frames_of(task: "asyncio.Task[Any]") -> Iterator[FrameType]:
    """Yield the frames in which a task waits, from its first coroutine on."""
    awaited: Any = task.get_coro()
    while inspect.iscoroutine(awaited) and awaited.cr_frame is not None:
        yield awaited.cr_frame
        awaited = awaited.cr_await


def is_of_loop(frame: FrameType) -> bool:
    """Return whether a frame is one of the client's loop that receives and calls handlers."""
    module = frame.f_globals.get("__name__", "")
    return bool(module.startswith(LOOP_PACKAGES) and module.endswith(".event_processor"))


def handled_context(frame: FrameType) -> Any:
    """Return the partition context whose handler a frame of the client calls; None: it does not."""
    if frame.f_code.co_name != "_on_event_received" or not is_of_loop(frame):
        return None
    return frame.f_locals.get("partition_context")


def line_of_thread(ident: int | None) -> str | None:
    """Return the line that a thread has reached; None: it has ended."""
    frame = sys._current_frames().get(ident or 0)
    return None if frame is None else line_of(frame)


def line_of(frame: FrameType) -> str:
    """Return the file, line and function of a frame, for messages."""
    code = frame.f_code
    return f"{code.co_filename}, line {frame.f_lineno}, in {code.co_qualname}"
