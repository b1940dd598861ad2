"""The connector's own parser and writer against what this package writes and reads."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from eventhub_checkpoints._shared.offset_words import is_taken
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark import EventPosition, StartingPositions
from eventhub_checkpoints.spark.position_formats import compact, parse_positions

MOMENT = datetime(2026, 11, 21, 10, 0, 0, 123_000, UTC)
EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECONDS = 1_795_255_200_123
GOOD = {"offset": None, "seqNo": 7, "enqueuedTime": None, "isInclusive": True}
KEY = '{"ehName":"Orders","partitionId":0}'


def fields(position):
    """A position as the connector has to understand it, which reads what came after a time."""
    time = position.enqueued_time
    return (
        position.offset,
        -1 if position.sequence_number is None else position.sequence_number,
        None if time is None else (time - EPOCH) // timedelta(milliseconds=1) - 1,
        position.inclusive,
    )


def test_all_five_forms_are_understood_as_they_are_meant(connector):
    given = {
        "0": EventPosition.from_sequence_number(2**40),
        "1": EventPosition.from_offset("24681", inclusive=True),
        "2": EventPosition.from_enqueued_time(MOMENT),
        "3": EventPosition.from_start_of_stream(),
        "4": EventPosition.from_end_of_stream(),
        "5": EventPosition.from_offset("geo:1:24681"),
    }
    assert connector.positions(StartingPositions("Orders", given).to_connector()) == {
        ("Orders", 0): (None, 2**40 + 1, None, True),
        ("Orders", 1): ("24681", -1, None, True),
        ("Orders", 2): (None, -1, MILLISECONDS - 1, True),
        ("Orders", 3): ("-1", -1, None, True),
        ("Orders", 4): ("@latest", -1, None, False),
        ("Orders", 5): ("geo:1:24681", -1, None, False),
    }


POSITIONS = st.one_of(
    st.integers(0, 2**63 - 2).map(EventPosition.from_sequence_number),
    st.builds(EventPosition.from_offset, st.text(min_size=1).filter(is_taken), st.booleans()),
    st.datetimes(
        datetime(1970, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)
    ).map(EventPosition.from_enqueued_time),
    st.just(EventPosition.from_start_of_stream()),
    st.just(EventPosition.from_end_of_stream()),
)  # fmt: skip


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(positions=st.dictionaries(st.integers(0, 2047), POSITIONS, min_size=1, max_size=16))
def test_any_positions_survive_its_parser_and_its_writer(connector, positions):
    wanted = {str(partition): position for partition, position in positions.items()}
    text = StartingPositions("Orders", wanted).to_connector()
    assert connector.positions(text) == {
        ("Orders", partition): fields(position) for partition, position in positions.items()
    }
    assert parse_positions(connector.rewritten(text), "Orders", "its own text") == wanted


def entry(key=KEY, **changed):
    return compact({key: {**GOOD, **changed}})


def at_time(text):
    return entry(seqNo=-1, enqueuedTime=text)


REFUSED = [
    entry(seqNo="7"),
    entry(isInclusive="true"),
    *(compact({KEY: {k: v for k, v in GOOD.items() if k != name}}) for name in GOOD),
    entry('{"ehName":"Orders","partitionId":"0"}'),
    entry('{"partitionId":0}'),
    entry('{"ehName":"Orders"}'),
    entry("0"),
    compact({"Orders": {"0": 7}}),
    at_time("soon"),
    at_time(1795255200),
]


def refuses(connector, text):
    with pytest.raises(Py4JJavaError) as caught:
        connector.positions(text)
    return "json4s" in caught.value.java_exception.getClass().getName()


@pytest.mark.parametrize("text", REFUSED)
def test_what_it_refuses_is_refused_here_too(connector, text):
    assert refuses(connector, text)
    with pytest.raises(ConfigurationError):
        parse_positions(text, "Orders", "startingPositions")


@pytest.mark.parametrize("time", ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.123+00:00"])
def test_it_refuses_times_that_are_not_written_as_its_own(connector, time):
    assert refuses(connector, at_time(time))


def test_microseconds_are_why_times_have_three_digits(connector):
    # What strftime("%fZ") writes is milliseconds to its lenient parser.
    text = at_time("2026-11-21T10:00:00.123456Z")
    [(_, _, time, _)] = connector.positions(text).values()
    assert time == MILLISECONDS - 123 + 123_456


def test_a_hub_in_another_case_is_refused_here_for_the_connector_reads_it_as_nothing(connector):
    text = StartingPositions("orders", {"0": EventPosition.from_sequence_number(1)}).to_connector()
    assert list(connector.positions(text)) == [("orders", 0)]
    with pytest.raises(ConfigurationError, match="case included"):
        parse_positions(text, "Orders", "startingPositions")
