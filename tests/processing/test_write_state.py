"""One write at a time, of the newest; what failed is tried again; what is told is remembered."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eventhub_checkpoints._shared.deadline import FIRST_PAUSE, LONGEST_PAUSE
from eventhub_checkpoints.processing.policy import Due, Policy, any_of, every, trailing
from eventhub_checkpoints.processing.stall import Since
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.processing.write_state import WriteState
from examples import examples

POLICIES: Sequence[Policy] = (
    every(events=3),
    every(seconds=5),
    every(events=10, seconds=2),
    trailing(events=6, seconds=4),
    any_of(every(events=4), every(seconds=3)),
)
LIMIT = 10.0


def at(count: int) -> Position | None:
    return Position(count - 1, str(count)) if count else None


class Shell(RuleBasedStateMachine):
    """A shell that looks when it is told to, over a store that answers as it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.count, self.policy = 0.0, 0, POLICIES[0]
        self.tally = Tally()
        self.writing: Due | None = None
        self.stored = self.saves = self.refusals = self.failures = 0
        self.is_late = False
        self.asked = False
        self.progress: WriteState | None = None

    @precondition(lambda self: self.progress is None)
    @rule(policy=st.sampled_from(POLICIES))
    def begin(self, policy: Policy) -> None:
        self.policy, self.progress = policy, WriteState(policy, self.now, self.tally)

    @property
    def it(self) -> WriteState:
        assert self.progress is not None
        return self.progress

    @precondition(lambda self: self.progress is not None)
    @rule(events=st.integers(1, 5))
    def finish(self, events: int) -> None:
        self.count += events
        self.look()

    @precondition(lambda self: self.progress is not None)
    @rule(seconds=st.floats(0.01, 8))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.it.late_at(LIMIT):
            self.it.was_late()
            self.is_late, self.failures = True, self.failures + 1
        self.look()

    def look(self) -> None:
        if self.now >= self.it.wake_time or self.count >= self.it.wake_count:
            due = self.it.due(self.count, at(self.count), self.now)
            assert due is None or self.writing is None, "two writes at a time"
            self.wrote(due)

    @precondition(lambda self: self.progress is not None)
    @rule()
    def flush(self) -> None:
        due = self.it.rest(self.count, at(self.count), self.now)
        assert (due is not None) == (self.writing is None and self.count > self.stored)
        assert due is None or due.count == self.count, "what is written is the newest"
        self.wrote(due)

    @precondition(lambda self: self.progress is not None and self.count)
    @rule()
    def insist(self) -> None:
        position = Position(0, "asked for")
        due = self.it.instead(Due(self.count, position), self.now)
        assert (due is None) == (self.writing is not None)
        if due is not None:
            self.wrote(due)
            self.asked = True

    def wrote(self, due: Due | None) -> None:
        if due is not None:
            assert due.count > self.stored or due.position.offset == "asked for"
            self.writing, self.is_late = due, False

    @precondition(lambda self: self.writing is not None)
    @rule(answer=st.sampled_from(["saved", "saved", "refused", "failed"]))
    def answer(self, answer: str) -> None:
        due, self.writing = self.writing, None
        assert due is not None
        was_asked, self.asked = self.asked, False
        if answer == "saved":
            self.it.was_saved(self.now)
            self.saves += 1
            assert self.it.saved_position == due.position
        elif was_asked:
            self.it.was_given_up(self.now, is_refusal=answer == "refused")
            self.refusals += answer == "refused"
            self.failures += answer == "failed" and not self.is_late
        elif answer == "refused":
            self.it.was_refused(self.now)
            self.refusals += 1
        else:
            self.it.has_failed(self.now, 0.5)
            self.failures += not self.is_late
        if answer == "saved" or (answer == "refused" and not was_asked):
            self.stored = max(self.stored, due.count)
        self.look()

    @invariant()
    def agrees(self) -> None:
        if self.progress is None:
            return
        assert self.it.is_writing == (self.writing is not None)
        assert self.it.saved_count == self.stored
        counted = self.tally.saved, self.tally.refused, self.tally.failed
        assert counted == (self.saves, self.refusals, self.failures)
        if self.writing is not None:
            assert self.it.wake_time == self.it.wake_count == math.inf
        else:
            assert self.it.late_at(LIMIT) == math.inf

    def teardown(self) -> None:
        """With time alone, and a store that answers, a policy of time saves the rest."""
        if self.progress is None or self.policy in (POLICIES[0],):
            return
        if self.writing is not None:
            self.answer("failed")
        for _ in range(40):
            if math.isinf(self.it.wake_time) and self.writing is None:
                break
            self.now = max(self.now, self.it.wake_time) if self.writing is None else self.now
            self.look()
            if self.writing is not None:
                self.answer("saved")
        assert self.stored == self.count


Shell.TestCase.settings = examples(60, stateful_step_count=40)
TestProgress = Shell.TestCase


@pytest.fixture
def tally() -> Tally:
    return Tally()


def test_a_write_that_failed_is_tried_again_though_nothing_more_comes(tally: Tally) -> None:
    progress = WriteState(every(events=2), 0.0, tally)
    assert progress.due(2, at(2), 0.0) == Due(2, Position(1, "2"))
    progress.has_failed(1.0, 1.0)
    assert 1.0 < progress.wake_time <= 1.0 + LONGEST_PAUSE
    assert progress.due(2, at(2), 1.01) is None, "not before the pause is over"
    assert progress.due(2, at(2), progress.wake_time) == Due(2, Position(1, "2"))


def test_pauses_grow_and_are_bounded(tally: Tally) -> None:
    progress, now, pauses = WriteState(every(events=1), 0.0, tally), 0.0, []
    for _ in range(12):
        assert progress.due(1, at(1), now)
        progress.has_failed(now, 1.0)
        pauses.append(progress.wake_time - now)
        now = progress.wake_time
    assert pauses == pytest.approx(sorted(pauses))
    assert pauses[0] < 0.2
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE)
    assert tally.failed == 12


def test_what_is_written_after_a_failure_is_the_newest_of_then(tally: Tally) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    assert progress.due(1, at(1), 0.0)
    progress.has_failed(0.0, 1.0)
    assert progress.due(9, at(9), 10.0) == Due(9, Position(8, "9"))


def test_trouble_lasts_from_the_first_write_that_failed_to_the_one_that_did_not(
    tally: Tally,
) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    assert progress.trying_since is None
    for now in (5.0, 6.0, 20.0):
        assert progress.due(1, at(1), now)
        assert progress.trying_since == 5.0
        progress.has_failed(now + 0.1, 1.0)
        assert progress.trying_since == 5.0
    assert progress.due(1, at(1), 30.0)
    progress.was_saved(30.1)
    assert progress.trying_since is None


def test_a_write_that_hangs_has_failed_once_and_no_other_begins(tally: Tally) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    assert progress.due(1, at(1), 0.0)
    assert progress.late_at(LIMIT) == LIMIT
    progress.was_late()
    assert progress.late_at(LIMIT) == math.inf, "it is said once"
    assert progress.due(2, at(2), 100.0) is None
    assert progress.rest(2, at(2), 100.0) is None
    assert tally.failed == 1
    progress.has_failed(100.0, 1.0)
    assert tally.failed == 1
    assert progress.due(2, at(2), progress.wake_time) == Due(2, Position(1, "2"))


def test_what_was_refused_is_not_tried_again(tally: Tally) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    assert progress.due(3, at(3), 0.0)
    progress.was_refused(1.0)
    assert progress.due(3, at(3), 2.0) is None
    assert progress.saved_position is None
    assert (tally.refused, tally.saved) == (1, 0)


def test_after_a_success_pauses_are_short_again(tally: Tally) -> None:
    progress, pauses = WriteState(every(events=1), 0.0, tally), []
    for number, answer in enumerate(["failed", "failed", "saved", "failed", "refused", "failed"]):
        now = 100.0 * number
        assert progress.due(number + 1, at(number + 1), now)
        if answer == "failed":
            progress.has_failed(now, 1.0)
            pauses.append(progress.wake_time - now)
        else:
            (progress.was_saved if answer == "saved" else progress.was_refused)(now)
    assert pauses == pytest.approx([FIRST_PAUSE, 2 * FIRST_PAUSE, FIRST_PAUSE, FIRST_PAUSE])


def test_at_first_nothing_is_saved_refused_or_asked_for(tally: Tally) -> None:
    progress = WriteState(every(events=10), 7.0, tally)
    assert (progress.saved_count, progress.saved_position, progress.saved_at) == (0, None, 7.0)
    assert progress.is_refused_for_good is False
    assert progress.due(1, at(1), 8.0) is None


def test_what_is_covered_by_the_stored_position_counts_as_saved_though_nothing_was(
    tally: Tally,
) -> None:
    progress = WriteState(every(events=10, seconds=5), 0.0, tally)
    assert progress.due(3, at(3), 5.0) == Due(3, Position(2, "3"))
    progress.was_covered(7.0)
    assert (progress.is_writing, progress.saved_count, progress.wake_time) == (False, 3, 7.0)
    assert (progress.saved_position, progress.saved_at, progress.trying_since) == (None, 0.0, None)
    assert (tally.saved, tally.refused, tally.failed) == (0, 0, 0)
    assert progress.due(4, at(4), 7.0) is None
    assert (progress.wake_count, progress.wake_time) == (13, 12.0), "counted from what is covered"


def test_a_flush_writes_the_newest_though_the_policy_asks_for_none(tally: Tally) -> None:
    progress = WriteState(every(events=10), 0.0, tally)
    assert progress.rest(3, at(3), 1.0) == Due(3, Position(2, "3"))
    assert progress.rest(4, at(4), 1.0) is None, "one write at a time"
    progress.was_saved(2.0)
    assert progress.due(4, at(4), 2.0) == Due(4, Position(3, "4")), "it was asked for meanwhile"


def test_a_write_that_is_given_up_ends_the_trouble_unless_another_has_failed(tally: Tally) -> None:
    progress = WriteState(every(events=10), 0.0, tally)
    requested = Due(1, Position(0, "asked for"))
    assert progress.instead(requested, 1.0) is requested
    assert progress.trying_since == 1.0
    progress.was_given_up(2.0, is_refusal=False)
    assert (progress.is_writing, progress.trying_since, progress.wake_time) == (False, None, 2.0)

    assert progress.rest(3, at(3), 3.0)
    progress.has_failed(4.0, 1.0)
    assert progress.instead(requested, 4.0) is requested
    progress.was_given_up(4.01, is_refusal=True)
    assert progress.trying_since == 3.0
    assert progress.wake_time == progress.retry_at == pytest.approx(4.0 + FIRST_PAUSE)
    assert (tally.refused, tally.failed) == (1, 2)


def test_a_write_that_was_not_started_after_all_leaves_no_trouble(tally: Tally) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    assert progress.due(1, at(1), 5.0)
    progress.was_dropped()
    assert (progress.is_writing, progress.trying_since, progress.late_at(LIMIT)) == (
        *(False, None),
        math.inf,
    )


def test_a_failure_that_no_retry_would_fix_is_known_until_the_next_write_begins(
    tally: Tally,
) -> None:
    progress = WriteState(every(events=1), 0.0, tally)
    for for_good in (False, True):
        assert progress.due(1, at(1), 100.0 * for_good)
        assert progress.is_refused_for_good is False
        progress.has_failed(100.0 * for_good, 1.0, for_good=for_good)
        assert progress.is_refused_for_good is for_good
    assert progress.rest(1, at(1), 200.0)
    assert progress.is_refused_for_good is False
    progress.has_failed(200.0, 1.0)
    assert progress.is_refused_for_good is False


def test_an_answer_to_no_write_is_a_defect(tally: Tally) -> None:
    with pytest.raises(AssertionError, match=r"^a write ended that had not begun"):
        WriteState(every(events=1), 0.0, tally).was_saved(1.0)


def test_a_time_goes_on_while_the_count_stays_and_begins_anew_with_another() -> None:
    since = Since()
    assert [since.of(*given) for given in ((0, 5.0), (0, 9.0), (3, 11.0), (3, 40.0))] == [
        *(5.0, 5.0),
        *(11.0, 11.0),
    ]
