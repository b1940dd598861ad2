"""Which position a client is shown when it opens a partition, and when it opens it again."""

import itertools
from typing import Any

import pytest

from eventhub_checkpoints.processing.start_position import StartChoice, Stored
from eventhub_checkpoints.processing.watermark import Position

SAVED = (100, "saved")
LATER = (150, "another owner's")
DONE = Position(30, "done")


def choice(
    save: bool = True, start: bool = False, from_saved: bool = True, opened: bool = False
) -> StartChoice:
    made = StartChoice(save, lambda partition_id: 7 if start else None, from_saved)
    if opened:
        made.show({})
        made.opened("0")
    return made


def shown(made: StartChoice, saved: Stored | None = None) -> Stored | None:
    """What partition "0" is shown, where this is stored of it."""
    return made.show({} if saved is None else {"0": saved}).get("0")


def claimed_again(
    made: StartChoice, saved: Stored | None, finished: Position | None, now: Any
) -> Any:
    """What is shown at a second claim: something was saved at the first, and something is now."""
    shown(made, saved)
    made.opened("0")
    made.closed("0", finished)
    return shown(made, now)


@pytest.mark.parametrize(
    ("save", "start", "from_saved", "expected"),
    [
        (False, False, False, None),
        (False, False, True, SAVED),
        (False, True, False, None),
        (False, True, True, SAVED),
        (True, False, False, None),
        (True, False, True, SAVED),
        (True, True, False, SAVED),
        (True, True, True, SAVED),
    ],
)
def test_a_saved_position_is_shown_as_the_table_says(
    save: bool, start: bool, from_saved: bool, expected: Stored | None
) -> None:
    assert shown(choice(save, start, from_saved), SAVED) == expected


@pytest.mark.parametrize(
    ("save", "start", "from_saved"), [*itertools.product([False, True], repeat=3)]
)
def test_where_nothing_is_saved_the_client_begins_at_its_start(
    save: bool, start: bool, from_saved: bool
) -> None:
    assert shown(choice(save, start, from_saved)) is None


def test_a_start_position_is_asked_for_by_partition() -> None:
    made = StartChoice(True, {"1": 7}.get, from_saved=False)
    assert made.show({"0": SAVED, "1": LATER}) == {"1": LATER}


def test_listing_again_before_a_partition_is_opened_changes_nothing() -> None:
    made = choice(from_saved=False)
    assert [shown(made, SAVED), shown(made, LATER), shown(made, LATER)] == [None] * 3


def test_a_partition_that_is_open_may_be_listed_with_others() -> None:
    made = choice(from_saved=False)
    shown(made, SAVED)
    made.opened("0")
    assert made.show({"0": SAVED, "1": SAVED}) == {}
    made.closed("0", DONE)
    assert made.show({"0": SAVED, "1": SAVED}) == {"0": DONE}


@pytest.mark.parametrize(
    ("finished", "now", "expected"),
    [
        (None, SAVED, None),
        (DONE, SAVED, DONE),
        (DONE, None, DONE),
        (None, None, None),
        (DONE, LATER, LATER),
        (None, LATER, LATER),
        (DONE, DONE, DONE),
    ],
)
def test_what_was_hidden_at_first_stays_hidden_until_it_is_written_anew(
    finished: Position | None, now: Stored | None, expected: Stored | None
) -> None:
    assert claimed_again(choice(from_saved=False), SAVED, finished, now) == expected


@pytest.mark.parametrize(
    ("finished", "now", "expected"),
    [
        (None, None, None),
        (DONE, None, DONE),
        (DONE, LATER, LATER),
        (None, LATER, LATER),
    ],
)
@pytest.mark.parametrize("from_saved", [False, True])
def test_where_nothing_was_saved_at_first_whatever_is_saved_since_comes_before_what_was_finished(
    from_saved: bool, finished: Position | None, now: Stored | None, expected: Stored | None
) -> None:
    assert claimed_again(choice(from_saved=from_saved), None, finished, now) == expected


@pytest.mark.parametrize(
    ("from_saved", "saved", "finished", "now", "expected"),
    [
        (True, SAVED, DONE, SAVED, DONE),
        (True, SAVED, None, SAVED, SAVED),
        (True, SAVED, DONE, LATER, DONE),
        (True, SAVED, None, LATER, LATER),
        (False, SAVED, DONE, LATER, DONE),
        (False, SAVED, None, LATER, None),
        (False, None, None, LATER, None),
        (False, None, DONE, None, DONE),
    ],
)
def test_who_does_not_save_goes_on_from_memory(
    from_saved: bool,
    saved: Stored | None,
    finished: Position | None,
    now: Stored | None,
    expected: Stored | None,
) -> None:
    made = choice(save=False, from_saved=from_saved)
    assert claimed_again(made, saved, finished, now) == expected


def test_a_claim_in_which_nothing_was_finished_forgets_nothing() -> None:
    made = choice(opened=True)
    made.closed("0", DONE)
    made.opened("0")
    made.closed("0", None)
    assert shown(made) == DONE


def test_after_a_refusal_the_start_is_tried_whatever_is_saved() -> None:
    made = choice()
    shown(made, SAVED)
    made.opened("0")
    made.refuse("0")
    made.closed("0", None)
    assert shown(made, SAVED) is None
    made.opened("0")
    assert "0" in made.at_start


def test_after_a_refusal_nothing_of_the_old_hub_comes_back() -> None:
    made = choice(opened=True)
    made.closed("0", Position(80, "earlier"))
    made.opened("0")
    made.refuse("0")
    made.closed("0", Position(90, "finished before it was refused"))
    assert shown(made, SAVED) is None
    made.opened("0")
    made.closed("0", None)
    assert shown(made, SAVED) is None


def test_after_a_restart_what_is_saved_since_is_shown() -> None:
    made = choice()
    shown(made, SAVED)
    made.opened("0")
    made.refuse("0")
    made.closed("0", None)
    shown(made, SAVED)
    made.opened("0")
    made.closed("0", DONE)
    assert shown(made, SAVED) == DONE
    assert shown(made, (20, "saved since")) == (20, "saved since")


def test_it_is_known_who_was_opened_at_the_start() -> None:
    made = choice()
    made.opened("0")
    assert made.at_start == set(), "the client has not asked for positions"
    made.show({"1": SAVED})
    made.opened("0")
    made.opened("1")
    assert made.at_start == {"0"}
    made.closed("0", DONE)
    made.show({"1": SAVED})
    made.opened("0")
    assert made.at_start == set()
