"""What a worker does by means of asyncio: its tasks, its sessions, and its client."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Self

from azure.eventhub import CloseReason
from azure.eventhub.aio import CheckpointStore, EventHubConsumerClient, PartitionContext
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

from crashes.workers.diary import Claim, Diary
from crashes.workers.orders import CLIENT, TURN_SECONDS, Orders

OfficialStore = BlobCheckpointStore
OF_PROCESSORS: Mapping[str, Any] = {}
CLAIM_HERE: ContextVar[Claim] = ContextVar("claim")
"""A handler may still be running when its partition was lost and claimed again."""


class Tasks:
    """Events that are finished beside their handlers; leaving the block waits for them."""

    async def __aenter__(self) -> Self:
        self._group = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._group.__aexit__(*error)

    async def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a function."""
        self._group.create_task(function(*arguments))


def begin(diary: Diary, partition_id: str) -> None:
    """Begin a session, which the client announces."""
    CLAIM_HERE.set(diary.open(partition_id, announces=True))


def session_here(diary: Diary, partition_id: str) -> Claim:
    """Return the session of the handler that is running."""
    return CLAIM_HERE.get()


def client_of(orders: Orders, checkpoint_store: CheckpointStore) -> EventHubConsumerClient:
    """Return a client that balances its load often."""
    return EventHubConsumerClient.from_connection_string(
        orders.connection, "$Default", checkpoint_store=checkpoint_store, **CLIENT
    )


def show_tasks(*_: object) -> None:
    """Handle a signal: write to stderr where each task waits.

    `Task.print_stack` shows only the outermost coroutine of a task.
    """
    for task in asyncio.all_tasks():
        print(task, file=sys.stderr)
        waiting: Any = task.get_coro()
        while frame := getattr(waiting, "cr_frame", None):
            print(f"  {frame.f_code.co_filename}:{frame.f_lineno} {waiting!r}", file=sys.stderr)
            waiting = waiting.cr_await


async def receive_until_told(
    orders: Orders,
    store: CheckpointStore,
    on_event: Callable[[PartitionContext, Any], Awaitable[None]],
    on_initialize: Callable[[PartitionContext], Awaitable[None]],
    on_close: Callable[[PartitionContext, CloseReason], Awaitable[None]],
) -> None:
    """Receive until SIGTERM."""
    client = client_of(orders, store)
    receive = partial(
        client.receive,
        on_event,
        on_partition_initialize=on_initialize,
        on_partition_close=on_close,
        starting_position="-1",
    )
    await run_until_told(receive, client.close)


async def run_until_told(
    function: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], Awaitable[None]]
) -> None:
    """Run a function, which another one stops on SIGTERM."""
    is_told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_told.set)
    running = asyncio.create_task(function())
    await is_told.wait()
    while not running.done():
        # Repeated: a close before the client begins to receive has no effect. It is not cancelled,
        # as before Python 3.12 `asyncio.wait_for` may lose that, and the client uses it.
        await stop()
        await asyncio.wait([running], timeout=TURN_SECONDS)
