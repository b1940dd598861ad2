"""What is copied from one store to another, and the checkpoints that a move closes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import (
    CLOSED_WAITING,
    Action,
    closed_with,
    decide,
    plan,
    position_in,
)

FIVE, NINE = Position(5, "500"), Position(9, "900")


@pytest.mark.parametrize(
    ("source", "target", "copied", "action"),
    [
        (NINE, None, None, Action.COPY),
        (NINE, FIVE, None, Action.COPY),
        (NINE, FIVE, NINE, Action.COPY),
        (NINE, NINE, None, Action.EQUAL),
        (NINE, Position(9), None, Action.COPY),
        (Position(9), NINE, None, Action.EQUAL),
        (FIVE, NINE, NINE, Action.REWIND),
        (FIVE, NINE, None, Action.NEWER),
        (FIVE, NINE, FIVE, Action.NEWER),
        (FIVE, Position(9, "other"), NINE, Action.NEWER),
        (NINE, Position(None, "100"), None, Action.UNCLEAR),
        (Position(None, "900"), FIVE, None, Action.NO_NUMBER),
        (Position(None, "900"), Position(None, "900"), None, Action.EQUAL),
        (closed_with(NINE), FIVE, None, Action.CLOSED),
        (NINE, CLOSED_WAITING, NINE, Action.CLOSED),
    ],
)
def test_a_target_is_overwritten_only_by_something_newer_or_a_rewind(
    source: Position, target: Position | None, copied: Position | None, action: Action
) -> None:
    assert decide(source, target, copied) is action


@pytest.mark.parametrize(
    ("source", "target", "action"),
    [
        (FIVE, NINE, Action.COPY),
        (FIVE, Position(None, "100"), Action.COPY),
        (FIVE, CLOSED_WAITING, Action.COPY),
        (FIVE, FIVE, Action.EQUAL),
        (Position(5), FIVE, Action.EQUAL),
        (FIVE, Position(5, "other"), Action.COPY),
        (Position(None, "500"), NINE, Action.NO_NUMBER),
        (closed_with(FIVE), NINE, Action.CLOSED),
        (closed_with(FIVE), None, Action.CLOSED),
    ],
)
def test_force_overwrites_everything_but_never_closes_a_partition(
    source: Position, target: Position | None, action: Action
) -> None:
    assert decide(source, target, force=True) is action


POSITIONS = st.dictionaries(
    st.sampled_from(["0", "1", "2", "10"]), st.builds(Position, st.integers(-1, 3), st.just("640"))
)


@given(POSITIONS, POSITIONS)
def test_a_plan_never_goes_back_without_force(source, target) -> None:
    steps = plan(source, target)
    assert [step.partition_id for step in steps] == sorted(source, key=int)
    for step in steps:
        is_later = step.target is None or step.source.sequence_number > step.target.sequence_number
        assert step.action.writes == is_later
    forced = plan(source, target, force=True)
    assert all(step.action.writes or step.source == step.target for step in forced)


@pytest.mark.parametrize("source", [FIVE, NINE])
def test_an_owned_partition_of_the_target_is_left_alone(source: Position) -> None:
    assert decide(source, Position(7), Position(7), is_owned=True) is Action.OWNED
    assert decide(source, source, is_owned=True) is Action.EQUAL


@pytest.mark.parametrize(
    "position",
    [None, Position(0, ""), Position(5, "500"), Position(-1, "-1"), Position(7, "149:0:1234")],
)
def test_a_closed_checkpoint_has_a_copy_of_the_position(position: Position | None) -> None:
    closed = closed_with(position)
    assert closed.is_closed
    assert not closed.is_waiting
    assert position_in(closed) == position


def test_a_position_can_be_stored_and_compared_as_a_row() -> None:
    assert Position.of(FIVE.as_row()) == FIVE
    assert Position.of(Position(5).as_row()) == Position(5)
    assert Position(5).as_row()["offset"] == 5
