from datetime import UTC, datetime

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive import HubAddress, PartitionProperties
from eventhub_checkpoints.spark import EventPosition, StartingPositions, gap_report
from eventhub_checkpoints.spark.gaps import compare

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
HELD = PartitionProperties("0", 100, 200, "9900", NOW)
NONE_LEFT = PartitionProperties("0", 200, 200, "9900", NOW)
NEVER = PartitionProperties("0", 0, 0, "-1", NOW)


def at(number):
    return EventPosition.from_sequence_number(number, inclusive=True)


@pytest.mark.parametrize(
    ("wanted", "found", "state", "lost"),
    [
        (at(100), HELD, "ok", 0),
        (at(200), HELD, "ok", 0),
        (at(99), HELD, "expired", 1),
        (at(0), HELD, "expired", 100),
        (at(201), HELD, "ahead", None),
        (at(150), NONE_LEFT, "expired", 50),
        (at(200), NONE_LEFT, "ok", 0),
        (at(0), NEVER, "ok", 0),
        (at(1), NEVER, "ahead", None),
        (at(5), None, "unknown", None),
        (None, HELD, "missing", 100),
        (None, NEVER, "missing", 0),
        (EventPosition.from_start_of_stream(), HELD, "ok", 0),
        (EventPosition.from_end_of_stream(), NONE_LEFT, "ok", 0),
        (EventPosition.from_offset("1"), HELD, "ok", 0),
        (EventPosition.from_enqueued_time(NOW), HELD, "ok", 0),
    ],
)
def test_each_partition_is_judged_and_its_lost_events_are_counted(wanted, found, state, lost):
    report = compare("Orders", {"0": wanted} if wanted else {}, {"0": found} if found else {})
    [gap] = report.partitions
    assert (gap.state, gap.lost) == (state, lost)
    assert (gap.position, gap.properties) == (wanted, found)
    assert report.gaps == (() if state == "ok" else (gap,))


def test_partitions_of_both_sides_are_in_numeric_order_and_the_losses_are_added():
    report = compare("Orders", {"10": at(0), "2": at(90)}, {"10": HELD, "9": NONE_LEFT, "2": HELD})
    assert [one.partition_id for one in report.partitions] == ["2", "9", "10"]
    assert report.lost == 110


def test_the_report_prints_as_a_table():
    wanted = {"0": at(40), "2": EventPosition.from_end_of_stream(), "7": at(6)}
    assert str(compare("Orders", wanted, {"0": HELD, "2": NEVER, "3": HELD})).splitlines() == [
        "hub Orders: 3 of 4 partitions have gaps",
        "partition  begins at           hub holds           state    events lost",
        "0          sequence number 40  100 to 199          expired  60",
        "2          end of stream       nothing, next is 0  ok       0",
        "3          -                   100 to 199          missing  100",
        "7          sequence number 6   -                   unknown  cannot be known",
        "expired: the hub no longer retains the first requested events",
        "missing: no position for the partition; the JVM connector would begin at its end",
        "unknown: the hub has no such partition",
    ]


@pytest.fixture
def trimmed(hub):
    """Partition 0 has lost 0 to 3 of 10 events, partition 1 all of its 20."""
    hub.trim("Orders", "0", before=4)
    hub.trim("Orders", "1")
    return hub


@pytest.fixture
def client(trimmed):
    client = EventHubConsumerClient(**trimmed.client_arguments("Orders"), consumer_group="$Default")
    with client:
        yield client


EXPECTED = {
    "0": ("expired", 1),
    "1": ("expired", 15),
    "2": ("ahead", None),
    "3": ("missing", 0),
    "9": ("unknown", None),
}
WANTED = {"0": at(3), "1": at(5), "2": at(31), "9": at(0)}


def states(report):
    return {one.partition_id: (one.state, one.lost) for one in report.partitions}


def test_a_hub_is_asked_by_connection_string_address_or_client(trimmed, client):
    text = trimmed.connection_string("Orders")
    for hub in (text, HubAddress.from_connection_string(text), client):
        report = gap_report(StartingPositions("Orders", WANTED), hub)
        assert states(report) == EXPECTED
        assert report.eventhub_name == "Orders"
    assert client.get_partition_ids() == ["0", "1", "2", "3"], "a given client is not closed"


def test_numbers_are_those_of_the_last_committed_events(trimmed):
    report = gap_report({"0": 3, "1": 18, "2": 29}, trimmed.connection_string("Orders"))
    assert states(report) == {
        "0": ("ok", 0),
        "1": ("expired", 1),
        "2": ("ok", 0),
        "3": ("missing", 0),
    }


@pytest.mark.parametrize("hub", [None, 5, object()])
def test_what_is_no_hub_is_refused_by_its_type(hub):
    with pytest.raises(ConfigurationError, match="hub is of type"):
        gap_report({"0": 5}, hub)


def test_an_aio_client_is_refused(trimmed):
    from azure.eventhub.aio import EventHubConsumerClient as AioClient

    client = AioClient(**trimmed.client_arguments("Orders"), consumer_group="$Default")
    with pytest.raises(ConfigurationError, match="of the synchronous kind"):
        gap_report({"0": 5}, client)


def test_a_hub_that_does_not_answer_is_unavailable_in_time(trimmed, client):
    trimmed.delay(5.0)
    try:
        with pytest.raises(HubUnavailableError, match=r"Orders gave no answer within 0\.2 s"):
            gap_report({"0": 5}, client, timeout=0.2)
    finally:
        trimmed.delay(0.0)
