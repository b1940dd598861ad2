"""A position that the hub does not have is told apart from every other error."""

import pickle

import pytest
from azure.eventhub._pyamqp.error import AMQPLinkError
from azure.eventhub.exceptions import ConnectError, EventHubError

from eventhub_checkpoints import InvalidCheckpointError
from eventhub_checkpoints.processing.start_position import (
    beyond,
    has_events_after,
    refused_position,
)

OFFSET = "The supplied offset '4984' is invalid. The last offset in the system is '96'"
FILTER = "The filter 'amqp.annotation.x-opt-offset > no offset' is not a valid amqp filter"
NUMBER = "The supplied sequence number '7' is invalid. The last one is '3'"


@pytest.mark.parametrize("said", [OFFSET, NUMBER, FILTER])
def test_what_the_service_says_is_found_in_the_error_of_the_client(said: str) -> None:
    error = ConnectError(
        f"Error occurred while receiving: {said} TrackingId:5, SystemTracker:7\nmore lines"
    )
    assert refused_position(error) == f"{said} TrackingId:5, SystemTracker:7"


CONDITIONS = "com.microsoft:georeplication:invalid-offset", "com.microsoft:argument-error"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_condition_is_enough(condition: str) -> None:
    error = AMQPLinkError(condition=condition.encode(), description="It is not of this replica.")
    assert refused_position(error) == f"Error condition: {condition}"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_without_a_word_is_told_by_its_name(condition: str) -> None:
    error = Exception()
    error.condition = condition  # type: ignore[attr-defined]
    assert refused_position(error) == condition


def test_what_an_error_was_raised_from_counts() -> None:
    error = EventHubError("it did not work")
    error.__cause__ = ValueError("neither")
    error.__cause__.__context__ = ConnectError(OFFSET)
    assert refused_position(error) == OFFSET


@pytest.mark.parametrize(
    "error",
    [
        EventHubError("The supplied name 'orders' is invalid."),
        ConnectError("Failed to initiate the connection due to exception: timed out"),
        ValueError(),
        AMQPLinkError(
            condition=b"com.microsoft:argument-out-of-range", description="No such partition."
        ),
    ],
)
def test_other_errors_are_none(error: Exception) -> None:
    assert refused_position(error) is None


def test_the_error_says_what_to_do_and_survives_pickling() -> None:
    error = InvalidCheckpointError("3", OFFSET)
    assert str(error).startswith(
        f"the hub has no such position in partition '3': {OFFSET}; was the hub"
    )
    assert "on_invalid_checkpoint='restart'" in str(error)
    again = pickle.loads(pickle.dumps(InvalidCheckpointError("3", OFFSET, "look there")))
    assert str(again).endswith("; look there")
    assert (again.partition_id, again.said, again.way_out) == ("3", OFFSET, "look there")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((96, "4984"), None),
        ((97, "4984"), "sequence number 97 is beyond the last, 96"),
        ((97, ""), "sequence number 97 is beyond the last, 96"),
        ((97, None), "sequence number 97 is beyond the last, 96"),
        ((96, "4985"), None),
        ((-1, "4985"), "offset 4985 is beyond the last, 4984"),
        ((None, "4985"), "offset 4985 is beyond the last, 4984"),
        ((None, "4984"), None),
        ((None, "-1"), None),
        ((None, "@latest"), None),
        ((96, "opaque:5000"), None),
        ((None, "9" * 5000), None),
        ((None, None), None),
    ],
)
def test_a_position_behind_the_last_event_is_found(
    place: tuple[object, object], expected: str | None
) -> None:
    properties = {"last_enqueued_sequence_number": 96, "last_enqueued_offset": "4984"}
    assert beyond(place, properties) == expected


def test_a_hub_with_opaque_offsets_is_compared_by_numbers_only() -> None:
    properties = {"last_enqueued_sequence_number": 96, "last_enqueued_offset": "opaque"}
    assert beyond((96, "4985"), properties) is None
    assert beyond((97, "opaque"), properties) == "sequence number 97 is beyond the last, 96"
    assert beyond((None, "another"), properties) is None


@pytest.mark.parametrize("offset", ["0", "4985"])
def test_a_decimal_offset_is_refused_by_a_hub_with_opaque_ones(offset: str) -> None:
    properties = {"last_enqueued_sequence_number": 96, "last_enqueued_offset": "opaque"}
    said = f"offset {offset} is decimal, and those of the hub are not: it is geo-replicated now"
    assert beyond((None, offset), properties) == said
    for start in ("-1", "@latest"):
        assert beyond((None, start), properties) is None


def test_where_all_events_have_expired_only_numbers_are_known() -> None:
    properties = {"last_enqueued_sequence_number": 96, "last_enqueued_offset": "-1"}
    assert beyond((96, "4984"), properties) is None
    assert beyond((None, "4984"), properties) is None
    assert beyond((97, "4984"), properties) == "sequence number 97 is beyond the last, 96"


def test_every_position_is_beyond_an_empty_hub() -> None:
    properties = {"last_enqueued_sequence_number": -1, "last_enqueued_offset": "-1"}
    assert beyond((0, "0"), properties) == "sequence number 0 is beyond the last, -1"
    assert beyond((None, "24"), properties) == "offset 24 is beyond the last, -1"
    assert beyond((None, "-1"), properties) is None
    assert beyond((-1, None), properties) is None


@pytest.mark.parametrize(
    ("start", "last", "is_empty", "has"),
    [
        (None, 4, False, True),
        ("-1", 4, False, True),
        (3, 4, False, True),
        (4, 4, False, False),
        ("@latest", 4, False, False),
        ("123", 4, False, False),
        (None, 4, True, False),
        (3, 4, True, False),
    ],
)
def test_a_hub_has_events_after_a_start_where_that_is_certain(
    start: object, last: int, is_empty: bool, has: bool
) -> None:
    properties = {"last_enqueued_sequence_number": last, "is_empty": is_empty}
    assert has_events_after(start, properties) is has
