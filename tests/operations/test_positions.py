"""File formats of positions: what is written is read, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.positions import (
    GroupPositions,
    Position,
    is_kafka,
    read_groups,
    read_kafka,
    to_csv,
    to_json,
    to_kafka,
)
from eventhub_checkpoints.records import MOST_INT64, Scope

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
NAMES = st.text("abcAB.-_,\"'$ é", min_size=1, max_size=8).filter(
    lambda name: name.strip(".") != ""
)
OFFSETS = st.sampled_from(["", "640", "-1", "149:0:1234", 'odd,"text"'])
POSITIONS = st.builds(Position, st.integers(-1, MOST_INT64), OFFSETS) | st.just(Position(None, "7"))
GROUPS = st.lists(
    st.builds(
        GroupPositions,
        st.builds(Scope, NAMES, NAMES, NAMES),
        st.dictionaries(st.integers(0, 2000).map(str), POSITIONS, min_size=1, max_size=4),
    ),
    max_size=3,
    unique_by=lambda group: group.scope,
)


@given(GROUPS)
def test_json_and_csv_are_read_as_they_were_written(groups) -> None:
    for text in (to_json(groups, more="key"), to_csv(groups)):
        assert not is_kafka(text)
        assert read_groups(text, "file") == groups


@given(st.dictionaries(st.integers(0, 2000).map(str), st.integers(0, MOST_INT64), min_size=1))
def test_the_csv_of_kafka_is_read_as_it_was_written(following) -> None:
    text = to_kafka("orders", following)
    assert is_kafka(text)
    assert read_kafka(text, "file", SCOPE) == following


def test_the_csv_of_several_groups_of_kafka_is_read_for_one() -> None:
    text = '"$default","orders",0,5\nother,orders,0,7\n$Default,orders,1,6\n'
    assert read_kafka(text, "file", SCOPE) == {"0": 5, "1": 6}


def test_a_position_in_a_row_without_an_offset_has_none() -> None:
    assert Position.of({"sequence_number": 5, "offset": 5}) == Position(5, "")
    assert (Position(5).next, Position(-1).next, Position(None, "7").next) == (6, 0, None)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"partition_id": 0, "sequence_number": 1}', "partition_id is 0; expected .* such as '0'"),
        ('{"partition_id": "0", "sequence_number": "x"}', "expected a decimal int64"),
        ('{"partition_id": "0", "sequence_number": 1.5}', "expected a decimal int64"),
        ('{"partition_id": "0"}', "sequence_number is None"),
        ('{"partition_id": "0", "offset": 5}', "offset is 5; expected a string"),
        ('{"partition_id": "0", "sequence_number": 1, "offset": 5}', "offset is 5; expected"),
        ("5", "a checkpoint is 5; expected an object"),
        (
            '{"partition_id": "0", "sequence_number": 1}, {"partition_id": "0", "offset": "7"}',
            "expected each partition once",
        ),
    ],
)
def test_a_malformed_row_is_named(row: str, said: str) -> None:
    text = to_json([GroupPositions(SCOPE)]).replace('"checkpoints": []', f'"checkpoints": [{row}]')
    with pytest.raises(ConfigurationError, match=said):
        read_groups(text, "file")


def test_a_malformed_line_of_csv_is_named() -> None:
    text = to_csv([GroupPositions(SCOPE, {"0": Position(1)})])
    with pytest.raises(ConfigurationError, match="file, line 3: sequence_number is 'x'"):
        read_groups(text + "ns,orders,group,1,x,\n", "file")
    with pytest.raises(ConfigurationError, match="file, line 3: consumer_group is"):
        read_groups(text + "ns,orders,,1,5,\n", "file")
    with pytest.raises(ConfigurationError, match="each partition once"):
        read_groups(text + text.splitlines()[1], "file")


@pytest.mark.parametrize("text", ["orders\rx,0,5\n", f"orders,0,{'5' * 200_000}\n"])
def test_csv_that_python_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^file, line 1: "):
        read_kafka(text, "file", SCOPE)
    with pytest.raises(ConfigurationError, match=r"^file, line [12]: "):
        read_groups(to_csv([]) + text, "file")


def test_a_number_that_is_too_long_to_convert_is_refused() -> None:
    for row in (f"orders,0,{'5' * 5000}", f"orders,{'5' * 5000},0"):
        with pytest.raises(ConfigurationError, match=r"file, line 1 is "):
            read_kafka(row, "file", SCOPE)


@pytest.mark.parametrize("value", ["[" * 100_000, f'{{"format": {"9" * 5000}}}'])
def test_json_that_python_cannot_read_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^file is not JSON"):
        read_groups(f'{{"a": {value}', "file")
