"""What the fast path does by itself; what both paths do alike is in `test_batches`."""

import socket
import threading
import time
from concurrent.futures import Future
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest
from azure.core.credentials import AccessToken
from azure.eventhub import EventHubConsumerClient, TransportType
from azure.eventhub._pyamqp import cbs
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints.amqp.performatives import Disposition, Flow
from eventhub_checkpoints.localhub import LocalHub, connection, delivery, session
from eventhub_checkpoints.receive import HubAddress, HubUnavailableError, ReadSettings
from eventhub_checkpoints.receive.address import Portion
from eventhub_checkpoints.receive.amqp import fast
from eventhub_checkpoints.receive.amqp.fast import FastStream, LinkSource
from eventhub_checkpoints.receive.amqp.outage import Outage
from streams import numbers
from waiting import LIMIT, eventually

FAST = ReadSettings(receive_path="fast")


@contextmanager
def stream_of(client, until, outage=None, settings=FAST):
    with (
        closing(LinkSource(client, "$Default")) as source,
        FastStream(
            source, "0", 0, until, settings, outage or Outage("partition 0", LIMIT), Future
        ) as stream,
    ):
        yield stream


def test_a_helping_has_at_most_as_many_rows_as_a_batch(hub, address):
    settings = ReadSettings(receive_path="fast", rows_per_batch=30)
    with address.open_stream("0", 0, 100, settings) as stream:
        sizes = [len(stream.next(LIMIT)) for _ in range(4)]
    assert max(sizes) <= 30


@pytest.mark.parametrize("prefetch", [1, 7, 1000])
def test_nothing_behind_the_range_is_asked_for(hub, address, prefetch):
    hub.publish("orders", "1", ["event"] * 5000)
    settings = ReadSettings(receive_path="fast", prefetch=prefetch)
    with address.open_stream("1", 100, 2000, settings) as stream:
        assert numbers(stream, 2000) == [*range(100, 2000)]
        assert stream.next(0.1) is None
        assert [reader.next_sequence_number for reader in hub.receivers("orders")] == [2000]


def test_what_is_not_taken_is_not_asked_for(hub, address):
    hub.publish("orders", "1", ["event"] * 5000)
    settings = ReadSettings(receive_path="fast", prefetch=10)
    with address.open_stream("1", 0, 5000, settings) as stream:
        stream.next(LIMIT)
        [reader] = hub.receivers("orders")
        assert reader.next_sequence_number <= 20 * 10 + 10


def test_more_transfers_than_a_sessions_window_are_read(hub, address, monkeypatch):
    flows, take = [], session.Session.on_frame

    def on_frame(self, performative, payload):
        if isinstance(performative, Flow) and performative.link_credit:
            behind = self._next_outgoing_id - performative.next_incoming_id
            flows.append((behind, performative.incoming_window))
        take(self, performative, payload)

    monkeypatch.setattr(session.Session, "on_frame", on_frame)
    hub.publish("orders", "1", [b""] * 70_000)
    with address.open_stream("1", 0, 70_000, FAST) as stream:
        assert numbers(stream, 70_000) == [*range(70_000)]
    assert len(flows) >= 4
    assert all(0 <= behind <= 20_000 and window == 2**16 for behind, window in flows)


def test_large_and_small_bodies_come_as_they_were_sent(hub, address):
    bodies = [bytes([number]) * size for number, size in enumerate([0, 2**20 - 99, 5, 300_000] * 5)]
    hub.publish("orders", "1", bodies)
    found, largest = [], 0
    with address.open_stream("1", 0, 20, FAST) as stream:
        while len(found) < 20:
            columns = stream.next(LIMIT)
            found += columns.bodies
            largest = max(largest, columns.size)
    assert found == bodies
    assert largest < 18 * 2**20


def test_no_thread_of_the_client_reads_beside_ours_or_is_waited_for_at_the_end(hub, address):
    with address.open_stream("0", 0, 100, FAST) as stream:
        assert numbers(stream, 100) == [*range(100)]
        assert [one.name for one in threading.enumerate() if "keep_alive" in one.name] == []


def test_a_stream_that_was_closed_has_no_events(hub, address):
    stream = address.open_stream("0", 0, 100, ReadSettings(receive_path="fast", rows_per_batch=10))
    assert stream.next(LIMIT)
    stream.close()
    assert stream.next(LIMIT) is None


def test_a_stream_that_was_closed_while_it_opened_leaves_no_connection(hub, address):
    hub.delay(0.1)
    address.open_stream("0", 0, 100, FAST).close()
    hub.delay(0)
    eventually(lambda: not [one for one in threading.enumerate() if one.name == "open-0"])
    eventually(lambda: hub.connections() == 0)
    assert hub.receivers("orders") == []


def test_an_idle_hub_is_asked_again(hub, address):
    with address.open_stream("1", 0, 1, FAST) as stream:
        assert stream.next(0.1) is None
        hub.publish("orders", "1", ["late"])
        assert numbers(stream, 1) == [0]


def test_a_server_that_says_nothing_keeps_nobody():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = HubAddress.from_connection_string(
            f"Endpoint=sb://127.0.0.1:{silent.getsockname()[1]};SharedAccessKeyName=n;"
            "SharedAccessKey=k;UseDevelopmentEmulator=true;EntityPath=orders"
        )
        with address.open_stream("0", 0, 1, FAST) as stream:
            assert stream.next(0.3) is None
        accepted, _ = silent.accept()
        accepted.close()


def test_a_server_that_goes_on_saying_nothing_is_named(monkeypatch):
    monkeypatch.setattr(fast, "OPEN_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = HubAddress.from_connection_string(
            f"Endpoint=sb://127.0.0.1:{silent.getsockname()[1]};SharedAccessKeyName=n;"
            "SharedAccessKey=k;UseDevelopmentEmulator=true;EntityPath=orders",
            retry_total=1,
        )
        with (
            address.open_stream("0", 0, 1, FAST) as stream,
            pytest.raises(HubUnavailableError, match=r"no link was attached within 0\.2 s"),
        ):
            stream.next(LIMIT)


def test_a_token_that_is_refused_is_not_waited_for(hub, monkeypatch):
    class Opening(fast.Opening):
        """Its time is up once the hub has refused a link of it."""

        def __init__(self, link, name, seconds):
            self._before = len(hub.refused_links())
            super().__init__(link, name, seconds)

        @property
        def deadline(self):
            is_refused = len(hub.refused_links()) > self._before
            return time.monotonic() + (-1.0 if is_refused else 0.05)

        @deadline.setter
        def deadline(self, _):
            pass

    monkeypatch.setattr(fast, "Opening", Opening)
    address = HubAddress.from_connection_string(hub.connection_string("orders"))
    hub.refuse_links(2, "amqp:unauthorized-access")
    with address.open_stream("0", 0, 100, FAST) as stream:
        assert numbers(stream, 100) == [*range(100)]


def test_an_idle_connection_sends_heartbeats(monkeypatch):
    """The hub counts them and never hangs up: on a busy machine any of them may be late."""
    heartbeats, take = [], connection.Connection._on_frame

    def on_frame(self, frame):
        if frame.end == frame.start:
            heartbeats.append(frame)
        take(self, frame)

    monkeypatch.setattr(connection.Connection, "_on_frame", on_frame)
    monkeypatch.setattr(connection.Connection, "_check_idle", lambda _: None)
    with LocalHub({"orders": 1}, idle_timeout=0.2) as hub:
        address = HubAddress.from_connection_string(hub.connection_string("orders"))
        with address.open_stream("0", 0, 1, FAST) as stream:
            eventually(lambda: stream.next(0.1) is None and hub.receivers("orders"))
            receivers, before = hub.receivers("orders"), len(heartbeats)
            eventually(lambda: stream.next(0.1) is None and len(heartbeats) > before + 2)
            assert hub.receivers("orders") == receivers


def test_a_reader_that_stays_away_goes_on_where_it_was():
    with LocalHub({"orders": 1}, idle_timeout=0.4) as hub:
        hub.publish("orders", "0", ["event"] * 100)
        address = HubAddress.from_connection_string(hub.connection_string("orders"))
        settings = ReadSettings(receive_path="fast", prefetch=5, rows_per_batch=20)
        with address.open_stream("0", 0, 100, settings) as stream:
            found = stream.next(LIMIT).numbers
            eventually(lambda: not hub.connections())
            assert found + numbers(stream, 100) == [*range(100)]


def test_a_connection_that_breaks_behind_events_is_opened_again(hub, address):
    hub.publish("orders", "1", [bytes(1000)] * 2000)
    settings = ReadSettings(receive_path="fast", prefetch=1500)
    with address.open_stream("1", 0, 2000, settings) as stream:
        stream.portion = Portion(1, 1)
        found = stream.next(LIMIT).numbers
        eventually(lambda: hub.receivers("orders")[0].next_sequence_number == 1500)
        hub.drop_connections()
        stream.portion = Portion(2**24, 2000)
        found += numbers(stream, 2000)
    assert found == [*range(2000)]


def test_a_hub_that_is_gone_is_the_clients_error_in_the_end(hub, address):
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), "$Default"
    )
    outage = Outage("partition 0", LIMIT, retry_total=2)
    with stream_of(client, 100, outage) as stream:
        assert stream.next(LIMIT)
        hub.refuse_connections()
        hub.drop_connections()
        with pytest.raises(EventHubError):
            numbers(stream, 200)
        hub.refuse_connections(False)


@pytest.mark.parametrize("unsettled", [False, True])
def test_what_was_sent_unsettled_is_accepted(hub, address, monkeypatch, unsettled):
    settled, take = [], session.Session.on_frame

    def on_frame(self, performative, payload):
        if isinstance(performative, Disposition):
            settled.append((performative.first, performative.last, performative.settled))
        take(self, performative, payload)

    monkeypatch.setattr(session.Session, "on_frame", on_frame)
    if unsettled:
        monkeypatch.setattr(delivery, "_REST", b"\x43\x42\x42\x40\x40\x40\x40\x40")

    def ids():
        return [one for first, last, _ in settled for one in range(first, last + 1)]

    with address.open_stream("0", 0, 100, FAST) as stream:
        assert numbers(stream, 100) == [*range(100)]
        eventually(lambda: stream.next(0.01) is None and len(ids()) >= 100 * unsettled)
    # The answer to the token was delivery 0 of the session.
    assert ids() == ([*range(1, 101)] if unsettled else [])
    assert all(one for *_, one in settled)


class Tokens:
    """A credential of which a test sees how often it was asked."""

    def __init__(self):
        self.given = 0

    def get_token(self, *_scopes, **_):
        self.given += 1
        return AccessToken(f"token {self.given}", int(cbs.utc_now().timestamp()) + 1000)


@pytest.fixture
def clock(monkeypatch):
    """Lets the client's clock for tokens go ahead."""
    now, ahead = cbs.utc_now, [0]
    monkeypatch.setattr(cbs, "utc_now", lambda: now() + timedelta(seconds=ahead[0]))
    return ahead


def client_of(hub, tokens):
    return EventHubConsumerClient(
        f"127.0.0.1:{hub.port}",
        "orders",
        "$Default",
        tokens,
        use_tls=False,
        transport_type=TransportType.Amqp,
    )


def test_a_token_is_renewed_while_events_come(hub, clock, monkeypatch):
    authorized, authorize = [], connection.Connection.authorize

    def note(self, token):
        authorize(self, token)
        authorized.append(token)

    monkeypatch.setattr(connection.Connection, "authorize", note)
    tokens = Tokens()
    hub.publish("orders", "0", ["event"] * 5900)
    with stream_of(client_of(hub, tokens), 10_000) as stream:
        found = stream.next(LIMIT).numbers
        before = hub.receivers("orders")
        clock[0] = 950
        found += numbers(stream, 6000)
        assert tokens.given == 2
        # Behind it all is read, the answer to the new token, too: it must not seem to take 150 s.
        eventually(lambda: len(authorized) == 2)
        hub.publish("orders", "0", ["event"])
        found += numbers(stream, 6001)
        for _ in range(5):  # the client is given a frame a time
            assert stream.next(0.01) is None
        # The first token has expired by now, the second one has not.
        clock[0] = 1100
        hub.publish("orders", "0", ["event"] * 3999)
        assert found + numbers(stream, 10_000) == [*range(10_000)]
        assert [one.name for one in hub.receivers("orders")] == [one.name for one in before]
    assert tokens.given == 2


def test_a_token_that_expired_while_nobody_read_costs_a_reconnect(hub, clock):
    tokens = Tokens()
    hub.publish("orders", "0", ["event"] * 9900)
    with stream_of(client_of(hub, tokens), 10_000) as stream:
        found = stream.next(LIMIT).numbers
        clock[0] = 2000
        assert found + numbers(stream, 10_000) == [*range(10_000)]
    assert tokens.given == 2
