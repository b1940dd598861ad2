"""Real consumers read from the hub."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.eventhub.exceptions import ConnectionLostError

from eventhub_checkpoints.amqp.messages import Message, Properties
from eventhub_checkpoints.amqp.types import Symbol, UInt
from eventhub_checkpoints.localhub import LocalHub
from waiting import eventually

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_event_arrives_as_it_was_published_and_tells_the_last_one(hub, read):
    began = datetime.now(UTC).replace(microsecond=0)
    hub.publish(
        "orders", "0", [b"one", "zwei é"], properties={"a": 1, "b": "x"}, partition_key="key"
    )
    last = hub.partition_properties("orders", "0")
    # Tracing frames makes the client name every field of every frame.
    reading = read(
        hub,
        client={"logging_enable": True},
        partition_id="0",
        track_last_enqueued_event_properties=True,
    )
    first, second = reading.wait(2)
    assert (first.body_as_str(), second.body_as_str()) == ("one", "zwei é")
    assert (first.sequence_number, first.offset, second.sequence_number) == (0, "0", 1)
    assert int(second.offset) > 1
    assert first.partition_key == b"key"
    assert first.properties == {b"a": 1, b"b": b"x"}
    assert began <= first.enqueued_time <= datetime.now(UTC)
    told = first._message.delivery_annotations
    assert told[b"last_enqueued_sequence_number"] == 1
    assert told[b"last_enqueued_offset"] == last.last_offset.encode()
    assert told[b"last_enqueued_time_utc"] == round(last.last_enqueued_time * 1000)
    assert told[b"runtime_info_retrieval_time_utc"] >= told[b"last_enqueued_time_utc"]


def test_every_starting_position_means_what_the_service_means(read):
    positions = {
        "-1": ("-1", False, [0, 1, 2, 3, 4]),
        "offset after": (None, False, [3, 4]),
        "offset at": (None, True, [2, 3, 4]),
        "number after": (2, False, [3, 4]),
        "number at": (2, True, [2, 3, 4]),
        "last number": (4, False, []),
        "time after": (LONG_AGO + timedelta(hours=2), False, [3, 4]),
        "time at": (LONG_AGO + timedelta(hours=2), True, [2, 3, 4]),
        "time between": (LONG_AGO + timedelta(minutes=90), False, [2, 3, 4]),
        "latest": ("@latest", False, []),
        "latest event": ("@latest", True, [4]),
    }
    with LocalHub({"orders": len(positions)}) as hub:
        starts, inclusive, expected = {}, {}, {}
        for number, (start, include, found) in enumerate(positions.values()):
            where = str(number)
            for hour in range(5):
                time = LONG_AGO + timedelta(hours=hour)
                hub.publish("orders", where, [b"body"], enqueued_time=time)
                if hour == 2 and start is None:
                    start = hub.partition_properties("orders", where).last_offset
            starts[where], inclusive[where], expected[where] = start, include, found
        reading = read(
            hub, starting_position=starts, starting_position_inclusive=inclusive, prefetch=10
        )
        reading.wait(sum(map(len, expected.values())))
        _publish_when_all_are_attached(hub, reading, list(expected))
        assert {where: reading.numbers(where) for where in expected} == {
            where: [*found, 5] for where, found in expected.items()
        }


def _publish_when_all_are_attached(hub, reading, partition_ids):
    before = len(reading.events)
    eventually(lambda: len(hub.receivers("orders")) == len(partition_ids))
    for partition_id in partition_ids:
        hub.publish("orders", partition_id, [b"later"])
    reading.wait(before + len(partition_ids))


def test_a_partition_whose_events_have_expired_may_report_no_offset(hub, read):
    hub.publish("orders", "0", [b"one", b"two"])
    last = hub.partition_properties("orders", "0").last_offset
    hub.trim("orders", "0", before=1, forget_offset=True)
    assert hub.partition_properties("orders", "0").last_offset == last, "one event is left"
    hub.trim("orders", "0", forget_offset=True)
    emptied = hub.partition_properties("orders", "0")
    assert (emptied.last_sequence_number, emptied.last_offset) == (1, "-1")
    reading = read(hub, partition_id="0", starting_position=1)
    eventually(lambda: hub.receivers("orders"))
    hub.publish("orders", "0", [b"three"])
    assert reading.wait(1)[0].sequence_number == 2
    assert int(hub.partition_properties("orders", "0").last_offset) > int(last)


@pytest.mark.parametrize("start", ["-1", "@latest", "offset", 0, LONG_AGO])
def test_a_geo_replicated_hub_has_opaque_offsets_before_and_after(hub, read, start):
    hub.publish("orders", "0", [b"one", b"two"], properties={"a": 1}, partition_key="key")
    first = hub.publish("orders", "1", [b"one"])
    hub.replicate("orders")
    hub.publish("orders", "0", [b"three"])
    last = hub.partition_properties("orders", "0").last_offset
    assert not last.isdecimal()
    before = [] if start in ("@latest", "offset") else [0, 1, 2][start == 0 :]
    begin = last if start == "offset" else start
    reading = read(hub, starting_position={"0": begin, "1": begin if begin != last else "-1"})
    eventually(lambda: len(hub.receivers("orders")) == 2)
    reading.wait(len(before))
    hub.publish("orders", "0", [b"four"])
    eventually(lambda: reading.numbers() == [*before, 3])
    assert first == range(1)
    events = [event for where, event in reading.events if where == "0"]
    assert not any(event.offset.isdecimal() for event in events)
    if start == "-1":
        assert (events[0].partition_key, events[0].properties) == (b"key", {b"a": 1})


@pytest.mark.parametrize("offset", ["0", "4984"])
def test_a_geo_replicated_hub_refuses_a_decimal_offset(hub, read, offset):
    hub.publish("orders", "0", [b"one", b"two"])
    hub.replicate("orders")
    read(hub, partition_id="0", starting_position=offset)
    eventually(hub.refused_links)
    refused = hub.refused_links()[0]
    assert refused.condition == "com.microsoft:georeplication:invalid-offset"
    assert f"'{offset}'" in refused.description


def test_what_the_aio_client_keeps_to_itself_is_in_the_journal(hub, read_aio):
    read_aio(hub, client={"consumer_group": "nobody"})
    eventually(hub.refused_links)
    refused = hub.refused_links()[0]
    assert refused.condition == "amqp:not-found"
    assert "ConsumerGroups/nobody/Partitions/" in refused.address
    assert "nobody" in refused.description


def test_a_higher_owner_level_takes_the_partition_over(hub, read):
    hub.publish("orders", "0", [b"one"])
    old = read(hub, partition_id="0", owner_level=1)
    old.wait(1)
    new = read(hub, partition_id="0", owner_level=2)
    new.wait(1)
    error = old.wait_for_error()
    assert isinstance(error, ConnectionLostError)
    assert "New receiver 'nil' with higher epoch of '2' is created" in str(error)
    assert [receiver.epoch for receiver in hub.receivers("orders")] == [2]


def test_two_groups_read_the_same_partition_side_by_side(hub, read_sync):
    hub.publish("orders", "0", [b"one"])
    for group in ("$Default", "audit"):
        read_sync(hub, client={"consumer_group": group}, partition_id="0", owner_level=0).wait(1)
    assert {receiver.consumer_group for receiver in hub.receivers("orders")} == {
        "$Default",
        "audit",
    }


def test_a_created_again_hub_starts_at_zero_and_sends_its_receivers_away(hub, read):
    hub.publish("orders", "0", [b"old"] * 5)
    reading = read(hub, partition_id="0")
    reading.wait(5)
    hub.recreate("orders")
    hub.publish("orders", "0", [b"new"])
    assert hub.partition_properties("orders", "0").last_sequence_number == 0
    # The client gives the partition up and starts again where it was told to start at first.
    reading.wait(6)
    assert reading.numbers() == [0, 1, 2, 3, 4, 0]


def test_a_body_larger_than_a_frame_arrives_whole(read_sync):
    body = bytes(range(256)) * 3500
    with LocalHub({"orders": 1}) as hub:
        hub.publish("orders", "0", [body, b"small", body])
        first, second, third = read_sync(hub).wait(3)
        assert b"".join(first.body) == b"".join(third.body) == body
        assert second.body_as_str() == "small"


def test_ten_thousand_events_arrive_in_order(hub, read_sync):
    hub.publish("orders", "0", [b"x" * 100] * 10_000)
    reading = read_sync(hub, prefetch=3000, max_batch_size=3000, partition_id="0")
    reading.wait(10_000)
    assert reading.numbers() == list(range(10_000))


def test_a_refusal_is_told_to_the_sync_client(hub, read_sync):
    reading = read_sync(hub, client={"eventhub_name": "nowhere"}, partition_id="0")
    assert "Status code: 404" in str(reading.wait_for_error())


def test_a_message_of_another_producer_arrives_as_it_was_written(hub, read):
    message = Message(
        message_annotations={"x-opt-partition-key": "door", "x-seen": 3},
        properties=Properties(content_type=Symbol("text/plain")),
        application_properties={"k": UInt(7)},
        value="a value",
    )
    assert hub.publish_messages("orders", "0", [message.encode()]) == range(1)
    [event] = read(hub, partition_id="0").wait(1)
    assert event.partition_key == b"door"
    assert event.properties == {b"k": 7}
    assert event.content_type == "text/plain"
    assert event.raw_amqp_message.annotations[b"x-seen"] == 3
    assert event.raw_amqp_message.body == b"a value"


def test_what_is_no_message_is_not_appended(hub):
    with pytest.raises(ValueError, match="an invalid AMQP message"):
        hub.publish_messages("orders", "0", [b"\x00"])
    assert hub.partition_properties("orders", "0").is_empty
