"""The rule of the watchdog: what makes a stall, where it hangs, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Stall
from eventhub_checkpoints.processing.stall import (
    ASKING,
    LONGEST_OPENING,
    SHORTEST_SILENCE,
    PartitionWatch,
    Reopenings,
    Snapshot,
)
from eventhub_checkpoints.sdk.consumer import LinkAttempt

LIMIT = 100.0
WORKING = Snapshot(arrived=7, worked=7, reached=6)
BUSY = WORKING._replace(arrived=8, reached=7, is_busy=True)


class Looks:
    """One partition that is looked at ten times in the time limit.

    Attributes:
        newest: what the hub answers when it is asked; None: it does not answer.
        asked: times at which it was asked.
        found: where the partition hung, at each look.
    """

    def __init__(self, newest: int | None = 6) -> None:
        self.watch = PartitionWatch("0", LIMIT)
        self.newest = newest
        self.now = 1000.0
        self.asked: list[float] = []
        self.found: list[str | None] = []
        self.is_empty = False
        self._silent_since: float | None = None

    def look(self, snapshot: Snapshot) -> Stall | None:
        stall = self.watch.look(snapshot, self._silent_since, self.now)
        self.found.append(stall and stall.where)
        if self.watch.query_due(self.now) is not None:
            self.watch.asked(self.now)
            self.asked.append(self.now)
            if self.newest is None:
                self._silent_since = self.now if self._silent_since is None else self._silent_since
            else:
                self._silent_since = None
                self.watch.answered(
                    {"last_enqueued_sequence_number": self.newest, "is_empty": self.is_empty}
                )
        self.now += LIMIT / 10
        return stall

    def until(self, snapshot: Snapshot, most: float = 2 * LIMIT) -> Stall:
        """Look until there is a stall."""
        end = self.now + most
        while self.now < end:
            if stall := self.look(snapshot):
                return stall
        raise AssertionError(f"nothing was found in {most:g} s")

    def all(self, snapshot: Snapshot, seconds: float = 5 * LIMIT) -> set[str | None]:
        """Look for a while; return what was found."""
        end, self.found = self.now + seconds, []
        while self.now < end:
            self.look(snapshot)
        return {*self.found}


def test_a_partition_with_nothing_to_receive_has_not_stalled() -> None:
    looks = Looks()
    assert looks.all(WORKING, 20 * LIMIT) == {None}
    assert len(looks.asked) == 20 / ASKING - 1, "the hub is asked rarely"


@pytest.mark.parametrize("count", [0, 1])
def test_the_time_counts_from_the_first_look_whatever_was_there_before(count: int) -> None:
    watch = PartitionWatch("0", LIMIT)
    assert watch.look(Snapshot(arrived=count, worked=count, is_busy=True), None, 1000.0) is None


def test_events_that_do_not_arrive_are_a_stall_of_the_link() -> None:
    looks = Looks(newest=9)
    stall = looks.until(WORKING)
    assert (stall.partition_id, stall.where) == ("0", "link")
    assert LIMIT <= stall.seconds <= LIMIT + LIMIT / 10
    assert "events up to 9" in str(stall)
    assert "after 6" in str(stall)
    assert looks.now - 1000 <= (1 + ASKING) * LIMIT + LIMIT / 5


def test_events_that_the_client_knows_of_need_no_question() -> None:
    looks = Looks(newest=None)
    assert looks.until(WORKING._replace(newest=9), LIMIT * 1.2).where == "link"


def test_an_event_that_comes_to_an_idle_hub_has_the_whole_time_to_arrive() -> None:
    looks = Looks()
    assert looks.all(WORKING, 20 * LIMIT) == {None}
    looks.newest, published = 7, looks.now
    looks.until(WORKING)
    assert looks.now - published >= LIMIT


def test_a_partition_that_receives_is_never_asked_about() -> None:
    looks = Looks(newest=10_000)
    for number in range(100):
        looks.look(Snapshot(arrived=number, worked=number, reached=number))
    assert (looks.asked, {*looks.found}) == ([], {None})


def test_a_stall_is_over_when_an_event_arrives() -> None:
    looks = Looks(newest=9)
    looks.until(WORKING)
    assert looks.look(WORKING._replace(arrived=8, reached=7)) is None


def test_events_that_have_expired_are_not_waited_for() -> None:
    looks = Looks(newest=9)
    looks.is_empty = True
    assert looks.all(WORKING) == {None}


def test_a_hub_that_was_created_again_is_not_behind() -> None:
    assert Looks(newest=2).all(WORKING) == {None}


def test_where_the_start_is_unknown_only_later_events_are_waited_for() -> None:
    looks = Looks(newest=50)
    opened = Snapshot()
    assert looks.all(opened) == {None}
    looks.newest = 51
    assert looks.until(opened).where == "link"


def test_after_a_rewind_the_events_from_there_are_waited_for() -> None:
    looks = Looks(newest=6)
    assert looks.all(WORKING) == {None}
    assert looks.until(WORKING._replace(arrived=8, reached=2)).where == "link"


def test_a_hub_that_does_not_answer_is_a_stall_of_the_hub() -> None:
    looks = Looks(newest=None)
    stall = looks.until(WORKING)
    assert stall.where == "hub"
    looks.newest = 6
    assert looks.all(WORKING) == {None, "hub"}
    assert looks.found[-1] is None


def test_a_short_time_limit_does_not_shorten_the_time_that_the_hub_has() -> None:
    watch = PartitionWatch("0", 1.0)
    watch.look(WORKING, None, 0.0)
    assert watch.look(WORKING, 1.0, SHORTEST_SILENCE + 0.9) is None
    stall = watch.look(WORKING, 1.0, SHORTEST_SILENCE + 1.0)
    assert stall is not None
    assert stall.where == "hub"


def test_an_answer_in_between_begins_the_time_of_the_hub_again() -> None:
    looks = Looks()
    for newest in (None, 6) * 20:
        looks.newest = newest
        assert looks.all(WORKING, ASKING * LIMIT) == {None}


def test_events_in_work_that_do_not_end_are_a_stall_of_the_handler() -> None:
    looks = Looks(newest=None)
    looks.all(WORKING, LIMIT / 2)
    stall = looks.until(BUSY)
    assert stall.where == "handler"
    assert LIMIT <= stall.seconds <= LIMIT + LIMIT / 10


def test_a_slow_handler_that_ends_events_in_time_works() -> None:
    looks = Looks(newest=10_000)
    for count in range(20):
        assert looks.all(BUSY._replace(worked=count), 0.9 * LIMIT) == {None}


def test_a_hub_is_not_asked_while_a_handler_works() -> None:
    looks = Looks()
    looks.all(BUSY)
    assert looks.asked == []


def test_a_write_that_does_not_succeed_is_a_stall_of_the_store() -> None:
    looks = Looks()
    looks.all(WORKING, LIMIT)
    tried = BUSY._replace(trying=frozenset({3.0}))
    assert looks.until(tried).where == "store"
    assert looks.look(BUSY._replace(worked=8)) is None


def test_writes_that_succeed_one_after_another_are_not_a_stall() -> None:
    looks = Looks()
    for number in range(100):
        assert looks.look(WORKING._replace(trying=frozenset({number}))) is None


def test_a_partition_that_is_being_closed_has_not_stalled() -> None:
    looks = Looks(newest=9)
    ending = BUSY._replace(is_ending=True, trying=frozenset({1}))
    assert looks.all(ending) == {None}
    assert looks.asked == []


def test_a_task_that_is_lost_is_a_stall_of_the_link_without_a_question() -> None:
    looks = Looks(newest=None)
    assert looks.until(WORKING._replace(is_lost=True), 1.2 * LIMIT).where == "link"


def test_a_task_that_is_lost_while_nothing_is_to_be_done_has_the_whole_time() -> None:
    looks, lost = Looks(), WORKING._replace(is_lost=True)
    assert looks.all(WORKING, 5 * LIMIT) == {None}
    assert looks.all(lost, LIMIT) == {None}
    assert looks.until(lost, 0.2 * LIMIT).where == "link"


def test_before_the_time_is_over_nothing_has_stalled() -> None:
    for snapshot in (WORKING, BUSY, WORKING._replace(is_lost=True), WORKING._replace(newest=9)):
        assert Looks(newest=None).all(snapshot, LIMIT) == {None}


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_stall_may_be_attributed_to_another_place(is_busy: bool) -> None:
    looks = Looks(newest=9)
    found = looks.until(BUSY if is_busy else WORKING)
    looks.watch.attribute("handler", "it waits")
    stall = looks.watch.stall
    assert stall == Stall("0", "handler", found.seconds, "it waits")
    looks.watch.clear()
    looks.watch.attribute("handler", "it waits")
    assert looks.watch.stall is None


def test_before_the_first_look_nothing_is_known_and_nobody_is_asked() -> None:
    watch = PartitionWatch("0", LIMIT)
    assert (watch.arrivals, watch.is_behind, watch.stall) == (0, False, None)
    assert watch.query_due(1e9) is None


def test_looks_are_counted_at_which_more_has_arrived() -> None:
    watch, counts = PartitionWatch("0", LIMIT), []
    for now, arrived in enumerate([0, 0, 1, 1, 5]):
        watch.look(WORKING._replace(arrived=arrived), None, float(now))
        counts.append(watch.arrivals)
    assert counts == [1, 1, 2, 2, 3]


def test_the_hub_is_asked_half_the_time_after_the_last_event_and_after_each_question() -> None:
    watch = PartitionWatch("0", LIMIT)
    watch.look(WORKING, None, 0.0)
    assert watch.query_due(LIMIT / 2 - 1) is None
    assert watch.query_due(LIMIT / 2) == LIMIT / 2
    watch.asked(60.0)
    assert watch.query_due(109.0) is None
    assert watch.query_due(111.0) == 110.0


def test_a_partition_is_behind_as_long_as_the_hub_has_more() -> None:
    watch = PartitionWatch("0", LIMIT)
    for snapshot, is_behind in (
        (Snapshot(newest=9), False),
        (Snapshot(reached=8, newest=9), True),
        (Snapshot(reached=9, newest=9), False),
    ):
        watch.look(snapshot, None, 0.0)
        assert watch.is_behind is is_behind


def test_a_stall_says_what_is_known_and_for_how_long() -> None:
    def reason(snapshot: Snapshot, silent_since: float | None = None) -> str:
        watch = PartitionWatch("0", LIMIT)
        watch.look(snapshot, silent_since, 0.0)
        stall = watch.look(snapshot, silent_since, LIMIT + 20)
        assert stall is not None
        assert str(stall) == f"partition 0 has stalled ({stall.where}): {stall.reason}"
        return stall.reason

    assert reason(WORKING, 0.0) == ("no event arrives, and the hub answers no query for 120 s")
    assert reason(WORKING._replace(newest=9)) == (
        "the hub has events up to 9, and none has arrived after 6 for 120 s"
    )
    assert reason(BUSY) == "events were received, and none was finished for 120 s"
    assert reason(BUSY._replace(trying=frozenset({1}))) == (
        "the store has confirmed no write for 120 s"
    )
    assert reason(WORKING._replace(is_lost=True)) == (
        "the client has stopped receiving, and keeps the partition for 120 s"
    )


def test_a_time_limit_below_a_second_is_kept() -> None:
    watch = PartitionWatch("0", 0.5)
    watch.look(BUSY, None, 0.0)
    assert watch.look(BUSY, None, 0.4) is None
    assert watch.look(BUSY, None, 0.5) == Stall(
        *("0", "handler", 0.5, "events were received, and none was finished for 0 s")
    )


steps = st.tuples(st.floats(0, LIMIT * 0.49), st.booleans(), st.integers(0, 20))


@given(st.lists(steps, max_size=60))
def test_what_goes_on_in_less_than_the_time_has_never_stalled(
    taken: list[tuple[float, bool, int]],
) -> None:
    # Whatever the hub answers.
    watch, now, snapshot = PartitionWatch("0", LIMIT), 0.0, Snapshot(reached=-1)
    for seconds, is_busy, newest in taken:
        now += seconds
        snapshot = snapshot._replace(
            arrived=now,
            worked=now,
            is_busy=is_busy,
            trying=frozenset({now}),
            reached=(snapshot.reached or 0) + 1,
        )
        assert watch.look(snapshot, None, now) is None
        watch.answered({"last_enqueued_sequence_number": newest, "is_empty": False})
        now += seconds
        assert watch.look(snapshot, 0.0, now) is None


class Attempts:
    """Snapshot of a client that opens the link of a partition, and is refused each time."""

    def __init__(self) -> None:
        self.count = 0

    def next(self, position: object = "corrupt!") -> Snapshot:
        self.count += 1
        return Snapshot(attempt=LinkAttempt(self.count, position))


def test_a_link_that_is_refused_again_and_again_is_a_stall_whatever_is_known() -> None:
    looks, attempts = Looks(), Attempts()
    found = [looks.look(attempts.next()) for _ in range(11)]
    assert [stall and stall.where for stall in found] == [None] * 10 + ["link"]
    assert found[-1] is not None
    assert found[-1].reason == (
        "the hub answers queries, and accepts none of the client's attempts to read from "
        "position 'corrupt!'; does it have this position, and the consumer group? Tried for 100 s"
    )


def test_one_attempt_that_takes_long_is_no_stall() -> None:
    looks, attempts = Looks(), Attempts()
    slow = attempts.next()
    assert looks.all(slow) == {None}
    looks.look(attempts.next())
    assert looks.all(Snapshot(), 5 * LIMIT) == {None}


def test_the_third_refusal_in_a_row_makes_a_stall_of_a_link_that_does_not_open() -> None:
    watch, attempts = PartitionWatch("0", LIMIT), Attempts()

    def look(snapshot: Snapshot, now: float) -> str | None:
        stall = watch.look(snapshot, None, now)
        return stall and stall.where

    for begun in (0.0, 10 * LIMIT):  # refusals before the link was open count no more
        assert look(Snapshot(), begun) is None
        assert look(attempts.next(), begun + 1) is None
        # The hub answers at the moment at which the link is no longer open.
        watch.asked(begun + 1)
        watch.answered({"last_enqueued_sequence_number": 6, "is_empty": False})
        assert look(attempts.next(), begun + 2 * LIMIT) is None
        assert look(attempts.next(), begun + 3 * LIMIT) == "link"


def test_events_that_are_missing_for_less_than_a_second_are_a_stall_if_that_is_the_limit() -> None:
    watch, behind = PartitionWatch("0", 0.25), WORKING._replace(newest=9)
    assert watch.look(behind, None, 0.0) is None
    stall = watch.look(behind, None, 0.25)
    assert stall is not None
    assert (stall.where, stall.seconds) == ("link", 0.25)


def test_a_link_that_opens_between_refusals_is_no_stall() -> None:
    looks, attempts = Looks(), Attempts()
    for _ in range(20):
        assert [looks.look(attempts.next()) for _ in range(4)] == [None] * 4
        assert looks.look(Snapshot()) is None


def test_while_the_hub_answers_no_question_it_is_the_hub_that_hangs() -> None:
    looks, attempts = Looks(newest=None), Attempts()
    found = {stall.where for _ in range(40) if (stall := looks.look(attempts.next()))}
    assert found == {"hub"}


def test_a_stall_of_a_refused_link_lasts_while_a_question_is_under_way() -> None:
    looks, attempts = Looks(), Attempts()
    while not looks.look(attempts.next()):
        pass
    looks.newest, began = None, looks.now
    assert None not in [looks.look(attempts.next()) for _ in range(9)]
    assert looks.asked[-1] >= began


def test_a_stall_of_a_refused_link_is_over_when_it_opens() -> None:
    looks, attempts = Looks(), Attempts()
    while not looks.look(attempts.next()):
        pass
    assert looks.look(Snapshot()) is None


OPENING = WORKING._replace(attempt=LinkAttempt(1, "6"))


def test_a_link_that_is_opening_has_the_time_that_opening_takes() -> None:
    looks = Looks(newest=9)
    looks.watch = PartitionWatch("0", LIMIT)
    assert looks.all(OPENING, LIMIT) == {None}
    # It is attached, and has the whole time from now on.
    began = looks.now
    looks.until(WORKING)
    assert looks.now - began == pytest.approx(1.1 * LIMIT)


def test_a_link_that_never_opens_is_a_stall_after_the_longest_opening() -> None:
    watch = PartitionWatch("0", 10.0)
    opening = OPENING._replace(newest=9)
    assert watch.look(opening, None, 0.0) is None
    assert watch.look(opening, None, LONGEST_OPENING - 1) is None
    stall = watch.look(opening, None, LONGEST_OPENING)
    assert stall == Stall(
        "0",
        "link",
        LONGEST_OPENING,
        "the hub has events up to 9, and none has arrived after 6: the link is not open for 60 s",
    )
    # A longer time limit counts.
    patient = PartitionWatch("0", LIMIT)
    for now, found in ((0.0, None), (LIMIT - 1, None), (LIMIT, "link")):
        stall = patient.look(opening, None, now)
        assert (stall and stall.where) == found


def test_a_link_is_opened_again_later_each_time() -> None:
    reopenings = Reopenings(LIMIT)
    due = [second for second in range(0, 7000, 10) if reopenings.is_due(6, second)]
    assert due == [0, 200, 600, 1400, 3000, 4600, 6200]


def test_the_times_of_reopening_begin_again_after_an_event() -> None:
    reopenings = Reopenings(LIMIT)
    assert reopenings.is_due(6, 0.0)
    assert [reopenings.is_over(reached) for reached in (None, 6, 7)] == [False, False, True]
