"""Plans of an undo."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.operations.journal import positions_before
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.restore import UndoState, plan_undo

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
    plan = plan_undo(former, written, present, {})
    assert {each.partition_id for each in plan} == ids
    assert all(each.state is not UndoState.CHANGED for each in plan)
    assert all(each.former == former.get(each.partition_id) for each in plan)
    # Positions before the command, as a repeated command sees them, are those of the record.
    before = positions_before(former, written, present)
    assert {**{id_: present.get(id_) for id_ in ids}, **before} == {
        id_: former.get(id_) for id_ in ids
    }
    for each in plan_undo(former, written, {**present, **others}, {}):
        if each.state is UndoState.CHANGED:
            assert each.present not in (
                former.get(each.partition_id),
                written.get(each.partition_id),
            )
