"""Real producers send to the hub."""

import asyncio

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints.amqp.messages import (
    BATCH_FORMAT,
    Header,
    Message,
    Properties,
    decode_message,
    section,
)
from eventhub_checkpoints.amqp.performatives import (
    SENDER,
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Rejected,
    Source,
    Target,
    Transfer,
)
from eventhub_checkpoints.amqp.types import Symbol
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.session import WINDOW


@pytest.fixture
def producer(hub):
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        yield client


def counts(hub):
    ids = hub.partition_ids("orders")
    return [hub.partition_properties("orders", i).last_sequence_number + 1 for i in ids]


def test_what_is_sent_is_read(hub, producer, read_sync):
    event = EventData("single")
    event.properties = {"n": 1, "text": "é"}
    event.message_id = "m"
    event.content_type = "text/plain"
    producer.send_event(event, partition_id="1")
    batch = producer.create_batch(partition_key="key")
    for number in range(100):
        batch.add(EventData(f"batched {number}"))
    producer.send_batch(batch)
    producer.send_batch([EventData(b"x" * 900_000)], partition_id="1")

    reading = read_sync(hub)
    reading.wait(102)
    single = next(e for _, e in reading.events if e.message_id == "m")
    assert single.body_as_str() == "single"
    assert single.properties == {b"n": 1, b"text": "é".encode()}
    assert single.content_type == "text/plain"
    batched = [(where, e) for where, e in reading.events if e.partition_key == b"key"]
    assert [e.body_as_str() for _, e in batched] == [f"batched {n}" for n in range(100)]
    assert len({where for where, _ in batched}) == 1
    assert max(len(b"".join(e.body)) for _, e in reading.events) == 900_000


def test_the_aio_producer_sends_too(hub):
    async def send():
        async with AioProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
            await client.send_batch([EventData("a"), EventData("b")], partition_id="0")
            await client.send_event(EventData("c"), partition_key="key")

    asyncio.run(send())
    assert sum(counts(hub)) == 3


def test_events_without_a_key_take_turns_and_keys_stay_together(hub, producer):
    for _ in range(4):
        producer.send_event(EventData("turn"))
    assert counts(hub) == [2, 2]
    for _ in range(4):
        producer.send_event(EventData("keyed"), partition_key="always the same")
    assert sorted(counts(hub)) == [2, 6]


def test_a_key_goes_where_the_buffered_producer_expects_the_service_to_put_it():
    keys = [f"device {number}" for number in range(40)]
    with LocalHub({"orders": 4}) as hub:
        arguments = hub.client_arguments("orders")
        with EventHubProducerClient(**arguments, retry_total=0) as client:
            for key in keys:
                client.send_event(EventData(key), partition_key=key)
        expected = [partition_of(key, hub.partition_ids("orders")) for key in keys]
        assert counts(hub) == [expected.count(each) for each in ("0", "1", "2", "3")]
    assert len(set(expected)) == 4


@pytest.mark.parametrize("options", [{}, {"partition_id": "1"}], ids=["by key", "to a partition"])
def test_a_key_that_is_too_long_for_the_service_is_rejected(hub, producer, options):
    longest = EventData("fits")
    longest.raw_amqp_message.annotations = {"x-opt-partition-key": "\U0001f682" * 64}
    producer.send_event(longest, **options)
    longer = EventData("does not fit")
    longer.raw_amqp_message.annotations = {"x-opt-partition-key": "k" * 129}
    with pytest.raises(EventHubError, match="The partition key has 129 characters"):
        producer.send_event(longer, **options)
    assert sum(counts(hub)) == 1


def test_a_producer_finds_the_hub_that_was_created_again(hub):
    arguments = hub.client_arguments("orders")
    with EventHubProducerClient(**arguments, retry_backoff_factor=0.05) as client:
        client.send_event(EventData("before"), partition_id="0")
        hub.recreate("orders")
        client.send_event(EventData("after"), partition_id="0")
    assert counts(hub) == [1, 0]


def attach_sender(peer, address="orders/Partitions/0"):
    peer.begin()
    wanted = Attach(
        name="s", role=SENDER, source=Source(), target=Target(address=address),
        initial_delivery_count=0,
    )  # fmt: skip
    peer.send(wanted)
    peer.expect(Attach)
    return peer.expect(Flow)


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("orders/Partitions/2", "com.microsoft:argument-out-of-range"),
        ("nowhere", "amqp:not-found"),
        ("orders/Partitions", "amqp:not-found"),
    ],
)
def test_a_sender_to_what_does_not_exist_is_refused(hub, connect, address, condition):
    peer = connect()
    peer.begin()
    peer.send(Attach(name="s", role=SENDER, target=Target(address=address)))
    assert peer.expect(Attach).target is None
    assert peer.expect(Detach).error.condition == condition
    assert [refused.address for refused in hub.refused_links()] == [address]


def test_a_sender_gets_credit_and_more_when_half_of_it_is_used(connect):
    peer = connect()
    granted = attach_sender(peer).link_credit
    for number in range(granted // 2):
        peer.send(
            Transfer(delivery_id=number, delivery_tag=b"t", settled=True),
            payload=section(0x75, b"x"),
        )
    flow = peer.expect(Flow)
    assert (flow.delivery_count, flow.link_credit) == (granted // 2, granted)


def test_a_delivery_of_several_frames_is_one_event(hub, connect):
    peer = connect()
    attach_sender(peer)
    payload = section(0x75, b"abc" * 100)
    peer.send(Transfer(delivery_id=7, delivery_tag=b"t", more=True), payload=payload[:100])
    peer.send(Transfer(more=True), payload=payload[100:200])
    peer.send(Transfer(), payload=payload[200:])
    outcome = peer.expect(Disposition)
    assert (outcome.first, outcome.settled, outcome.state) == (7, True, Accepted())
    assert counts(hub) == [1, 0]


def test_a_sender_learns_the_window_though_it_has_credit(connect):
    peer = connect()
    attach_sender(peer)
    half = WINDOW // 2
    frame = Transfer(delivery_id=0, delivery_tag=b"t", more=True)
    for _ in range(half):
        peer.send(frame, payload=b"x")
    flow = peer.expect(Flow)
    assert (flow.next_incoming_id, flow.incoming_window, flow.handle) == (half, WINDOW, None)


def test_an_aborted_delivery_leaves_nothing(hub, connect):
    peer = connect()
    attach_sender(peer)
    peer.send(Transfer(delivery_id=0, delivery_tag=b"t", more=True), payload=b"half of ")
    peer.send(Transfer(aborted=True))
    peer.send(Transfer(delivery_id=1, delivery_tag=b"u"), payload=section(0x75, b"whole"))
    assert peer.expect(Disposition).first == 1
    assert counts(hub) == [1, 0]


@pytest.mark.parametrize("message_format", [0, BATCH_FORMAT])
def test_a_delivery_that_is_no_message_is_rejected(connect, message_format):
    peer = connect()
    attach_sender(peer)
    peer.send(
        Transfer(delivery_id=0, delivery_tag=b"t", message_format=message_format), payload=b"junk"
    )
    state = peer.expect(Disposition).state
    assert isinstance(state, Rejected)
    assert state.error.condition == "amqp:decode-error"


def test_a_delivery_over_a_megabyte_ends_the_link(connect):
    peer = connect()
    attach_sender(peer)
    for _ in range(3):
        peer.send(Transfer(delivery_id=0, delivery_tag=b"t", more=True), payload=b"x" * 400_000)
    assert peer.expect(Detach).error.condition == "amqp:link:message-size-exceeded"


def test_sections_and_annotations_of_the_sender_are_kept(connect):
    sent = Message(
        header=Header(durable=True),
        delivery_annotations={Symbol("only for the hub"): 1},
        message_annotations={Symbol("x-opt-offset"): "forged", Symbol("x-own"): [1, "a"]},
        properties=Properties(message_id="m"),
        application_properties={"a": 1},
        value={"body": None},
    )
    peer = connect()
    attach_sender(peer)
    peer.send(Transfer(delivery_id=0, delivery_tag=b"t"), payload=sent.encode())
    peer.expect(Disposition)
    peer.attach_reader(handle=1)
    peer.credit(1, handle=1)
    stored = decode_message(peer.payload()[1])
    assert stored.header == sent.header
    assert stored.delivery_annotations is None
    assert stored.message_annotations["x-opt-offset"] == "0"
    assert stored.message_annotations["x-own"] == [1, "a"]
    assert stored.properties == sent.properties
    assert (stored.application_properties, stored.value) == ({"a": 1}, {"body": None})
