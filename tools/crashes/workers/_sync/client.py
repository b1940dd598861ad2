# Not derived: threads and a pool do here what tasks do there.
"""What a worker does by means of threads: its pool, its sessions, and its client."""

import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from azure.eventhub import (
    CheckpointStore,
    CloseReason,
    EventHubConsumerClient,
    PartitionContext,
)
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from crashes.workers.diary import Claim, Diary
from crashes.workers.orders import CLIENT, THREADS, TURN_SECONDS, Orders

OfficialStore = BlobCheckpointStore
OF_PROCESSORS: Mapping[str, Any] = {"max_wait_time": 0.05}


class Tasks(ThreadPoolExecutor):
    """Events that are finished beside their handlers; leaving the block waits for them."""

    def __init__(self) -> None:
        super().__init__(THREADS)

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a function."""
        self.submit(function, *arguments)


def begin(diary: Diary, partition_id: str) -> None:
    """Begin a session, which the client announces."""
    diary.open(partition_id, announces=True)


def session_here(diary: Diary, partition_id: str) -> Claim:
    """Return the session of a partition; the client may deliver events before it announces it."""
    return diary.open(partition_id, announces=False)


def client_of(orders: Orders, checkpoint_store: CheckpointStore) -> EventHubConsumerClient:
    """Return a client that balances its load often."""
    return EventHubConsumerClient.from_connection_string(
        orders.connection, "$Default", checkpoint_store=checkpoint_store, **CLIENT
    )


def receive_until_told(
    orders: Orders,
    store: CheckpointStore,
    on_event: Callable[[PartitionContext, Any], None],
    on_initialize: Callable[[PartitionContext], None],
    on_close: Callable[[PartitionContext, CloseReason], None],
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
    run_until_told(receive, client.close)


def run_until_told(function: Callable[[], None], stop: Callable[[], None]) -> None:
    """Run a function, which another one stops on SIGTERM."""
    is_told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_told.set())
    running = threading.Thread(target=function)
    running.start()
    # The kernel may give the signal to another thread, which does not wake this one.
    while not is_told.wait(TURN_SECONDS):
        pass
    while running.is_alive():
        # Repeated: a close before the client begins to receive has no effect.
        stop()
        running.join(TURN_SECONDS)
