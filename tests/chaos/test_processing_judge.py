"""The judge of workers and their journal, and the plan of `python -m crashes processing`.

Each test tells a story: what workers have written into their journal, line by line.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from crashes.__main__ import main
from crashes.harness import Result, shrunk
from crashes.processing.plan import STREAM_EVERY, drawn
from crashes.processing.rounds import Outcome
from crashes.processing.scenario import report
from crashes.processing.storage import Server
from crashes.workers.claimed import SLACK, Replay
from crashes.workers.journal import HANDS_OVER, LOSES, Journal, Line, Reading
from crashes.workers.judge import GRACE, Judge, lost
from crashes.workers.orders import OFFICIAL, WAYS, Orders, Way, chosen_orders, orders_of

POOL = Orders(name="a", way="pool", variant="sync", seed=0, events=2, max_pending=3, batch=4)
BOUNDED = replace(POOL, max_unsaved=3)
TIMED = replace(POOL, events=None, seconds=1.0)
LOOP = replace(POOL, way="batches", events=6, max_pending=60, max_unsaved=6)
LOOP_OF_PROCESSOR = replace(POOL, way="batch-processor", events=2, batch=4)


class Story:
    """A journal that a test makes up: worker `a` has one claim of partition 0, then `b` comes."""

    def __init__(self, orders: Orders, other: Orders | None = None) -> None:
        self._judge = Judge({"a": orders, "b": other or orders})
        self._at = 0.0

    @property
    def problems(self) -> list[str]:
        return [problem.split(": ", 1)[1] for problem in self._judge.problems]

    @property
    def counts(self) -> Mapping[str, int]:
        return self._judge.counts

    @property
    def ways(self) -> Mapping[str, Mapping[str, int]]:
        return self._judge.ways

    def lost(self, last: int) -> list[tuple[str, int]]:
        return self._judge.lost({"0": last})

    @property
    def replays(self) -> Sequence[Replay]:
        return self._judge.replays

    def tell(self, who: str, what: str, *numbers: int, claim: int = 1, **etags: str) -> "Story":
        """Say the same of each number."""
        for number in numbers or (0,):
            self._judge.read([Line(self._at, who, what, "0", claim, number, **etags)])
        return self

    def survive(self, node: int, number: int, etag: str) -> "Story":
        """Say what a node has while the primary is dead."""
        return self.tell("parent", "survived", number, claim=node, etag=etag)

    def wait(self, seconds: float) -> "Story":
        self._at += seconds
        return self

    def begin(self, who: str, position: int) -> "Story":
        """A worker finds this position, and begins behind it."""
        self.tell(who, "listing").tell(who, "listed", position)
        return self.tell(who, "claimed", position)

    def process(self, *numbers: int) -> "Story":
        return self.tell("a", "begun", *numbers).tell("a", "done", *numbers)


def story(orders: Orders) -> Story:
    return Story(orders).begin("a", -1)


def test_what_is_saved_before_it_is_done_is_told() -> None:
    told = story(POOL).process(0, 2).tell("a", "saving", 2)
    assert told.problems == ["2 is being saved, and 1 is not done"]
    assert story(POOL).process(0, 1, 2).tell("a", "saving", 2).problems == []


def test_what_is_found_saved_before_it_is_done_is_told() -> None:
    told = story(POOL).process(0).tell("a", "kill").begin("b", 1)
    assert told.problems == ["1 was found saved, and 1 is not done"]


def test_a_position_that_goes_back_is_told() -> None:
    told = story(POOL).process(0, 1).tell("a", "saving", 1).tell("a", "saved", 1)
    told.tell("a", "kill").begin("b", 0)
    assert told.problems == ["found 0 saved, where 1 was before"]


def test_what_is_confirmed_after_the_look_has_begun_may_be_missing() -> None:
    told = story(POOL).process(0, 1).tell("b", "listing")
    told.tell("a", "saving", 1).tell("a", "saved", 1).tell("b", "listed", -1)
    assert told.problems == []


def test_a_worker_that_leaves_an_event_out_is_told() -> None:
    assert story(POOL).process(1).problems == ["began at 1, where -1 was saved"]


@pytest.mark.parametrize(
    ("way", "problems"),
    [
        ("processor", []),
        ("batch-processor", []),
        ("pool", ["began at 2, where -1 was saved"]),
        ("batches", ["began at 2, where -1 was saved"]),
    ],
)
def test_only_a_processor_continues_after_what_it_has_finished_and_not_saved(
    way: str, problems: list[str]
) -> None:
    told = story(replace(POOL, way=way)).process(0, 1).tell("a", "closing", 0)
    told.tell("a", "claimed", -1, claim=2).tell("a", "begun", 2, claim=2)
    assert told.problems == problems


@pytest.mark.parametrize(
    ("orders", "events", "seconds", "bound"),
    [
        (POOL, 6, SLACK + 0.1, 5),
        (TIMED, 4, SLACK + 1.1, 3),
        (BOUNDED, 4, 0, 3),
        (LOOP, 7, 0, 6),
        (replace(LOOP, max_unsaved=None), 7, SLACK + 0.1, 6),
        (LOOP_OF_PROCESSOR, 7, SLACK + 0.1, 6),
    ],
    ids=[
        "by events",
        "by seconds",
        "by max_unsaved",
        "of a loop that repeats a commit",
        "of a loop that goes on",
        "of a processor of batches",
    ],
)
def test_more_events_that_are_read_again_than_may_be_are_told(
    orders: Orders, events: int, seconds: float, bound: int
) -> None:
    told = story(orders).process(*range(events)).wait(seconds).tell("a", "kill").begin("b", -1)
    assert len(told.problems) == 1
    most = f"{events} events are read again, expected at most {bound}"
    assert told.problems[0].startswith(most)
    assert told.replays == [Replay(orders.kind, events, events, bound)]


@pytest.mark.parametrize(
    ("orders", "events", "seconds"),
    [
        (POOL, 5, SLACK + 0.1),
        (POOL, 9, SLACK - 0.1),
        (TIMED, 9, SLACK + 0.9),
        (BOUNDED, 3, 9),
        (LOOP, 6, 9),
        (LOOP_OF_PROCESSOR, 6, SLACK + 0.1),
    ],
)
def test_as_many_events_as_may_be_are_read_again_without_a_word(
    orders: Orders, events: int, seconds: float
) -> None:
    told = story(orders).process(*range(events)).wait(seconds).tell("a", "kill").begin("b", -1)
    assert told.problems == []


def test_what_is_done_while_a_write_fails_counts_only_for_the_hard_bound() -> None:
    for orders, problems in (POOL, 0), (BOUNDED, 1):
        told = story(orders).process(0).tell("a", "saving", 0).tell("a", "unsaved", 0)
        told.process(*range(1, 9)).wait(SLACK + 0.1).tell("a", "kill").begin("b", -1)
        assert len(told.problems) == problems


def test_what_the_old_owner_does_after_the_new_one_has_looked_does_not_count() -> None:
    told = story(BOUNDED).process(0, 1, 2).tell("b", "listing").tell("b", "listed", -1).wait(1)
    told.tell("a", "saving", 2).tell("a", "saved", 2).process(3).tell("b", "claimed", -1)
    assert told.problems == []


def test_what_is_done_during_a_write_that_has_just_ended_does_not_count_yet() -> None:
    for seconds, problems in (0.1, 0), (SLACK + 0.1, 1):
        told = story(POOL).process(0).tell("a", "saving", 0).process(*range(1, 9)).wait(2)
        told.tell("a", "saved", 0).wait(seconds).tell("a", "kill").begin("b", 0)
        assert len(told.problems) == problems


def test_writes_after_the_new_owner_has_looked_do_not_hide_that_one_before_was_late() -> None:
    told = story(POOL).process(0).tell("a", "saving", 0).process(*range(1, 9)).wait(2)
    told.tell("b", "listing").tell("b", "listed", -1).wait(0.1).tell("a", "saved", 0)
    told.wait(0.1).tell("a", "saving", 8).tell("a", "saved", 8).tell("b", "claimed", -1)
    assert told.problems == []


def test_what_is_done_while_commits_fail_at_another_partition_does_not_count() -> None:
    told = story(replace(LOOP, max_unsaved=None)).process(0).tell("a", "uncommitted")
    told.process(*range(1, 9)).wait(SLACK + 0.1).tell("a", "kill").begin("b", -1)
    assert told.problems == []


def test_what_is_done_when_a_write_that_failed_is_not_tried_again_counts() -> None:
    told = story(POOL).process(0).tell("a", "saving", 0).tell("a", "unsaved", 0).wait(9)
    told.process(*range(1, 6)).wait(SLACK + 0.1).tell("a", "kill").begin("b", -1)
    assert told.problems[0].startswith("6 events are read again, expected at most 5")


def test_what_a_graceful_end_leaves_is_told() -> None:
    told = story(POOL).process(0, 1).tell("a", "begun", 2)
    told.tell("a", "closing", 1).tell("a", "closed").begin("b", 0)
    assert [problem.split(";")[0] for problem in told.problems] == [
        "after a graceful end 0 is saved, and 1 was finished",
        "after a graceful end [2] are begun and not done",
    ]


def test_after_a_graceful_end_only_what_has_failed_is_read_again() -> None:
    told = story(POOL).process(0, 1, 3).tell("a", "begun", 2).tell("a", "failed", 2)
    told.tell("a", "closing", 1).tell("a", "closed").begin("b", 1)
    assert told.problems == []


def handed_over(orders: Orders) -> Story:
    """The owner has done three events, and saved one, when it is asked for its partition."""
    told = story(orders).process(0, 1, 2).tell("a", "saving", 0).tell("a", "saved", 0)
    return told.tell("a", "closing", HANDS_OVER)


@pytest.mark.parametrize("orders", [POOL, LOOP, LOOP_OF_PROCESSOR], ids=lambda one: one.way)
def test_what_is_read_twice_although_the_partition_was_handed_over_is_told(orders: Orders) -> None:
    told = handed_over(orders).tell("a", "releasing").begin("b", 0)
    problem = "after a hand-over 0 is saved, and 2 was finished"
    assert [one.split(";")[0] for one in told.problems] == [problem]
    assert told.counts["hand-overs"] == told.counts["read twice"] == 1


def test_a_hand_over_that_saves_all_is_counted_and_breaks_no_rule() -> None:
    told = handed_over(LOOP).tell("a", "saving", 2).tell("a", "saved", 2)
    assert told.tell("a", "releasing").begin("b", 2).problems == []
    assert told.ways["sync batches"]["hand-overs"] == 1


def test_a_batch_that_is_begun_while_its_partition_is_handed_over_counts_as_any_other() -> None:
    told = story(LOOP).tell("a", "closing", HANDS_OVER).process(*range(7)).begin("b", -1)
    assert [one.split(";")[0] for one in told.problems] == [
        "7 events are read again, expected at most 6"
    ]


def test_what_was_not_released_or_could_not_be_saved_is_no_hand_over() -> None:
    taken = handed_over(LOOP).begin("b", 0).tell("a", "releasing")
    failed = handed_over(LOOP).tell("a", "saving", 2).tell("a", "unsaved", 2)
    failed.tell("a", "releasing").begin("b", 0)
    lost = story(LOOP).process(0, 1, 2).tell("a", "closing", LOSES).tell("a", "releasing")
    for told in (taken, failed, lost.begin("b", 0)):
        assert told.problems == []
        assert told.counts["hand-overs"] == 0


def test_two_claims_that_win_with_the_same_etag_are_told() -> None:
    told = story(POOL).tell("a", "won", etag="x", before="none")
    assert told.tell("b", "won", etag="y", before="x").problems == []
    told.tell("a", "won", etag="z", before="x")
    assert told.problems == ["b and a have both won with the etag x"]


def test_a_stored_owner_that_was_replaced_is_told() -> None:
    told = story(POOL).tell("a", "won", etag="x", before="none")
    told.tell("b", "won", etag="y", before="x").tell("parent", "stored", etag="y")
    assert told.problems == []
    told.tell("parent", "stored", etag="x")
    assert told.problems == ["the etag x is stored, which a claim of b has replaced"]


def test_an_owner_that_goes_on_although_it_knows_of_another_one_is_told() -> None:
    told = story(POOL).tell("a", "begun", 0).tell("a", "other").wait(GRACE)
    assert told.tell("a", "begun", 1).problems == []
    told.wait(1).tell("a", "begun", 2)
    assert told.problems == ["began 2, 16.0 s after it read of another owner"]


def test_what_a_frozen_worker_did_before_is_within_its_bound_until_it_had_time_to_save() -> None:
    told = story(POOL).process(*range(9)).tell("a", "frozen").wait(SLACK + 0.1)
    told.tell("a", "thawed").begin("b", -1)
    assert told.problems == []


def test_what_an_official_worker_has_written_back_is_counted_and_breaks_no_rule() -> None:
    told = story(replace(POOL, way="official")).process(0, 1)
    told.tell("a", "saving", 1).tell("a", "saved", 1).tell("a", "kill").begin("b", 0)
    assert told.problems == []
    assert told.counts["back by official"] == 1
    assert told.ways["sync official"]["back by official"] == 1


def test_what_a_stream_publishes_before_it_has_read_it_is_told() -> None:
    told = story(POOL).tell("spark", "read", 0, 2).tell("spark", "publishing", 2)
    assert told.problems == ["2 is being published, and 1 is not done"]


def test_what_a_stream_has_published_and_is_no_longer_found_is_told() -> None:
    told = story(POOL).tell("spark", "read", 0, 1).tell("spark", "published", 1)
    told.tell("parent", "listing").tell("parent", "listed", 0)
    assert told.problems == ["found 0 saved, where 1 was before"]


def failed_over(told: Story, number: int, etag: str) -> Story:
    """Two nodes survive, one with everything; the other one, with these rows, is chosen."""
    told.wait(1).survive(1, 9, "newest").survive(2, number, etag)
    return told.tell("parent", "succeeded", claim=2)


def test_what_a_fail_over_has_forgotten_is_counted_and_breaks_no_rule() -> None:
    told = story(POOL).tell("a", "won", etag="x", before="none")
    told.tell("a", "won", etag="y", before="x").tell("b", "won", etag="newest", before="y")
    for number in range(10):
        told.process(number).tell("a", "saving", number).tell("a", "saved", number)
    failed_over(told, 6, "x").begin("b", 6)
    told.tell("parent", "stored", etag="x").tell("b", "won", etag="z", before="x")
    assert told.problems == []
    assert told.counts["checkpoints forgotten"] == 3
    assert told.counts["claims forgotten"] == 2
    told.tell("a", "won", etag="zz", before="x").tell("a", "kill").begin("b", 5)
    assert told.problems == [
        "b and a have both won with the etag x",
        "found 5 saved, where 6 was before",
    ]


def test_what_is_saved_after_a_fail_over_is_judged_as_ever() -> None:
    told = story(POOL).process(0, 1).tell("a", "saving", 1).tell("a", "saved", 1)
    failed_over(told, 0, "x").wait(1).process(2)
    told.tell("a", "saving", 2).tell("a", "saved", 2).tell("a", "kill").begin("b", 0)
    assert told.problems == ["found 0 saved, where 2 was before"]


def test_where_a_fail_over_forgets_nothing_nothing_is_counted() -> None:
    told = story(POOL).process(0, 1).tell("a", "saving", 1).tell("a", "saved", 1)
    failed_over(told, 1, "none").tell("a", "kill").begin("b", 1)
    assert told.problems == []
    assert told.counts["checkpoints forgotten"] == told.counts["claims forgotten"] == 0


def test_a_hub_that_is_created_again_begins_at_its_first_event() -> None:
    told = story(POOL).process(0, 1).tell("a", "saving", 1).tell("a", "saved", 1)
    told.tell("a", "kill").tell("parent", "recreated").begin("b", -1)
    assert told.problems == []


def test_events_that_nobody_has_done_are_lost() -> None:
    assert lost({"0": {0, 2}, "1": set()}, {"0": 2, "1": -1}) == [("0", 1)]


OTHER = replace(POOL, name="b", way="each", variant="aio")


def test_what_is_done_and_what_is_broken_counts_for_the_way_of_the_worker_that_has() -> None:
    told = Story(POOL, OTHER).begin("a", -1).process(0, 1).tell("a", "saving", 1)
    told.tell("a", "saved", 1).begin("b", 0).tell("b", "begun", 1).tell("b", "done", 1)
    told.tell("b", "begun", 3).tell("b", "done", 3).tell("b", "kill")
    assert told.lost(4) == [("0", 2), ("0", 4)]
    assert told.ways == {
        "sync pool": {"sessions": 1, "events": 2, "back": 1, "lost": 1},
        "aio each": {"sessions": 1, "events": 1, "takeovers": 1, "kills": 1, "lost": 1},
    }


def test_the_report_has_a_row_for_each_store_and_each_way_on_it_and_on_all() -> None:
    results = []
    for store in ("sqlite", "redis"):
        replays = [Replay("aio pool, max_unsaved", 5, 3, 4), Replay("aio pool", 9, 1, 9)]
        ways = {"aio pool": Counter(rounds=1, events=7, kills=2)}
        outcome = Outcome(store, replays, ways)
        results.append(Result(Counter(events=7, kills=2), ["1 events are lost"], outcome))
    printed = report([*results, Result(problems=["a driver has ended"])]).replace("  ", "")
    lines = printed.splitlines()
    assert [line for line in lines if line.startswith("| all")] == [
        "| all| aio pool | 14 | 4 | 2| 0| 0| 0| 0| 0| 3 of 4 | 9 |"
    ]
    of_redis = [line for line in lines if line.startswith("| redis")]
    assert of_redis[0] == "| redis| 1| 1| 7| 2 | 0| 0| 0| 0| 0| 3 of 4 | 9 |"
    assert len(of_redis) == 2


def test_a_journal_is_read_while_it_grows_and_an_unfinished_line_later(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal, reading = Journal(path, "a"), Reading(path)
    journal.write("begun", "0", 1, 7)
    with path.open("ab") as file:
        file.write(b"1.5 a done 0 ")
    assert [line[1:] for line in reading.more()] == [("a", "begun", "0", 1, 7, "-", "-")]
    with path.open("ab") as file:
        file.write(b"1 7 - -\n")
    assert reading.more() == [Line(1.5, "a", "done", "0", 1, 7)]


def test_orders_reach_another_process() -> None:
    assert orders_of(BOUNDED.to_json()) == BOUNDED


def test_a_plan_is_drawn_from_its_seed_and_can_leave_out_each_of_its_names() -> None:
    faults = Server.faults
    assert drawn(3, "redis", faults) == drawn(3, "redis", faults) != drawn(4, "redis", faults)
    for number in range(50):
        plan = drawn(number, "blob", faults)
        for name in plan.names:
            rest = plan.without([name]).names
            assert set(plan.names) - set(rest) >= {name}
        assert plan.without(plan.names).lives == []


def ways_of(store: str, ways: Sequence[Way]) -> set[str]:
    plans = [drawn(number, store, Server.faults, ways) for number in range(30)]
    members = [member.orders for plan in plans for life in plan.lives for member in life.members]
    return {orders.way for orders in [*members, *(plan.last for plan in plans)]}


def test_workers_are_drawn_from_the_ways_that_are_chosen_and_official_ones_only_for_blob() -> None:
    assert ways_of("redis", WAYS) == {*WAYS} - {OFFICIAL}
    assert ways_of("blob", WAYS) == {*WAYS}
    chosen: list[Way] = ["batches", "batch-processor", OFFICIAL]
    assert ways_of("redis", chosen) == {"batches", "batch-processor"}
    assert ways_of("blob", chosen) == {*chosen}


@pytest.mark.parametrize("ways", ["batches,bathces", "", OFFICIAL])
def test_ways_that_no_store_has_are_refused(ways: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["processing", "--ways", ways])
    assert "argument --ways: " in capsys.readouterr().err


def test_a_loop_over_batches_returns_as_many_events_as_it_commits_at_once() -> None:
    drawn_orders = [chosen_orders(Random(number), "a", ["batches"]) for number in range(30)]
    for orders in drawn_orders:
        bound = orders.commits_after * orders.batch
        assert orders.events == bound
        assert orders.window == 0
        assert orders.max_unsaved in (None, bound)
    for name in ("hands_over", "restarts", "path", "buffer", "wait", "max_unsaved"):
        assert len({getattr(orders, name) for orders in drawn_orders}) > 1, name


def test_a_round_of_many_has_a_stream_whose_hub_is_not_created_again() -> None:
    plans = [drawn(number, "sqlite", Server.faults) for number in range(STREAM_EVERY)]
    assert [plan.seed for plan in plans if plan.stream] == [0]
    for number in range(0, 30 * STREAM_EVERY, STREAM_EVERY):
        plan = drawn(number, "sqlite", Server.faults)
        assert not any(life.recreated for life in plan.lives)
        assert plan.without(["stream"]).stream is None


def test_a_failing_plan_is_shrunk_to_the_names_that_matter() -> None:
    plan = next(
        one for one in (drawn(n, "redis", Server.faults) for n in range(99)) if len(one.names) > 5
    )
    needed = {plan.names[0], plan.names[-1]}
    left_out = shrunk(plan.names, lambda names: needed.isdisjoint(names))
    assert set(plan.names) - set(left_out) == needed
