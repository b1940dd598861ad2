from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints._shared.offset_words import is_taken
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.spark import EventPosition
from eventhub_checkpoints.spark.position_formats import (
    compact,
    connector_fields,
    connector_positions,
    kafka_offsets,
    kafka_positions,
    parse_position,
    parse_positions,
)

TIME = datetime(2026, 11, 21, 10, 0, 0, 123000, tzinfo=UTC)

EXACT = {
    "sequence number": (
        EventPosition.from_sequence_number(100, inclusive=True),
        '{"offset":null,"seqNo":100,"enqueuedTime":null,"isInclusive":true}',
    ),
    "after a sequence number": (
        EventPosition.from_sequence_number(99),
        '{"offset":null,"seqNo":100,"enqueuedTime":null,"isInclusive":true}',
    ),
    "offset": (
        EventPosition.from_offset("246812", inclusive=True),
        '{"offset":"246812","seqNo":-1,"enqueuedTime":null,"isInclusive":true}',
    ),
    "after an offset": (
        EventPosition.from_offset("246812"),
        '{"offset":"246812","seqNo":-1,"enqueuedTime":null,"isInclusive":false}',
    ),
    "start of stream": (
        EventPosition.from_start_of_stream(),
        '{"offset":"-1","seqNo":-1,"enqueuedTime":null,"isInclusive":true}',
    ),
    "end of stream": (
        EventPosition.from_end_of_stream(),
        '{"offset":"@latest","seqNo":-1,"enqueuedTime":null,"isInclusive":false}',
    ),
    "time": (
        EventPosition.from_enqueued_time(TIME),
        '{"offset":null,"seqNo":-1,"enqueuedTime":"2026-11-21T10:00:00.122Z","isInclusive":true}',
    ),
}

POSITIONS = st.one_of(
    st.builds(EventPosition.from_sequence_number, st.integers(0, 2**62), st.booleans()),
    st.builds(EventPosition.from_offset, st.text(min_size=1).filter(is_taken), st.booleans()),
    st.builds(
        EventPosition.from_enqueued_time,
        st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9999, 12, 30)).map(
            lambda moment: moment.replace(tzinfo=UTC)
        ),
    ),
    st.just(EventPosition.from_start_of_stream()),
    st.just(EventPosition.from_end_of_stream()),
)


@pytest.mark.parametrize(("position", "text"), EXACT.values(), ids=EXACT)
def test_a_position_is_written_as_the_connector_writes_it(position, text):
    assert compact(connector_fields(position)) == text


def test_the_keys_of_positions_are_json_texts():
    text = connector_positions(
        "hub",
        {
            "0": EventPosition.from_sequence_number(2),
            "1": EventPosition.from_start_of_stream(),
        },
    )
    assert text == (
        r'{"{\"ehName\":\"hub\",\"partitionId\":0}":'
        '{"offset":null,"seqNo":3,"enqueuedTime":null,"isInclusive":true},'
        r'"{\"ehName\":\"hub\",\"partitionId\":1}":'
        '{"offset":"-1","seqNo":-1,"enqueuedTime":null,"isInclusive":true}}'
    )


def test_kafka_is_given_sequence_numbers_and_its_two_words():
    positions = {
        "0": EventPosition.from_sequence_number(123),
        "1": EventPosition.from_start_of_stream(),
        "2": EventPosition.from_end_of_stream(),
    }
    assert kafka_offsets("my-hub", positions) == '{"my-hub":{"0":124,"1":-2,"2":-1}}'


@pytest.mark.parametrize(
    "position", [EventPosition.from_offset("77"), EventPosition.from_enqueued_time(TIME)]
)
def test_kafka_is_refused_what_is_no_sequence_number(position):
    positions = {"0": EventPosition.from_sequence_number(1), "1": position}
    with pytest.raises(ConfigurationError, match="partition 1 "):
        kafka_offsets("my-hub", positions)


@given(st.dictionaries(st.integers(0, 2000).map(str), POSITIONS), st.text(min_size=1))
def test_positions_survive_the_way_through_the_connectors_text(positions, hub):
    assert parse_positions(connector_positions(hub, positions), hub, "here") == positions


def test_after_n_is_the_same_place_as_n_plus_1_inclusive():
    assert EventPosition.from_sequence_number(0) == EventPosition.from_sequence_number(1, True)


@pytest.mark.parametrize("number", [-1, 2**63, 2**63 - 1, "5", 5.0, True, None])
def test_a_sequence_number_that_no_event_has_is_refused(number):
    with pytest.raises(ConfigurationError, match="sequence_number is"):
        EventPosition.from_sequence_number(number)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sequence_number": "x"},
        {"sequence_number": -1},
        {"sequence_number": True},
        {"offset": ""},
        {"offset": 5},
        {"enqueued_time": datetime(2026, 11, 21)},
        {"sequence_number": 1, "offset": "1"},
    ],
)
def test_fields_that_are_no_position_lead_to_the_constructors(fields):
    with pytest.raises(ConfigurationError, match="is not a position; make one with from_sequence"):
        EventPosition(**fields)


@pytest.mark.parametrize("offset", ["", None, 5])
def test_an_offset_is_text(offset):
    with pytest.raises(ConfigurationError, match="offset is"):
        EventPosition.from_offset(offset)


def test_the_two_special_offsets_are_the_ends_of_the_stream():
    assert EventPosition.from_offset("-1") == EventPosition.from_start_of_stream()
    assert EventPosition.from_offset("@latest", True) == EventPosition.from_end_of_stream()


@pytest.mark.parametrize("moment", [datetime(2026, 11, 21), "2026-11-21T10:00:00Z", None])
def test_a_time_without_a_zone_is_refused(moment):
    with pytest.raises(ConfigurationError, match="time zone"):
        EventPosition.from_enqueued_time(moment)


def test_a_time_is_utc_and_cut_to_milliseconds():
    local = datetime(2026, 11, 21, 12, 0, 0, 123999, tzinfo=timezone(timedelta(hours=2)))
    assert EventPosition.from_enqueued_time(local).enqueued_time == TIME


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"seqNo":100}', "offset, enqueuedTime, isInclusive missing"),
        ('{"offset":null,"seqNo":"1","enqueuedTime":null,"isInclusive":true}', "seqNo"),
        ('{"offset":null,"seqNo":1,"enqueuedTime":null,"isInclusive":"true"}', "isInclusive"),
        (
            '{"offset":null,"seqNo":-1,"enqueuedTime":null,"isInclusive":true}',
            "enqueuedTime is None",
        ),
        ('{"offset":null,"seqNo":-1,"enqueuedTime":"noon","isInclusive":true}', "'noon'"),
        ('{"offset":1,"seqNo":-1,"enqueuedTime":null,"isInclusive":true}', "offset is 1"),
        ("[1]", "not a JSON object"),
        ("{", "not JSON: "),
    ],
)
def test_what_the_connector_would_refuse_is_refused_with_a_reason(text, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        parse_position(text, "startingPosition")


def test_a_sequence_number_wins_over_the_other_fields():
    text = '{"offset":"5","seqNo":100,"enqueuedTime":null,"isInclusive":false}'
    assert parse_position(text, "x") == EventPosition.from_sequence_number(100, inclusive=True)


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (r"{\"ehName\":\"HUB\",\"partitionId\":0}", "case included"),
        (r"{\"ehName\":\"hub\",\"partitionId\":\"0\"}", "partitionId must be a number"),
        ("0", "without the hub; expected the connector's JSON"),
        ("hub", "does not name a hub and a partition"),
    ],
)
def test_an_entry_that_the_connector_would_ignore_is_an_error(key, complaint):
    position = compact(connector_fields(EventPosition.from_start_of_stream()))
    with pytest.raises(ConfigurationError, match=complaint):
        parse_positions(f'{{"{key}":{position}}}', "hub", "startingPositions")


@pytest.mark.parametrize("parse", [parse_positions, kafka_positions])
def test_positions_that_are_nested_too_deeply_are_refused(parse):
    with pytest.raises(
        ConfigurationError, match="option is not JSON: the JSON is nested too deeply"
    ):
        parse('{"a":' * 100_000, "Orders", "option")


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"], ids=["first", "last"]
)
def test_a_time_that_utc_does_not_have_is_refused(moment):
    with pytest.raises(ConfigurationError, match="out of range in UTC"):
        EventPosition.from_enqueued_time(datetime.fromisoformat(moment))


def test_a_partition_id_has_no_more_digits_than_an_int64():
    assert is_partition_id("9" * 19)
    assert not is_partition_id("9" * 20)
