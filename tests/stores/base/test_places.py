"""A store in another place than before: a forked process, or the next event loop."""

import os
import signal
import threading
from typing import Any

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Seen, Written
from waiting import LIMIT, let_pass

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def checkpoint_of(number: int) -> dict[str, Any]:
    return SCOPE.as_dict() | {"partition_id": "0", "offset": "1", "sequence_number": number}


def test_writes_wait_for_each_other_in_every_event_loop(aio_store, make_fault) -> None:
    aio_store.faults.always["write_checkpoint"] = make_fault(seconds=2)
    for _ in range(2):
        with aio_store.another_loop():
            calls = [aio_store.begin("update_checkpoint", checkpoint_of(n)) for n in range(4)]
            for call in calls:
                aio_store.ended(call)
    assert aio_store.faults.most == 1


def test_the_next_event_loop_knows_what_this_store_wrote(aio_store) -> None:
    aio_store.update(5)
    with aio_store.another_loop():
        aio_store.update(3)  # below its own row, which is no other writer's
    assert aio_store.stored() == 3


def test_a_store_is_opened_again_in_another_event_loop_and_not_in_the_same(aio_store) -> None:
    for number in range(3):
        aio_store.update(number)
    with aio_store.another_loop():
        for number in range(3):
            aio_store.update(number)
    assert aio_store.faults.count("open") == 2


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


@pytest.mark.long  # others must come while one drops it, which only time lets them
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_no_thread_of_a_forked_child_uses_the_parents_connections() -> None:
    store = SlowToDrop()
    store.update_checkpoint(checkpoint_of(1))
    child = os.fork()
    if child == 0:
        signal.alarm(int(LIMIT))
        os._exit(0 if all_can_write(store) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def all_can_write(store: SlowToDrop) -> bool:
    written: list[int] = []

    def write(number: int) -> None:
        let_pass(number * SlowToDrop.SECONDS / 10)
        store.update_checkpoint(checkpoint_of(1))
        written.append(number)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(written) == len(threads)
