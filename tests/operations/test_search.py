"""Search for events: what matches, what was read, and why it ended."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints._shared.times import time_or_duration
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import search as module
from eventhub_checkpoints.operations.peek import PeekedEvent, newest_events
from eventhub_checkpoints.operations.search import (
    Ending,
    EventFilter,
    Search,
    position_of_kind,
    search,
    search_hub,
)
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.position import EventPosition
from waiting import LIMIT

EVENT = PeekedEvent(
    "0",
    7,
    "700",
    None,
    "customer-1",
    '{"name": "Ärger & Söhne"}'.encode(),
    {"kind": "order", "trace": "abc-1"},
    {"x-opt-region": "eu"},
)


@pytest.mark.parametrize(
    ("chosen", "is_match"),
    [
        (EventFilter(), True),
        (EventFilter(text="ärger"), True),
        (EventFilter(text="SÖHNE"), True),
        (EventFilter(text="absent"), False),
        (EventFilter(key="CUSTOMER"), True),
        (EventFilter(key="customer-2"), False),
        (EventFilter(name="KIND"), True),
        (EventFilter(name="kin"), False),
        (EventFilter(name="kind", value="ord"), True),
        (EventFilter(name="kind", value="abc"), False),
        (EventFilter(value="abc"), True),
        (EventFilter(name="x-opt-region", value="EU"), True),
        (EventFilter(text="ärger", key="customer", name="trace", value="-1"), True),
        (EventFilter(text="ärger", name="absent"), False),
    ],
)
def test_every_part_of_a_filter_has_to_match(chosen: EventFilter, is_match: bool) -> None:
    assert chosen.matches(EVENT) is is_match


def test_a_body_that_is_no_text_and_an_absent_key_match_nothing() -> None:
    event = replace(EVENT, body=b"\xff\x00", partition_key=None)
    assert not EventFilter(text="x").matches(event)
    assert not EventFilter(key="x").matches(event)
    assert EventFilter().is_all
    assert not EventFilter(key="x").is_all


@pytest.fixture(scope="module")
def address() -> Iterator[HubAddress]:
    with LocalHub({"orders": 2}) as hub:
        bodies = [f"event {number}".encode() for number in range(30)]
        hub.publish("orders", "0", bodies)
        hub.trim("orders", "0", 5)
        with EventHubProducerClient.from_connection_string(
            hub.connection_string("orders")
        ) as producer:
            event = EventData(b"marked")
            event.properties = {"kind": "special"}
            batch = producer.create_batch(partition_id="0")
            batch.add(event)
            producer.send_batch(batch)
        yield HubAddress.from_connection_string(hub.connection_string("orders"))


def searched(address: HubAddress, chosen: EventFilter, **options: object) -> Search:
    arguments: dict[str, object] = {"timeout": LIMIT, "seconds": LIMIT, **options}
    return search(address, "0", chosen, **arguments)  # type: ignore[arg-type]


def numbers(events: object) -> list[int]:
    return [event.sequence_number for event in events]  # type: ignore[attr-defined]


def test_a_search_reads_to_the_newest_event(address: HubAddress) -> None:
    found = searched(address, EventFilter(text="event 2"))
    assert numbers(found.events) == [*range(20, 30)]
    assert (found.first, found.following, found.read) == (5, 31, 26)
    assert found.size == sum(len(f"event {number}") for number in range(5, 30)) + len("marked")
    assert found.ending is Ending.NEWEST


def test_a_search_by_property_finds_its_event(address: HubAddress) -> None:
    assert numbers(searched(address, EventFilter(name="kind", value="spec")).events) == [30]


def test_a_search_ends_after_so_many_events_and_goes_on_there(address: HubAddress) -> None:
    chosen = EventFilter(text="event 1")
    found = searched(address, chosen, start=8, most_read=5)
    assert (numbers(found.events), found.ending) == ([10, 11, 12], Ending.READ)
    assert (found.first, found.following, found.read) == (8, 13, 5)
    rest = searched(address, chosen, start=found.following)
    assert numbers(rest.events) == [*range(13, 20)]


def test_a_search_ends_after_so_many_matches(address: HubAddress) -> None:
    found = searched(address, EventFilter(text="event"), start=0, most_found=3)
    assert (numbers(found.events), found.ending, found.following) == ([5, 6, 7], Ending.FOUND, 8)


def test_a_search_ends_when_its_time_is_over(address: HubAddress) -> None:
    found = searched(address, EventFilter(text="absent"), seconds=0.0)
    assert (found.read, found.ending, found.following) == (1, Ending.TIME, 6)


@pytest.mark.parametrize("start", [31, 10**6])
def test_nothing_is_read_after_the_newest_event(address: HubAddress, start: int) -> None:
    found = searched(address, EventFilter(), start=start)
    assert (list(found.events), found.read, found.following) == ([], 0, 31)
    assert found.ending is Ending.NEWEST


def test_an_empty_partition_has_nothing(address: HubAddress) -> None:
    found = search(address, "1", EventFilter(), timeout=LIMIT)
    assert (found.read, found.ending) == (0, Ending.NEWEST)
    assert newest_events(address, "1", count=3, timeout=LIMIT) == []


def test_the_newest_events_are_read_once(address: HubAddress) -> None:
    events = newest_events(address, "0", count=3, timeout=LIMIT)
    assert numbers(events) == [28, 29, 30]
    assert newest_events(address, "0", count=3, known=30, timeout=LIMIT) is None
    assert len(newest_events(address, "0", count=100, known=29, timeout=LIMIT) or []) == 26


@pytest.mark.parametrize("options", [{"most_read": 0}, {"most_found": 0}])
def test_a_search_that_may_read_nothing_is_refused(
    address: HubAddress, options: dict[str, int]
) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        searched(address, EventFilter(), **options)


def test_positions_are_named_by_number_offset_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 11, 23, 10, tzinfo=UTC)
    monkeypatch.setattr(module, "before_now", lambda text: moment - timedelta(hours=int(text[0])))
    at_time = EventPosition.from_enqueued_time
    assert position_of_kind("number", "7") == EventPosition(sequence_number=7)
    assert position_of_kind("offset", "70") == EventPosition(offset="70")
    assert position_of_kind("time", "2026-11-23T10:00") == at_time(moment)
    assert position_of_kind("ago", "2h") == at_time(moment - timedelta(hours=2))


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("number", "-1", "expected digits"),
        ("number", "x", "expected digits"),
        ("offset", "", "expected a non-empty string"),
        ("time", "yesterday", "expected a time in ISO 8601"),
        ("ago", "2", "expected a duration"),
        ("nonsense", "1", "expected number, offset, time, ago"),
    ],
)
def test_a_position_that_is_none_is_refused(kind: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        position_of_kind(kind, value)


def test_the_newest_events_of_all_partitions_are_searched(address: HubAddress) -> None:
    found = search_hub(address, EventFilter(text="event"), most_read=10, timeout=LIMIT)
    assert [*found] == ["0", "1"]
    assert numbers(found["0"].events) == [26, 27, 28, 29]
    assert (found["0"].first, found["0"].read, found["0"].ending) == (26, 5, Ending.NEWEST)
    assert (found["1"].read, found["1"].ending) == (0, Ending.NEWEST)


def test_events_since_a_time_are_searched_from_the_oldest_on(address: HubAddress) -> None:
    since = datetime.now(UTC) - timedelta(days=1)
    chosen = EventFilter(text="event")
    found = search_hub(address, chosen, since=since, most_read=10, timeout=LIMIT)
    assert numbers(found["0"].events) == [5, 6, 7, 8, 9]
    assert (found["0"].following, found["0"].ending) == (10, Ending.READ)
    later = search_hub(address, chosen, since=since + timedelta(days=2), timeout=LIMIT)
    assert [each.read for each in later.values()] == [0, 0]


def test_partitions_that_are_not_reached_in_time_are_said(address: HubAddress) -> None:
    found = search_hub(address, EventFilter(), seconds=-1.0, timeout=LIMIT)
    assert (found["0"].read, found["0"].following, found["0"].ending) == (0, 5, Ending.TIME)
    assert found["1"].ending is Ending.NEWEST


@pytest.mark.parametrize("options", [{"most_read": 0}, {"most_found": 0}])
def test_a_search_of_a_hub_that_may_read_nothing_is_refused(
    address: HubAddress, options: dict[str, int]
) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        search_hub(address, EventFilter(), **options)


@pytest.mark.parametrize(("kind", "value"), [("time", "noon"), ("ago", "15")])
def test_a_position_that_is_neither_time_nor_duration_is_refused_as_both_are(
    kind: str, value: str
) -> None:
    with pytest.raises(ConfigurationError) as of_kind:
        position_of_kind(kind, value)
    with pytest.raises(ConfigurationError) as of_either:
        time_or_duration(value)
    expected = str(of_kind.value).partition("; expected ")[2]
    assert expected
    assert expected in str(of_either.value)
