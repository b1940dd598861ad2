"""Streams that are read one after another over the same connection."""

from contextlib import closing
from datetime import timedelta

import pytest
from azure.core.credentials import AccessToken
from azure.eventhub._pyamqp import cbs

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.localhub import session
from eventhub_checkpoints.receive import HubAddress, ReadSettings
from eventhub_checkpoints.receive.amqp import fast
from silent_connection import silence
from waiting import LIMIT, eventually

FAST = ReadSettings(receive_path="fast")


def read(way, begin, end, partition="0", settings=FAST):
    """The sequence numbers of a range."""
    found = []
    with way.open_stream(partition, begin, end, settings) as stream:
        while begin + len(found) < end:
            columns = stream.next(LIMIT)
            if columns is None:
                break
            found += columns.numbers
    return found


def test_more_links_than_the_peer_has_handles_are_attached(
    address, accepted_connections, monkeypatch
):
    monkeypatch.setattr(session, "_HANDLE_MAX", 6)
    with closing(address.connect()) as way:
        for begin in range(12):
            assert read(way, begin, begin + 2) == [begin, begin + 1]
    assert len(accepted_connections) == 1


def test_a_reader_that_has_ended_holds_no_place_at_the_hub(hub, address):
    """The service admits five readers of a partition."""
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        eventually(lambda: hub.receivers("orders") == [])


def test_what_a_stream_has_left_unread_is_not_the_next_ones(hub, address):
    hub.publish("orders", "1", ["other"] * 100)
    few = ReadSettings(receive_path="fast", rows_per_batch=5)
    with closing(address.connect()) as way:
        with way.open_stream("0", 0, 100, few) as stream:
            assert stream.next(LIMIT).numbers[0] == 0
        with way.open_stream("1", 0, 7, FAST) as stream:
            assert stream.next(LIMIT).bodies == [b"other"] * 7


def test_an_event_under_way_is_not_the_next_streams(hub, address, accepted_connections):
    """Credit is left: the hub may send more at any time."""
    with closing(address.connect()) as way:
        hub.publish("orders", "1", ["early"])
        with way.open_stream("1", 0, 6, FAST) as stream:
            assert stream.next(LIMIT).numbers == [0]
        hub.publish("orders", "1", ["late"] * 5)
        assert read(way, 0, 100) == [*range(100)]
    assert len(accepted_connections) == 2


def test_a_connection_that_answers_nothing_is_replaced(hub, accepted_connections, monkeypatch):
    address = HubAddress.from_connection_string(hub.connection_string("orders"), retry_total=0)
    monkeypatch.setattr(fast, "REATTACH_TIMEOUT", 0.2)
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        silence(hub, accepted_connections[0])
        assert read(way, 10, 20) == [*range(10, 20)]
    assert len(accepted_connections) == 2


def test_an_idle_connection_whose_hub_has_hung_up_is_replaced(hub):
    address = HubAddress.from_connection_string(hub.connection_string("orders"), retry_total=0)
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        hub.stop()
        hub.start()
        assert read(way, 10, 20) == [*range(10, 20)]


def test_a_hub_that_is_gone_is_reported_after_the_usual_attempts(hub, accepted_connections):
    address = HubAddress.from_connection_string(hub.connection_string("orders"), retry_total=0)
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        hub.refuse_connections()
        hub.drop_connections()
        with pytest.raises(HubUnavailableError):
            read(way, 10, 20)
        hub.refuse_connections(False)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("amqp:link:stolen", "partition 0 of .* is held by another receiver"),
        ("amqp:not-found", "no consumer group"),
    ],
)
def test_a_link_that_is_refused_over_an_open_connection_is_reported_at_once(
    hub, address, accepted_connections, condition, expected
):
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        hub.refuse_links(1, condition, "because")
        with pytest.raises((ConfigurationError, HubUnavailableError), match=expected):
            read(way, 10, 20)
    assert len(accepted_connections) == 1


class Tokens:
    """A credential of which a test sees how often it was asked; a token is good for 1000 s."""

    def __init__(self):
        self.asked = 0

    def get_token(self, *_scopes, **_):
        self.asked += 1
        return AccessToken(f"token {self.asked}", int(cbs.utc_now().timestamp()) + 1000)


@pytest.mark.parametrize(("seconds", "connections"), [(950, 1), (2000, 2)])
def test_the_token_of_an_idle_connection_is_renewed_or_the_connection_replaced(
    hub, accepted_connections, monkeypatch, seconds, connections
):
    tokens, now = Tokens(), cbs.utc_now
    arguments = hub.client_arguments("orders", namespace=f"127.0.0.1:{hub.port}")
    address = HubAddress.from_credential(
        arguments["fully_qualified_namespace"],
        "orders",
        tokens,
        use_tls=False,
        transport_type=arguments["transport_type"],
        retry_total=0,
    )
    with closing(address.connect()) as way:
        assert read(way, 0, 10) == [*range(10)]
        monkeypatch.setattr(cbs, "utc_now", lambda: now() + timedelta(seconds=seconds))
        assert read(way, 10, 20) == [*range(10, 20)]
    assert tokens.asked == 2
    assert len(accepted_connections) == connections
