"""What goes wrong on request, seen by real clients and by a peer."""

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError, EventHubError

from eventhub_checkpoints.amqp.performatives import Attach, Detach


def test_a_consumer_goes_on_after_its_connection_was_dropped(hub, read):
    hub.publish("orders", "0", [b"one", b"two"])
    reading = read(hub, client={"retry_total": 3}, partition_id="0")
    reading.wait(2)
    assert hub.connections() > 0
    assert hub.drop_connections() > 0
    hub.publish("orders", "0", [b"three"])
    reading.wait(3)
    assert reading.numbers() == [0, 1, 2]


def test_refused_connections_fail_until_they_are_accepted_again(hub):
    hub.refuse_connections()
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        with pytest.raises(EventHubError):
            client.send_event(EventData("x"), partition_id="0")
        hub.refuse_connections(False)
        client.send_event(EventData("x"), partition_id="0")
    assert hub.partition_properties("orders", "0").last_sequence_number == 0


def test_refused_tokens_are_a_wrong_key_until_they_are_accepted_again(hub):
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        hub.refuse_tokens()
        with pytest.raises(AuthenticationError, match="CBS Token authentication failed"):
            client.get_partition_ids()
        hub.refuse_tokens(False)
        assert client.get_partition_ids() == hub.partition_ids("orders")


def test_a_detached_consumer_is_told_the_condition(hub, read_sync):
    hub.publish("orders", "0", [b"one"])
    reading = read_sync(hub, partition_id="0")
    reading.wait(1)
    detached = hub.detach_receivers(
        "orders", condition="com.microsoft:server-busy", description="come back later"
    )
    assert detached == 1
    assert "come back later" in str(reading.wait_for_error())


def test_a_mute_receiver_gets_nothing_and_one_that_attaches_again_gets_everything(hub, connect):
    peer = connect()
    peer.begin()
    peer.attach_reader()
    peer.credit(10)
    hub.publish("orders", "0", [b"one"])
    assert peer.payload()[1].endswith(b"one")
    assert hub.mute_receivers("orders", consumer_group="audit") == 0
    assert hub.mute_receivers("orders", partition_id="0") == 1
    hub.publish("orders", "0", [b"two"])
    again = connect()
    again.begin()
    again.attach_reader()
    again.credit(10)
    assert [again.payload()[1][-3:] for _ in range(2)] == [b"one", b"two"]
    cursors = sorted(receiver.next_sequence_number for receiver in hub.receivers("orders"))
    assert cursors == [1, 2]


def test_receivers_are_detached_by_partition_and_group(hub, connect):
    peer = connect()
    peer.begin()
    places = [("$Default", "0"), ("$Default", "1"), ("audit", "0")]
    for handle, (group, partition_id) in enumerate(places):
        peer.attach_reader(
            f"orders/ConsumerGroups/{group}/Partitions/{partition_id}", handle=handle
        )
    assert hub.detach_receivers("orders", partition_id="1") == 1
    assert peer.expect(Detach).handle == 1
    assert hub.detach_receivers("orders", consumer_group="AUDIT") == 1
    assert peer.expect(Detach).handle == 2
    assert hub.detach_receivers("orders", partition_id="1") == 0
    assert [receiver.consumer_group for receiver in hub.receivers("orders")] == ["$Default"]


def test_what_is_delayed_comes_in_its_order(hub, connect):
    peer = connect()
    hub.delay(0.05)
    peer.begin()
    peer.attach_reader()
    hub.publish("orders", "0", [bytes((n,)) for n in range(50)])
    peer.credit(100)
    ids = [peer.payload()[0].delivery_id for _ in range(50)]
    hub.publish("orders", "0", [b"last"])
    hub.delay(0)
    assert [*ids, peer.payload()[0].delivery_id] == list(range(51))


def test_an_impossible_delay_is_refused(hub):
    with pytest.raises(ValueError, match="-1"):
        hub.delay(-1)


def test_the_next_links_are_refused_on_request(hub, connect):
    peer = connect()
    peer.begin()
    hub.refuse_links(2, "amqp:unauthorized-access", "no")
    for handle in range(2):
        assert peer.attach_reader(handle=handle).source is None
        assert peer.expect(Detach).error.description == "no"
    peer.attach_reader(handle=2)
    assert [refused.condition for refused in hub.refused_links()] == [
        "amqp:unauthorized-access"
    ] * 2
    hub.refuse_links(5, "amqp:unauthorized-access")
    hub.refuse_links(0, "amqp:unauthorized-access")
    assert isinstance(peer.attach_reader(handle=3), Attach)
    assert len(hub.receivers("orders")) == 2


def test_the_next_deliveries_are_refused_on_request_and_not_stored(hub):
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        hub.reject_sends(1, "com.microsoft:server-busy", "come back later")
        with pytest.raises(EventHubError, match="come back later"):
            client.send_event(EventData("refused"), partition_id="0")
        client.send_event(EventData("stored"), partition_id="0")
        hub.reject_sends(5, "com.microsoft:server-busy")
        hub.reject_sends(0, "com.microsoft:server-busy")
        client.send_event(EventData("stored"), partition_id="0")
    assert hub.partition_properties("orders", "0").last_sequence_number == 1


def test_a_delivery_without_an_answer_is_stored_and_sent_again(hub):
    arguments = hub.client_arguments("orders")
    with EventHubProducerClient(**arguments, retry_backoff_factor=0.01) as client:
        hub.lose_answers(2)
        client.send_event(EventData("x"), partition_id="0")
    assert hub.partition_properties("orders", "0").last_sequence_number == 2


def test_all_faults_end_at_once_on_open_connections_too(hub):
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        client.send_event(EventData("x"), partition_id="0")
        hub.refuse_connections()
        hub.refuse_tokens()
        hub.refuse_links(3, "com.microsoft:server-busy")
        hub.reject_sends(3, "com.microsoft:server-busy")
        hub.lose_answers(3)
        hub.delay(1000)
        hub.end_faults()
        client.send_event(EventData("x"), partition_id="0")
        client.send_event(EventData("x"), partition_id="1")
    assert [len(hub.events("orders", each)) for each in ("0", "1")] == [2, 1]
