"""Dead letters as JSON and as events, and what a log of them says; without I/O."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage
from hypothesis import given
from hypothesis import strategies as st

from dead_letter import BEGAN, DEAD_LETTER
from eventhub_checkpoints.dead_letters.dead_letter import (
    LONGEST_MESSAGE,
    DeadLetter,
    Mark,
    StoredDeadLetter,
    current_dead_letters,
    from_plain,
    to_amqp,
    to_plain,
)

CONTEXT = SimpleNamespace(
    fully_qualified_namespace="ns.servicebus.windows.net",
    eventhub_name="orders",
    consumer_group="billing",
    partition_id="0",
)
# NUL and lone surrogates: JSON has the first, and AMQP strings cannot have the second.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.uuids(),
    st.binary(min_size=1, max_size=5).map(lambda data: data + b"\xff"),
)
DEAD_LETTERS = st.builds(
    replace,
    st.just(DEAD_LETTER),
    body=st.binary(max_size=20),
    properties=st.dictionaries(TEXTS.filter(lambda name: name[:12] != "dead-letter-"), VALUES),
    partition_key=st.none() | TEXTS,
    offset=st.none() | TEXTS,
    error_message=TEXTS,
    enqueued_time=st.none() | st.just(BEGAN),
    redrives=st.integers(0, 5),
)


@given(DEAD_LETTERS)
def test_json_keeps_everything(dead_letter: DeadLetter) -> None:
    assert DeadLetter.from_json(dead_letter.to_json()) == dead_letter
    assert "\n" not in dead_letter.to_json()


@given(DEAD_LETTERS)
def test_an_event_keeps_everything_but_the_partition_key(dead_letter: DeadLetter) -> None:
    event = dead_letter.to_event()
    sent = {
        name: value["VALUE"] if isinstance(value, dict) else value
        for name, value in event.properties.items()
    }
    event.properties = sent
    assert DeadLetter.from_event(event) == replace(dead_letter, partition_key=None)


def test_a_number_that_is_not_finite_is_json_too() -> None:
    for value in (float("inf"), float("-inf")):
        assert from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False))) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2**31, "LONG"), (-(2**31) - 1, "LONG"), (2**63, "ULONG"), (2**31 - 1, None), (True, None)],
)
def test_a_number_beyond_32_bits_is_sent_with_its_type(value: int, kind: str | None) -> None:
    assert to_amqp(value) == (value if kind is None else {"TYPE": kind, "VALUE": value})


def test_a_dead_letter_has_what_the_handler_raised_without_secrets() -> None:
    error = ConnectionError("postgresql://app:S3CR3T@host refused SharedAccessKey=S3CR3T=")
    dead_letter = DeadLetter.of(CONTEXT, EventData(b"body"), error)
    assert dead_letter.error_type == "ConnectionError"
    assert "S3CR3T" not in dead_letter.to_json()
    assert "host refused" in dead_letter.error_message
    long = DeadLetter.of(CONTEXT, EventData(b"body"), ValueError("x" * 10_000))
    assert len(long.error_message) == LONGEST_MESSAGE + 3


def test_a_body_that_is_no_bytes_is_kept_as_its_string() -> None:
    # The client makes an event of a received message in this way.
    message = EventData._from_message(
        None, AmqpAnnotatedMessage(value_body={b"order": 1}, annotations={})
    )
    dead_letter = DeadLetter.of(CONTEXT, message, ValueError())
    assert (dead_letter.body, dead_letter.properties) == (b"{'order': 1}", {})


def test_the_id_names_an_event_of_a_group_whatever_its_case() -> None:
    again = replace(DEAD_LETTER, time=BEGAN + timedelta(days=1), error_message="other")
    assert again.id == DEAD_LETTER.id
    scope = DEAD_LETTER.scope._replace(consumer_group="BILLING")
    assert replace(DEAD_LETTER, scope=scope).id == DEAD_LETTER.id
    others = {
        replace(DEAD_LETTER, scope=DEAD_LETTER.scope._replace(consumer_group="other")).id,
        replace(DEAD_LETTER, partition_id="1").id,
        replace(DEAD_LETTER, sequence_number=17).id,
        # A hub that was created anew counts from 0 again.
        replace(DEAD_LETTER, enqueued_time=BEGAN + timedelta(days=1)).id,
    }
    assert len(others - {DEAD_LETTER.id}) == 4


def mark(minutes: float, hub: str | None = "ns/orders") -> Mark:
    return Mark(DEAD_LETTER.id, DEAD_LETTER.time + timedelta(minutes=minutes), hub)


@pytest.mark.parametrize("kind", [DeadLetter, Mark])
def test_a_mark_is_no_dead_letter_and_a_dead_letter_no_mark(kind: Any) -> None:
    other = mark(1) if kind is DeadLetter else DEAD_LETTER
    with pytest.raises((ValueError, TypeError, LookupError)):
        kind.from_event(other.to_event())
    with pytest.raises((ValueError, TypeError, LookupError)):
        kind.from_event(EventData(b"something else"))


@pytest.mark.parametrize("hub", ["ns/orders", None])
def test_a_mark_survives_json_and_events(hub: str | None) -> None:
    assert Mark.from_dict(json.loads(json.dumps(mark(1, hub).as_dict()))) == mark(1, hub)
    assert Mark.from_event(mark(1, hub).to_event()) == mark(1, hub)


def test_a_mark_is_not_older_than_its_dead_letter_even_if_a_clock_is_behind() -> None:
    ahead = replace(DEAD_LETTER, time=datetime.now(UTC) + timedelta(hours=1))
    assert Mark.of(ahead, "ns/orders").time == ahead.time


def test_a_log_is_read_in_any_order() -> None:
    other = replace(DEAD_LETTER, sequence_number=3, time=BEGAN)
    redriven = StoredDeadLetter(DEAD_LETTER, mark(2).time, "ns/orders")
    entries = [mark(2), DEAD_LETTER, mark(1), other]
    assert current_dead_letters(entries) == [StoredDeadLetter(other), redriven]
    assert current_dead_letters(reversed(entries)) == [StoredDeadLetter(other), redriven]
    assert current_dead_letters([DEAD_LETTER, mark(1), mark(2, None)]) == []


def test_an_event_that_fails_again_is_one_dead_letter_that_is_not_redriven() -> None:
    again = replace(DEAD_LETTER, time=DEAD_LETTER.time + timedelta(minutes=5))
    assert current_dead_letters([DEAD_LETTER, again]) == [StoredDeadLetter(again)]
    assert current_dead_letters([DEAD_LETTER, mark(1), again]) == [StoredDeadLetter(again)]
    assert current_dead_letters([DEAD_LETTER, mark(1, None), again]) == [StoredDeadLetter(again)]


def test_the_dead_letter_of_a_redriven_event_has_its_own_origin_and_counts() -> None:
    event = replace(DEAD_LETTER, redrives=1).to_event()
    dead_letter = DeadLetter.of(CONTEXT, event, ValueError("again"))
    assert (dead_letter.redrives, dead_letter.error_message) == (1, "again")
    assert dead_letter.properties == DEAD_LETTER.properties


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partition_id", 0),
        ("sequence_number", 1.5),
        ("sequence_number", float("inf")),
        ("redrives", True),
        ("offset", 966),
        ("partition_key", ["customer-7"]),
        ("error_type", None),
        ("time", "2026-11-23T25:01:00"),
        ("time", 5),
        ("enqueued_time", "noon"),
        ("body_encoding", "idna"),
        ("body", 5),
        ("properties", {"a": []}),
        ("properties", {"a": {"float": 10**400}}),
        ("properties", {"a": {"bytes": "?"}}),
        ("properties", {"a": 2**64}),
        ("amqp_properties", {"__class__": "x"}),
    ],
)
def test_what_is_not_a_dead_letter_is_refused_when_it_is_read(name: str, value: Any) -> None:
    row = {**json.loads(DEAD_LETTER.to_json()), name: value}
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        DeadLetter.from_dict(row)


@pytest.mark.parametrize(
    ("name", "value"),
    [("redriven", ["0"]), ("to", None), ("time", "2026-11-23T25:01:00"), ("time", None)],
)
def test_what_is_not_a_mark_is_refused_when_it_is_read(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Mark.from_dict({**mark(1).as_dict(), name: value})


@pytest.mark.parametrize("redrives", ["often", b"\xff", 1.5, None])
def test_an_event_that_has_another_programs_count_of_redrives_is_recorded(redrives: Any) -> None:
    event = EventData(b"body")
    event.properties = {"dead-letter-redrives": redrives}
    assert DeadLetter.of(CONTEXT, event, ValueError()).redrives == 0
