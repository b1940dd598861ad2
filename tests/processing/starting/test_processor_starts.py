"""Where an event processor starts: at a saved position, at a given one, or at the beginning."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError
from simulated_time import POLL
from variants import (
    EVERY_CLIENT,
    ONLY_CODE,
    REAL_AIO,
    REAL_CLIENTS,
)
from waiting import LIMIT, let_pass

START, SAVED, LAST = 4, 6, 9
GIVEN, AFTER_SAVED = START + 1, SAVED + 1


ROWS = [
    (False, False, False, 0, 0),
    (False, False, True, 0, AFTER_SAVED),
    (False, True, False, GIVEN, GIVEN),
    (False, True, True, GIVEN, AFTER_SAVED),
    (True, False, False, 0, 0),
    (True, False, True, 0, AFTER_SAVED),
    (True, True, False, GIVEN, GIVEN),
    (True, True, True, AFTER_SAVED, AFTER_SAVED),
]
"""Saving on, start point given, position saved; the first event without and with `from_saved`."""


class Row:
    """One row of the table, in a consumer group of its own."""

    def __init__(self, runs: Any, row: Any, from_saved: bool, offset: str) -> None:
        self.save, start, self.is_saved, *firsts = row
        self.first = firsts[from_saved]
        self.runs = runs
        self.store = runs.stage.store()
        if self.is_saved:
            runs.save(self.store, SAVED, offset)
        given = START if start else None
        options = {"starting_position": given, "save": self.save, "from_saved": from_saved}
        self.run = runs.start(self.store, **options)

    def outcome(self) -> Any:
        """Stop it; what it has read, stored and left."""
        self.run.stop()
        events = self.run.seen.events["0"]
        return events, self.runs.saved(self.store), self.runs.owned(self.store)

    @property
    def expected(self) -> Any:
        stored = {"0": LAST} if self.save else {"0": SAVED} if self.is_saved else {}
        return list(range(self.first, LAST + 1)), stored, []


@pytest.mark.parametrize("from_saved", [False, True])
def test_the_table_of_eight_rows(runs: Any, wait: Any, from_saved: bool) -> None:
    offset = runs.publish(SAVED + 1)
    runs.publish(LAST - SAVED)
    rows = [
        Row(runs.within(f"group-{number}"), row, from_saved, offset)
        for number, row in enumerate(ROWS)
    ]
    for row in rows:
        wait(lambda row=row: row.run.seen.has(LAST))
    assert [row.outcome() for row in rows] == [row.expected for row in rows]


@pytest.mark.parametrize("kind", ["offset", "number", "before all", "time", "end"])
def test_a_start_position_is_whatever_the_client_takes(runs: Any, wait: Any, kind: str) -> None:
    long_ago, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    runs.hub.publish("orders", "0", ["old"] * 3, enqueued_time=long_ago)
    offset = runs.publish(1)
    runs.publish(2)
    start = {
        "offset": offset,
        "number": 3,
        "before all": -1,
        "time": later,
        "end": "@latest",
    }[kind]
    first = {"offset": 4, "number": 4, "before all": 0, "time": 3, "end": 6}[kind]
    run = runs.start(runs.stage.store(), starting_position=start)
    wait(lambda: runs.hub.receivers("orders"))
    runs.publish(1)
    wait(lambda: run.seen.has(6))
    assert run.seen.events["0"][0] == first


@REAL_AIO
@pytest.mark.parametrize("kind", ["value", "mapping", "function"])
def test_a_start_at_a_time_begins_with_the_events_of_that_time(
    runs: Any, wait: Any, kind: str
) -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for milliseconds in (-1, 0, 1):
        time = moment + timedelta(milliseconds=milliseconds)
        runs.hub.publish("orders", "0", ["event"], enqueued_time=time)
    start = {"value": moment, "mapping": {"0": moment}, "function": lambda partition_id: moment}
    run = runs.start(runs.stage.store(), starting_position=start[kind])
    wait(lambda: run.seen.has(2))
    assert run.seen.events["0"] == [1, 2]


@pytest.mark.long
@REAL_CLIENTS
def test_events_that_come_one_by_one_are_not_held_back_until_there_are_many(
    runs: Any, wait: Any
) -> None:
    run = runs.start(runs.stage.store(), runs.maker(socket_timeout=1.0))
    wait(lambda: runs.hub.receivers("orders"))
    published = 0
    while not run.seen.events["0"]:
        assert published < 150
        runs.publish(1)
        published += 1
        let_pass(0.01)  # a rate at which a sync client goes on reading


def test_who_gives_no_start_position_gets_every_event_there_is(runs: Any, wait: Any) -> None:
    runs.publish(3)
    run = runs.start(runs.stage.store())
    wait(lambda: run.seen.has(2))
    assert run.seen.events["0"] == [0, 1, 2]


def by_partition(variant: str, kind: str) -> Any:
    starts = {"0": 1, "1": None}

    async def found(partition_id: str) -> int | None:
        return starts[partition_id]

    if kind == "mapping":
        return {"0": 1}
    return starts.__getitem__ if kind == "function" else found


@pytest.mark.parametrize("kind", ["mapping", "function", "coroutine function"])
def test_starts_by_partition_and_the_beginning_of_those_left_out(
    runs: Any, wait: Any, variant: str, kind: str
) -> None:
    runs.hub.add_partitions("orders", 1)
    start = by_partition(variant, kind)
    for partition_id in ("0", "1"):
        runs.publish(4, partition_id)
    if kind == "coroutine function" and variant == "sync":
        with pytest.raises(ConfigurationError, match="starting_position is async; expected a pla"):
            runs.make(runs.stage.store(), starting_position=start)
        return
    run = runs.make(runs.stage.store(), starting_position=start)
    run.start()
    wait(lambda: run.seen.has(3) and run.seen.has(3, partition_id="1"))
    assert run.seen.events == {"0": [2, 3], "1": [0, 1, 2, 3]}


def test_a_mapping_says_of_which_partitions_a_saved_position_is_passed_over(
    runs: Any, wait: Any
) -> None:
    runs.hub.add_partitions("orders", 1)
    store = runs.stage.store()
    for partition_id in ("0", "1"):
        offset = runs.publish(3, partition_id)
        runs.publish(1, partition_id)
        runs.save(store, 2, offset, partition_id)
    run = runs.start(store, starting_position={"0": 0}, from_saved=False)
    wait(lambda: run.seen.has(3) and run.seen.has(3, partition_id="1"))
    assert run.seen.events == {"0": [3], "1": [0, 1, 2, 3]}


def test_an_unknown_partition_is_refused_and_a_corrected_processor_starts(
    runs: Any, wait: Any
) -> None:
    run = runs.make(runs.stage.store(), starting_position={"0": 1, "7": 2})
    with pytest.raises(ConfigurationError, match=r"names partition '7'; the hub has '0'$"):
        run.start()
    run.stop()
    assert not runs.hub.receivers("orders")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lambda partition_id: 1.5, "starting_position of partition '0' is 1.5"),
        (lambda partition_id: 1 / 0, "division by zero"),
    ],
)
def test_a_callable_that_gives_no_start_position_fails_the_start(
    runs: Any, given: Any, expected: str
) -> None:
    run = runs.make(runs.stage.store(), starting_position=given)
    with pytest.raises((ConfigurationError, ZeroDivisionError), match=expected):
        run.start()


@ONLY_CODE
@pytest.mark.parametrize(
    "option", [{"from_saved": False}, {"on_invalid_checkpoint": "restart"}], ids=str
)
def test_a_client_that_is_ready_cannot_be_steered(runs: Any, option: dict[str, Any]) -> None:
    store = runs.stage.store()
    [(name, value)] = option.items()
    with pytest.raises(ConfigurationError, match=f"client is ready, and {name}={value!r} needs"):
        runs.make(store, runs.ready(store), **option)


def test_of_two_starts_at_once_one_is_refused(runs: Any, wait: Any) -> None:
    asked, go = threading.Event(), threading.Event()

    def slow(**settings: Any) -> Any:
        asked.set()
        assert go.wait(LIMIT)
        return runs.maker()(**settings)

    async def slow_aio(**settings: Any) -> Any:
        asked.set()
        while not go.is_set():  # noqa: ASYNC110 - the test sets it
            await asyncio.sleep(POLL)
        return runs.maker()(**settings)

    run = runs.make(runs.stage.store(), slow_aio if runs.stage.is_aio else slow)
    runs.publish(1)
    first = run.begin("start")
    wait(asked.is_set)
    with pytest.raises(ConfigurationError, match="was started already"):
        run.start()
    go.set()
    first.result(LIMIT)
    wait(lambda: run.seen.has(0))


@EVERY_CLIENT
def test_waiting_for_a_processor_that_was_not_started_is_refused(runs: Any) -> None:
    run = runs.make(runs.stage.store())
    with pytest.raises(ConfigurationError, match=r"not started; call start\(\) before wait"):
        run.begin("wait").result(LIMIT)


@EVERY_CLIENT
@pytest.mark.parametrize("is_ready", [False, True])
def test_a_processor_that_was_stopped_starts_again_where_it_was(
    runs: Any, wait: Any, is_ready: bool
) -> None:
    store = runs.stage.store()
    client = runs.ready(store) if is_ready else None
    run = runs.make(store, client, starting_position=1)
    for last, count in ((4, 5), (6, 2)):
        runs.publish(count)
        run.start()
        wait(lambda last=last: run.seen.has(last))
        with pytest.raises(ConfigurationError, match="was started already"):
            run.start()
        run.stop()
        assert (runs.saved(store), runs.owned(store)) == ({"0": last}, [])
    assert run.seen.events["0"] == [2, 3, 4, 5, 6]
    assert run.seen.opened == run.seen.closed == ["0", "0"]
