import socket
import threading
from datetime import UTC, datetime, timedelta

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import (
    HubAddress,
    HubUnavailableError,
    first_event,
    list_partitions,
    partition_properties,
)
from eventhub_checkpoints.receive.amqp import outage
from eventhub_checkpoints.receive.hub import ask_each
from waiting import LIMIT

NOWHERE = (
    "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;"
    "UseDevelopmentEmulator=true;EntityPath=orders"
)


def test_partitions_are_listed_in_numeric_order(hub, address):
    hub.create("wide", 12)
    wide = HubAddress.from_connection_string(hub.connection_string("wide"))
    assert list_partitions(wide) == [str(number) for number in range(12)]
    assert list_partitions(address) == ["0", "1"]


def test_the_path_of_an_endpoint_is_not_part_of_the_namespace(hub, address):
    string = hub.connection_string("orders")
    endpoint = f"sb://{address.fully_qualified_namespace}"
    with_path = HubAddress.from_connection_string(string.replace(endpoint, f"{endpoint}/orders"))
    assert with_path.scope() == address.scope()
    assert list_partitions(with_path) == ["0", "1"]
    named = HubAddress.from_credential(
        "https://ns.net/orders/", "orders", "SharedAccessSignature x"
    )
    assert named.fully_qualified_namespace == "ns.net"


def test_properties_say_what_is_retained_and_what_comes_next(hub, address):
    hub.trim("orders", "0", before=30)
    found = partition_properties(address)["0"]
    assert (found.first_sequence_number, found.next_sequence_number) == (30, 100)
    assert not found.is_empty
    assert found.last_enqueued_offset == hub.partition_properties("orders", "0").last_offset


def test_expected_partitions_are_asked_for_at_once_and_need_not_be_there(hub):
    address = HubAddress.from_connection_string(hub.connection_string("orders"), retry_total=0)
    listed = partition_properties(address)
    for expected in (["0", "1"], ["1", "7"]):
        assert partition_properties(address, expected=expected) == listed


def test_a_partition_that_is_not_there_is_named(address):
    with pytest.raises(ConfigurationError, match=r"/orders has no partition 7; it has 0, 1$"):
        partition_properties(address, ["0", "7"])


def test_a_partition_that_never_held_an_event_begins_at_0(address):
    found = partition_properties(address)["1"]
    assert (found.first_sequence_number, found.next_sequence_number) == (0, 0)
    assert found.is_empty


def test_a_partition_whose_events_have_all_expired_goes_on_counting(hub, address):
    hub.trim("orders", "0")
    found = partition_properties(address, ["0"])["0"]
    assert (found.first_sequence_number, found.next_sequence_number) == (100, 100)
    assert found.is_empty


@pytest.mark.parametrize(
    ("ask", "silent"),
    [
        (lambda address: list_partitions(address, timeout=0.5), ""),
        (lambda address: partition_properties(address, ["0"], timeout=0.5), "partition 0 of "),
    ],
)
def test_a_hub_that_says_nothing_is_given_up_in_time(ask, silent):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        address = HubAddress.from_connection_string(NOWHERE.replace(":1;", f":{port};"))
        sentence = rf"^{silent}127\.0\.0\.1:{port}/orders gave no answer within 0\.5 s"
        with pytest.raises(HubUnavailableError, match=sentence):
            ask(address)


def test_a_hub_without_time_for_a_further_attempt_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(outage, "pause", lambda *_: None)
    address = HubAddress.from_connection_string(NOWHERE)
    with pytest.raises(HubUnavailableError, match=r"orders' cannot be reached.* refused"):
        list_partitions(address, timeout=LIMIT)


def test_a_hub_that_the_namespace_lacks_is_named(hub):
    absent = HubAddress.from_connection_string(
        hub.connection_string("orders"), eventhub_name="gone"
    )
    for ask in (list_partitions, partition_properties):
        with pytest.raises(ConfigurationError, match=r"^127.* has no event hub 'gone'$"):
            ask(absent)
    with pytest.raises(ConfigurationError, match="has no event hub 'gone'"):
        partition_properties(absent, ["0"])


def test_a_namespace_that_cannot_be_reached_is_named_with_the_hub():
    nowhere = HubAddress.from_connection_string(NOWHERE, retry_total=0)
    with pytest.raises(
        HubUnavailableError, match=r"^127\.0\.0\.1:1 with event hub 'orders' .* refused"
    ) as caught:
        list_partitions(nowhere)
    assert "SharedAccessKey" not in str(caught.value)


@pytest.mark.parametrize("group", ["", " ", None, 5])
def test_an_invalid_name_of_a_consumer_group_is_refused(hub, group):
    with pytest.raises(ConfigurationError, match=f"consumer_group is {group!r}; expected"):
        HubAddress.from_connection_string(hub.connection_string("orders"), group)


def test_the_first_event_at_an_offset_is_found(address):
    offset = partition_properties(address, ["0"])["0"].last_enqueued_offset
    assert first_event(address, "0", offset, True, LIMIT) == 99
    assert first_event(address, "0", "0", False, LIMIT) == 1


def test_the_first_event_at_a_time_is_found(hub, address):
    moment = datetime.now(UTC) + timedelta(hours=1)
    hub.publish("orders", "0", ["later"], enqueued_time=moment)
    assert first_event(address, "0", moment, True, LIMIT) == 100


def test_an_event_that_does_not_come_is_given_up(address):
    moment = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(HubUnavailableError, match=r"partition 0 of .* delivered no event"):
        first_event(address, "0", moment, True, 0.5)


def test_an_offset_that_the_hub_never_gave_out_names_the_partition(address):
    with pytest.raises(HubUnavailableError, match=r"partition 0 of .* at '999999999' .* again"):
        first_event(address, "0", "999999999", False, 1)


def test_questions_are_asked_at_once():
    together = threading.Barrier(5, timeout=LIMIT)
    names = [str(number) for number in range(5)]
    assert ask_each(names, lambda _: together.wait() >= 0, LIMIT) == dict.fromkeys(names, True)


def test_the_first_error_is_raised():
    with pytest.raises(ZeroDivisionError):
        ask_each(["0", "1"], lambda name: 1 // int(name), LIMIT)


def test_a_partition_that_is_gone_is_not_waited_for(hub):
    patient = HubAddress.from_connection_string(hub.connection_string("orders"))
    assert list(partition_properties(patient, expected=["0", "7"])) == ["0", "1"]


def test_of_many_that_give_no_answer_the_first_are_named() -> None:
    names = [str(number) for number in range(1000)]
    end = threading.Event()
    with pytest.raises(HubUnavailableError) as refused:
        ask_each(names, lambda _: end.wait(LIMIT), 0, describe="partition {}".format)
    end.set()
    assert str(refused.value).startswith(
        "partition 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more gave no answer within 0 s"
    )
