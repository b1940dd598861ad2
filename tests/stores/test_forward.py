"""Checkpoints go forward: examples of the rule of one partition."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Checkpoint, Scope
from eventhub_checkpoints.stores.hook_results import ABSENT, UNKNOWN
from eventhub_checkpoints.stores.partition_state import REMEMBERED_WRITES, CheckpointGuard, highest

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
NUMBERS = st.integers(-(2**63), 2**63 - 1)


def row(version: str, sequence_number: int | None = 5, offset: str = "500") -> Checkpoint:
    return Checkpoint(SCOPE, "0", offset, sequence_number, version)


def test_a_store_that_was_shown_nothing_refuses_nothing() -> None:
    assert CheckpointGuard().base is UNKNOWN
    assert not CheckpointGuard().refuses(0)


def test_an_adopted_row_is_the_base_and_no_floor() -> None:
    track = CheckpointGuard().adopted(row("theirs", 100))
    assert track.base == "theirs"
    assert not track.refuses(0)


def test_an_adopted_emptiness_is_a_base_too() -> None:
    assert CheckpointGuard().adopted(None).base is ABSENT


def test_adopting_clears_the_floor() -> None:
    assert CheckpointGuard("mine", floor=100).adopted(row("theirs", 7)).floor is None


@given(NUMBERS, NUMBERS)
def test_a_write_below_another_writers_row_is_refused(stored: int, wanted: int) -> None:
    assert CheckpointGuard("mine").shown(row("theirs", stored)).refuses(wanted) == (wanted < stored)


def test_an_equal_number_is_not_below() -> None:
    assert not CheckpointGuard("mine").shown(row("theirs", 100)).refuses(100)


def test_the_base_itself_raises_no_floor() -> None:
    assert CheckpointGuard("mine").shown(row("mine", 100)) == CheckpointGuard("mine")


def test_the_own_last_write_may_be_passed_downwards() -> None:
    track = CheckpointGuard().adopted(None).written("mine", forced=False)
    assert not track.shown(row("mine", 100)).refuses(0)


def test_a_row_that_is_gone_raises_no_floor() -> None:
    assert CheckpointGuard("mine").shown(None) == CheckpointGuard("mine")


def test_a_row_without_a_number_raises_no_floor() -> None:
    assert CheckpointGuard("mine").shown(row("theirs", None)).floor is None


def test_the_floor_never_falls() -> None:
    track = CheckpointGuard("mine").shown(row("theirs", 100)).shown(row("theirs, later", 7))
    assert track.floor == 100


def test_a_confirmed_write_keeps_the_floor() -> None:
    assert CheckpointGuard("mine", floor=100).written("mine, later", forced=False).floor == 100


def test_a_forced_write_clears_the_floor() -> None:
    assert CheckpointGuard("mine", floor=100).written("mine, later", forced=True).floor is None


def test_a_lost_answer_is_recognised_when_the_row_is_shown() -> None:
    track = CheckpointGuard("old").unsure(row("mine", 100)).shown(row("mine", 100))
    assert (track.base, track.floor, track.unanswered) == ("mine", None, ())


def test_a_lost_answer_is_no_excuse_for_another_writers_row() -> None:
    track = CheckpointGuard("old").unsure(row("mine", 100)).shown(row("theirs", 100))
    assert (track.base, track.floor) == ("old", 100)


def test_without_a_version_of_ours_a_lost_answer_is_recognised_by_its_position() -> None:
    track = CheckpointGuard("old").unsure(row("", 100))
    assert track.shown(row("chosen by the server", 100)).base == "chosen by the server"
    assert track.shown(row("chosen by the server", 100, "other offset")).base == "old"


def test_a_row_below_the_base_is_a_rewind_of_another_writer() -> None:
    for track in (
        CheckpointGuard().adopted(row("mine", 100)),
        CheckpointGuard().written("mine", forced=False, sequence_number=100),
        CheckpointGuard("old").unsure(row("mine", 100)).shown(row("mine", 100)),
    ):
        assert track.was_rewound(row("theirs", 99))
        assert not track.was_rewound(row("theirs", 100))
        assert not track.was_rewound(row("theirs", None))
        assert not track.was_rewound(row("mine", 99))
        assert not track.was_rewound(None)
        assert not track.unsure(row("mine, unanswered", 99)).was_rewound(
            row("mine, unanswered", 99)
        )
    assert not CheckpointGuard().adopted(None).was_rewound(row("theirs", 0))


def test_an_attempt_that_is_repeated_is_remembered_once() -> None:
    assert CheckpointGuard().unsure(row("mine")).unsure(row("mine")).unanswered == (row("mine"),)


def test_a_confirmed_write_forgets_those_without_an_answer() -> None:
    assert (
        CheckpointGuard("old").unsure(row("mine")).written("mine, later", forced=False).unanswered
        == ()
    )


def test_adopting_remembers_those_without_an_answer() -> None:
    track = CheckpointGuard("old").unsure(row("mine", 100)).adopted(row("old", 1))
    assert track.shown(row("mine", 100)).base == "mine"


@given(st.integers(0, 50))
def test_what_is_remembered_is_bounded(writes: int) -> None:
    track = CheckpointGuard()
    for number in range(writes):
        track = track.unsure(row(f"mine {number}"))
    assert len(track.unanswered) == min(writes, REMEMBERED_WRITES)


@given(st.lists(NUMBERS | st.none()))
def test_the_highest_is_that_of_the_known_numbers(numbers: list[int | None]) -> None:
    known = [number for number in numbers if number is not None]
    assert highest(numbers) == (max(known) if known else None)
