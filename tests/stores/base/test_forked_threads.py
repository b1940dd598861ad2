"""Threads of a forked child that use a store while one of them replaces its connections."""

import os
import signal
import threading

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Seen, Written
from waiting import LIMIT, let_pass

pytestmark = pytest.mark.long  # others must come while one drops it, which only time lets them
CHECKPOINT = {
    **Scope("ns.servicebus.windows.net", "orders", "$Default").as_dict(),
    "partition_id": "0",
    "offset": "1",
    "sequence_number": 1,
}


class SlowToDrop(MemoryCheckpointStore):
    """Has a connection from its making on, and takes a while to replace it."""

    SECONDS = 0.2

    def __init__(self) -> None:
        super().__init__()
        self.connected_in = os.getpid()

    def drop_connections(self) -> None:
        let_pass(self.SECONDS)
        self.connected_in = os.getpid()

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        assert self.connected_in == os.getpid(), "the parent's connection was used"
        return super().write_checkpoint(checkpoint, seen)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_no_thread_of_a_forked_child_uses_the_parents_connections() -> None:
    store = SlowToDrop()
    store.update_checkpoint(dict(CHECKPOINT))
    child = os.fork()
    if child == 0:
        signal.alarm(int(LIMIT))
        os._exit(0 if all_can_write(store) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def all_can_write(store: SlowToDrop) -> bool:
    written: list[int] = []

    def write(number: int) -> None:
        let_pass(number * SlowToDrop.SECONDS / 10)
        store.update_checkpoint(dict(CHECKPOINT))
        written.append(number)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(written) == len(threads)
