"""Inbox of whoever iterates over the batches of a group, in both variants."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.consume._async import inbox as aio_inbox
from eventhub_checkpoints.consume._sync import inbox
from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from waiting import LIMIT, eventually


def batch(number: int) -> PartitionBatch:
    arrow = pa.record_batch({"sequenceNumber": [number]})
    return PartitionBatch(arrow, range(number, number + 1), pa.array([None], pa.string()))


class Box:
    """Inbox of one variant, whose methods return when they have ended."""

    def __init__(self, is_aio: bool, loop: Loop) -> None:
        self.module: Any = aio_inbox if is_aio else inbox
        self.inner = self.module.Inbox(lambda item: None)
        self._finished = loop.finished

    def call(self, name: str, *args: Any) -> Any:
        return self._finished(getattr(self.inner, name)(*args))

    def begin(self, name: str, *args: Any) -> "Call":
        return Call(self, name, args)

    def session(self, partition_id: str) -> Any:
        return self.module.Session(partition_id)

    def delivered(self, session: Any, number: int) -> Any:
        return self.module.Delivered(session, batch(number))


class Call:
    """Call that runs beside the test."""

    def __init__(self, box: Box, name: str, args: tuple[Any, ...]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(box, name, args), daemon=True)
        self._thread.start()

    def _run(self, box: Box, name: str, args: tuple[Any, ...]) -> None:
        try:
            self.result = box.call(name, *args)
        except Exception as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> Any:
        self._thread.join(LIMIT)
        assert self.is_over
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture(params=["sync", "aio"])
def box(request: pytest.FixtureRequest, loop: Loop) -> Box:
    return Box(request.param == "aio", loop)


def test_a_batch_waits_until_it_is_taken(box: Box) -> None:
    item = box.delivered(box.session("0"), 1)
    putting = box.begin("put", item)
    assert box.call("next") is item
    putting.wait()


def test_a_batch_that_is_taken_wakes_no_worker_of_another_partition(box: Box) -> None:
    first, other = box.session("0"), box.session("1")
    putting = box.begin("put", box.delivered(first, 1))
    eventually(lambda: box.inner._items)
    box.begin("put", box.delivered(other, 2))
    eventually(lambda: other in box.inner._waiting and box.inner._waiting[other]._waiters)
    before = [*box.inner._waiting[other]._waiters]
    box.call("next")
    putting.wait()
    assert [*box.inner._waiting[other]._waiters] == before


def test_the_batches_of_partitions_come_in_the_order_in_which_they_were_put(box: Box) -> None:
    sessions = [box.session(str(number)) for number in range(3)]
    items = [box.delivered(each, number) for number, each in enumerate(sessions)]
    for count, item in enumerate(items, 1):
        box.begin("put", item)
        eventually(lambda count=count: len(box.inner._items) == count)
    assert [box.call("next") for _ in items] == items


def test_a_partition_that_is_lost_has_no_batch_any_more(box: Box) -> None:
    session, other = box.session("0"), box.session("1")
    putting = box.begin("put", box.delivered(session, 1))
    eventually(lambda: box.inner._items)
    notice = box.module.Notice(session, is_lost=True)
    box.call("notify", notice)
    putting.wait()
    box.call("notify", box.module.Notice(other, is_lost=False))
    assert box.call("next") is notice
    assert box.call("next").session is other


def test_an_error_comes_after_what_was_put_before_it(box: Box) -> None:
    item = box.delivered(box.session("0"), 1)
    putting = box.begin("put", item)
    eventually(lambda: box.inner._items)
    box.call("end", ValueError("over"))
    assert box.call("next") is item
    putting.wait()
    with pytest.raises(ValueError, match="over"):
        box.call("next")
    assert box.call("next") is None


def test_a_closed_inbox_lets_everybody_go(box: Box) -> None:
    session = box.session("0")
    waiting = [
        box.begin("put", box.delivered(session, 1)),
        box.begin("until", lambda: False, LIMIT),
    ]
    eventually(lambda: box.inner._items)
    box.call("close")
    for each in waiting:
        each.wait()
    assert box.call("next") is None
    box.call("put", box.delivered(session, 2))
    assert box.call("next") is None


def test_who_waits_for_a_condition_looks_when_it_is_woken(box: Box) -> None:
    holds: list[bool] = []
    waiting = box.begin("until", lambda: bool(holds), LIMIT)
    holds.append(True)
    eventually(lambda: box.call("wake") or waiting.is_over)
    assert waiting.wait() is True


def test_who_waits_for_a_condition_gives_up_after_its_time(box: Box) -> None:
    assert box.call("until", lambda: False, 0) is False


def test_a_thread_that_waits_for_an_item_looks_again_and_again_so_that_a_signal_is_handled(
    loop: Loop,
) -> None:
    """A loop handles signals while a task waits."""
    box = Box(is_aio=False, loop=loop)
    taking = box.begin("next")
    item = box.module.Notice(box.session("0"), is_lost=False)
    box.inner._items.append(item)  # nobody is notified
    assert taking.wait() is item


def test_what_is_finished_returns_nothing_more_and_keeps_who_puts_waiting(box: Box) -> None:
    putting = box.begin("put", box.delivered(box.session("0"), 1))
    eventually(lambda: box.inner._items)
    box.call("finish")
    assert box.inner.is_finished
    assert box.call("next") is None
    assert not putting.is_over
    box.call("close")
    putting.wait()
