"""What `$management` and `$cbs` answer."""

import asyncio
from datetime import UTC, datetime

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.amqp.messages import Message, Properties, decode_message, section
from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    SENDER,
    Accepted,
    Attach,
    Disposition,
    Flow,
    Source,
    Target,
    Transfer,
)
from eventhub_checkpoints.amqp.types import Array, Int, Timestamp
from eventhub_checkpoints.localhub import LocalHub


def ask(hub, name, question, *arguments):
    client = EventHubConsumerClient(
        **hub.client_arguments(name), consumer_group="$Default", retry_total=0
    )
    with client:
        return getattr(client, question)(*arguments)


def test_the_properties_of_a_hub():
    began = datetime.now(UTC).replace(microsecond=0)
    with LocalHub({"orders": 2}) as hub:
        found = ask(hub, "orders", "get_eventhub_properties")
    assert found["eventhub_name"] == "orders"
    assert found["partition_ids"] == ["0", "1"]
    assert began <= found["created_at"] <= datetime.now(UTC)


def test_the_properties_of_a_partition_follow_its_events(hub):
    hub.publish("orders", "1", [b"body"] * 10, enqueued_time=1_700_000_000.5)
    hub.trim("orders", "1", before=4)
    told = hub.partition_properties("orders", "1")
    found = ask(hub, "orders", "get_partition_properties", "1")
    assert found == {
        "eventhub_name": "orders",
        "id": "1",
        "beginning_sequence_number": 4,
        "last_enqueued_sequence_number": 9,
        "last_enqueued_offset": told.last_offset,
        "is_empty": False,
        "last_enqueued_time_utc": datetime.fromtimestamp(1_700_000_000.5, UTC),
    }
    assert told.last_enqueued_time == 1_700_000_000.5


def test_the_aio_client_asks_too(hub):
    async def ask_both():
        client = AioConsumerClient(
            **hub.client_arguments("orders"), consumer_group="$Default", retry_total=0
        )
        async with client:
            return await client.get_partition_ids(), await client.get_partition_properties("0")

    ids, empty = asyncio.run(ask_both())
    assert ids == ["0", "1"]
    assert empty["is_empty"]
    assert (empty["last_enqueued_sequence_number"], empty["last_enqueued_offset"]) == (-1, "-1")
    assert empty["last_enqueued_time_utc"] == datetime(1, 1, 1, tzinfo=UTC)


def test_a_partition_that_does_not_exist_is_an_error(hub):
    with pytest.raises(ConnectError, match="400"):
        ask(hub, "orders", "get_partition_properties", "7")


def test_names_of_hubs_are_found_in_any_case(hub):
    assert ask(hub, "ORDERS", "get_partition_ids") == ["0", "1"]


def test_partitions_can_be_added_while_clients_look(hub):
    assert hub.add_partitions("orders", 2) == ["2", "3"]
    assert ask(hub, "orders", "get_partition_ids") == ["0", "1", "2", "3"]


def open_node(peer, node="$management", credit=10, reply_to="replies", handles=(0, 1)):
    sender, receiver = handles
    peer.send(
        Attach(
            name=f"{node}:sender", handle=sender, role=SENDER, source=Source(),
            target=Target(address=node), initial_delivery_count=0,
        )
    )  # fmt: skip
    peer.expect(Attach)
    peer.expect(Flow)
    peer.send(
        Attach(
            name=f"{node}:receiver", handle=receiver, role=RECEIVER,
            source=Source(address=node), target=Target(address=reply_to),
        )
    )  # fmt: skip
    peer.expect(Attach)
    peer.credit(credit, handle=receiver)


def request(peer, message_id="request1", handle=0, reply_to="replies", **asked):
    message = Message(
        properties=Properties(message_id=message_id, reply_to=reply_to),
        application_properties=asked,
        data=[b""],
    )
    peer.send(Transfer(handle=handle, delivery_id=0, delivery_tag=b"t"), payload=message.encode())


def reply(peer):
    """Give the answer; the disposition of the request may come before it or after it."""
    found = None
    for _ in range(2):
        _, body = peer.receive()
        if isinstance(body.performative, Transfer):
            assert body.performative.settled
            found = decode_message(body.payload)
        else:
            assert isinstance(body.performative, Disposition)
            assert body.performative.state == Accepted()
    return found


def test_values_have_the_types_that_the_java_client_wants(hub, connect):
    hub.publish("orders", "0", [b"body"])
    peer = connect()
    peer.begin()
    open_node(peer)
    request(peer, operation="READ", type="com.microsoft:eventhub", name="orders", security_token="")
    about_hub = reply(peer)
    assert about_hub.properties.correlation_id == "request1"
    told = about_hub.application_properties
    assert type(told["status-code"]) is Int
    assert told == {"status-code": 200, "status-description": "OK"}
    assert {key: type(item) for key, item in about_hub.value.items()} == {
        "name": str, "type": str, "created_at": Timestamp, "partition_count": Int,
        "partition_ids": Array, "georeplication_factor": Int,
    }  # fmt: skip
    assert about_hub.value["georeplication_factor"] == 1
    assert all(type(key) is str for key in about_hub.value)
    assert [type(item) for item in about_hub.value["partition_ids"]] == [str, str]

    request(peer, operation="READ", type="com.microsoft:partition", name="orders", partition="0")
    assert {key: type(item) for key, item in reply(peer).value.items()} == {
        "name": str, "type": str, "partition": str, "begin_sequence_number": int,
        "last_enqueued_sequence_number": int, "last_enqueued_offset": str,
        "last_enqueued_time_utc": Timestamp, "is_partition_empty": bool,
    }  # fmt: skip

    hub.replicate("orders")
    request(peer, operation="READ", type="com.microsoft:eventhub", name="orders")
    assert reply(peer).value["georeplication_factor"] == 2


def test_any_token_is_accepted(connect):
    peer = connect()
    peer.begin()
    open_node(peer, "$cbs")
    request(peer, operation="put-token", type="servicebus.windows.net:sastoken", name="sb://x")
    assert reply(peer).application_properties["status-code"] == 202


@pytest.mark.parametrize(
    ("node", "asked"),
    [
        ("$cbs", {"operation": "delete-token"}),
        ("$management", {"operation": "DELETE", "type": "com.microsoft:eventhub"}),
        ("$management", {"operation": "READ", "type": "com.microsoft:other"}),
        ("$management", {}),
    ],
    ids=repr,
)
def test_a_request_that_makes_no_sense_gets_a_status(connect, node, asked):
    peer = connect()
    peer.begin()
    open_node(peer, node)
    request(peer, **asked)
    assert reply(peer).application_properties["status-code"] == 400


def test_an_answer_goes_where_the_request_says(connect):
    peer = connect()
    peer.begin()
    open_node(peer, reply_to="first")
    open_node(peer, reply_to="second", handles=(2, 3))
    request(peer, reply_to="first", operation="READ", type="com.microsoft:eventhub", name="orders")
    handles = [
        body.performative.handle
        for body in (peer.receive()[1], peer.receive()[1])
        if isinstance(body.performative, Transfer)
    ]
    assert handles == [1]


def test_an_answer_waits_for_credit(connect):
    peer = connect()
    peer.begin()
    open_node(peer, credit=0)
    request(peer, operation="READ", type="com.microsoft:eventhub", name="orders")
    peer.expect(Disposition)
    peer.credit(1, handle=1)
    assert peer.payload()


def test_a_request_without_a_place_for_the_answer_is_rejected(connect):
    peer = connect()
    peer.begin()
    peer.send(Attach(name="s", role=SENDER, source=Source(), target=Target(address="$management")))
    peer.expect(Attach)
    peer.expect(Flow)
    peer.send(Transfer(delivery_id=0, delivery_tag=b"t"), payload=section(0x77, None))
    assert peer.expect(Disposition).state.error.condition == "amqp:not-found"


def test_a_hub_of_the_most_partitions_is_described():
    with LocalHub({"orders": 2048}) as hub:
        assert len(ask(hub, "orders", "get_partition_ids")) == 2048


def test_a_hub_that_is_created_again_has_a_later_time_of_creation():
    with LocalHub({"orders": 1}) as hub:
        times = []
        for _ in range(3):
            times.append(ask(hub, "orders", "get_eventhub_properties")["created_at"])
            hub.recreate("orders")
        assert times == sorted(set(times))
