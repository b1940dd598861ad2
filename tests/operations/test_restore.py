"""Plans of undo, import and copy."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.restore import (
    TransferState,
    UndoState,
    plan_transfer,
    plan_undo,
    positions_before,
)

POSITIONS = st.dictionaries(
    st.sampled_from(["0", "1", "2"]), st.builds(Position, st.integers(-1, 3), st.just("640"))
)


@given(POSITIONS, POSITIONS, st.sets(st.sampled_from(["0", "1", "2"])), POSITIONS)
def test_an_undo_restores_what_the_command_stored_and_nothing_else(
    former, written, done, others
) -> None:
    """The command was interrupted after it had changed the partitions in `done`."""
    ids = former.keys() | written.keys()
    present = {**former, **{id_: each for id_, each in written.items() if id_ in done}}
    for id_ in ids & done - written.keys():
        present.pop(id_, None)
    plan = plan_undo(former, written, present)
    assert {each.partition_id for each in plan} == ids
    assert all(each.state is not UndoState.CHANGED for each in plan)
    assert all(each.former == former.get(each.partition_id) for each in plan)
    # Positions before the command, as a repeated command sees them, are those of the record.
    before = positions_before(former, written, present)
    assert {**{id_: present.get(id_) for id_ in ids}, **before} == {
        id_: former.get(id_) for id_ in ids
    }
    for each in plan_undo(former, written, {**present, **others}):
        if each.state is UndoState.CHANGED:
            assert each.present not in (
                former.get(each.partition_id),
                written.get(each.partition_id),
            )


@given(POSITIONS, POSITIONS)
def test_a_transfer_never_goes_back_without_force(positions, present) -> None:
    plan = {each.partition_id: each for each in plan_transfer(positions, present)}
    assert plan.keys() == positions.keys()
    for id_, each in plan.items():
        stored = present.get(id_)
        is_later = stored is None or positions[id_].sequence_number > stored.sequence_number
        assert (each.state is TransferState.WRITE) == is_later
    forced = plan_transfer(positions, present, force=True)
    assert all(each.state in (TransferState.WRITE, TransferState.SAME) for each in forced)


def test_positions_that_cannot_be_compared_are_kept() -> None:
    def state(position: Position, present: Position | None, force: bool = False) -> TransferState:
        [each] = plan_transfer({"0": position}, {"0": present} if present else {}, force=force)
        return each.state

    assert state(Position(5), Position(None, "7")) is TransferState.UNCLEAR
    assert state(Position(5), Position(None, "7"), force=True) is TransferState.WRITE
    assert state(Position(None, "7"), Position(5), force=True) is TransferState.UNUSABLE
    assert state(Position(5), Position(5, "640")) is TransferState.SAME
    assert state(Position(5, "640"), Position(5)) is TransferState.WRITE


def test_only_the_named_partitions_are_transferred() -> None:
    plan = plan_transfer({"0": Position(1), "1": Position(2)}, {}, ["1"])
    assert [each.partition_id for each in plan] == ["1"]
