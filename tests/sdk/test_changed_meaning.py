"""A client whose private attribute keeps its name and changes its meaning: nothing raises."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from azure.eventhub._pyamqp.link import Link
from azure.eventhub._pyamqp.sender import SenderLink
from azure.eventhub._pyamqp.session import Session

from client_threads import wait_for_clients
from eventhub_checkpoints.localhub import LocalHub, links
from eventhub_checkpoints.localhub import session as hub_session
from eventhub_checkpoints.localhub.delivery import EventLink
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.amqp import queries
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.sdk import fallback, stall
from eventhub_checkpoints.sdk.fallback import FastPathError
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.amqp import fast
from eventhub_checkpoints.send.arrow import send_batches
from streams import numbers
from waiting import LIMIT

COUNT = 5000
SHORT = 0.4
"""Seconds after which a link has stalled here. A slow machine may find it sooner, which changes
nothing that the tests compare."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "STALLED", SHORT)
    monkeypatch.setattr(fast, "STALLED", SHORT)
    monkeypatch.setattr(fallback, "_stalls", type(fallback._stalls)())


@pytest.fixture(scope="module")
def server() -> Iterator[LocalHub]:
    with LocalHub({"orders": 1}) as running:
        yield running
        wait_for_clients()


@pytest.fixture
def hub(server: LocalHub) -> LocalHub:
    server.recreate("orders")
    return server


@pytest.fixture
def address(hub: LocalHub) -> HubAddress:
    return HubAddress.from_connection_string(hub.connection_string("orders"))


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where each receiver that the hub attaches begins, in order."""
    begins: list[int] = []
    listen = EventLink.listen

    def noting(self: EventLink, start: int) -> None:
        begins.append(start)
        listen(self, start)

    monkeypatch.setattr(EventLink, "listen", noting)
    return begins


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    records = [each for each in caplog.records if each.name.startswith("eventhub_checkpoints")]
    return [each.getMessage() for each in records if each.levelno >= logging.WARNING]


# Receiving


def link_counts_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's link keeps `delivery_count`, and sends another count in its flow frames."""
    send, take = Link._outgoing_flow, Session._incoming_transfer

    def counting(self: Any, frame: Any) -> None:
        link = self._input_handles[frame[0]]
        link.own_count = getattr(link, "own_count", 0) + (not frame[5])
        take(self, frame)

    def sending(self: Any, **settings: Any) -> None:
        kept = self.delivery_count
        if isinstance(self, SenderLink):
            return send(self, **settings)
        self.delivery_count = getattr(self, "own_count", 0)
        try:
            return send(self, **settings)
        finally:
            self.delivery_count = kept

    monkeypatch.setattr(Session, "_incoming_transfer", counting)
    monkeypatch.setattr(Link, "_outgoing_flow", sending)


def session_counts_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's session keeps `next_incoming_id`, and sends another one in its flow frames."""
    send, take = Session._outgoing_flow, Session._incoming_transfer
    # So few events use it up; a client by itself does not let it get so far.
    begin = Session.__init__

    def beginning(self: Any, *args: Any, **settings: Any) -> None:
        begin(self, *args, **{**settings, "incoming_window": 1000})

    def counting(self: Any, frame: Any) -> None:
        self.own_id = getattr(self, "own_id", 0) + 1
        take(self, frame)

    def sending(self: Any, frame: Any = None) -> None:
        kept, self.next_incoming_id = self.next_incoming_id, getattr(self, "own_id", 0)
        try:
            send(self, frame)
        finally:
            self.next_incoming_id = kept

    monkeypatch.setattr(Session, "__init__", beginning)
    monkeypatch.setattr(Session, "_incoming_transfer", counting)
    monkeypatch.setattr(Session, "_outgoing_flow", sending)


RECEIVERS = pytest.mark.parametrize("change", [link_counts_elsewhere, session_counts_elsewhere])
Change = Callable[[pytest.MonkeyPatch], None]


@RECEIVERS
def test_a_receiving_link_that_stalls_goes_on_by_the_public_api(
    hub: LocalHub,
    address: HubAddress,
    journal: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
) -> None:
    change(monkeypatch)
    hub.publish("orders", "0", ["event"] * COUNT)
    with closing(address.connect()) as connection:
        with connection.open_stream("0", 0, COUNT, ReadSettings()) as stream:
            # No reader between that would drop what is repeated.
            assert numbers(stream, COUNT) == [*range(COUNT)]
        [sentence] = warnings(caplog)
        [begin, following] = journal
        assert begin == 0 < following < COUNT
        assert sentence.startswith(
            f"partition 0 of {address}: the fast path delivers nothing from sequence number "
            f"{following} on, although the hub holds events up to {COUNT - 1}; events are received "
            "through the client's public API, which is slower. Stalled links for receiving in this "
            "process: 1."
        )
        assert "'public' as receive_path" in sentence
        # The next link of the connection does not try it again.
        with connection.open_stream("0", 0, COUNT, ReadSettings()) as stream:
            assert numbers(stream, COUNT) == [*range(COUNT)]
    assert journal == [0, following, 0]
    assert warnings(caplog) == [sentence]


def test_each_stalled_link_is_counted_and_said(
    hub: LocalHub,
    address: HubAddress,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link_counts_elsewhere(monkeypatch)
    hub.publish("orders", "0", ["event"] * COUNT)
    for _ in range(2):
        rows = sum(batch.num_rows for batch in read_range(address, OffsetRange("0", 0, COUNT)))
        assert rows == COUNT
    assert ["process: 1." in each for each in warnings(caplog)] == [True, False]
    assert ["process: 2." in each for each in warnings(caplog)] == [False, True]


def test_the_fast_path_alone_ends_with_an_error(
    hub: LocalHub, address: HubAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    link_counts_elsewhere(monkeypatch)
    hub.publish("orders", "0", ["event"] * COUNT)
    settings = ReadSettings(receive_path="fast")
    with (
        address.open_stream("0", 0, COUNT, settings) as stream,
        pytest.raises(
            FastPathError,
            match=r"orders: the fast path delivers nothing from sequence number \d+ on",
        ),
    ):
        numbers(stream, COUNT)


def test_a_link_that_the_hub_has_forgotten_goes_on_by_the_public_api(
    hub: LocalHub, address: HubAddress, caplog: pytest.LogCaptureFixture
) -> None:
    hub.publish("orders", "0", ["event"] * 10)
    with address.open_stream("0", 0, 20, ReadSettings()) as stream:
        assert numbers(stream, 10) == [*range(10)]
        assert hub.mute_receivers("orders") == 1
        hub.publish("orders", "0", ["event"] * 10)
        assert numbers(stream, 20) == [*range(10, 20)]
    [sentence] = warnings(caplog)
    assert "A connection may have died without an error." in sentence


# Sending


def credit_counts_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's link keeps `current_link_credit`, and counts what it is granted elsewhere."""
    monkeypatch.setattr(links, "CREDIT", 20)
    take = SenderLink._incoming_flow

    def taking(self: Any, frame: Any) -> None:
        kept = self.current_link_credit
        take(self, frame)
        self.own_credit = self.current_link_credit
        if getattr(self, "was_granted", False):
            self.current_link_credit = kept
        self.was_granted = True

    monkeypatch.setattr(SenderLink, "_incoming_flow", taking)


def window_counts_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's session keeps `remote_incoming_window`, and counts it elsewhere."""
    monkeypatch.setattr(hub_session, "WINDOW", 40)

    def counted_elsewhere(name: str) -> None:
        method = getattr(Session, name)

        def calling(self: Any, *args: Any) -> None:
            kept = self.remote_incoming_window
            self.remote_incoming_window = getattr(self, "own_window", kept)
            method(self, *args)
            self.own_window, self.remote_incoming_window = self.remote_incoming_window, kept

        monkeypatch.setattr(Session, name, calling)

    counted_elsewhere("_incoming_flow")
    counted_elsewhere("_outgoing_transfer")


SENDERS = pytest.mark.parametrize("change", [credit_counts_elsewhere, window_counts_elsewhere])
SMALL = 200
"""Bytes of a batch: one event."""


def batch(count: int, partition_id: str | None) -> pa.RecordBatch:
    columns: dict[str, Any] = {"body": [f"{number:06d}" + "x" * 100 for number in range(count)]}
    if partition_id is not None:
        columns["partitionId"] = [partition_id] * count
    return pa.RecordBatch.from_pydict(columns)


def stored(address: HubAddress, count: int) -> list[int]:
    """The numbers of the first events of the hub, at most this many."""
    settings = ReadSettings(receive_path="public")
    batches = read_range(address, OffsetRange("0", 0, count), settings)
    return [int(row["body"][:6]) for batch in batches for row in batch.to_pylist()]


@SENDERS
@pytest.mark.parametrize("partition_id", ["0", None])
def test_a_sending_link_that_stalls_goes_on_by_the_public_api(
    hub: LocalHub,
    address: HubAddress,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    partition_id: str | None,
) -> None:
    with monkeypatch.context() as patch:
        change(patch)
        settings = SendSettings(bytes_per_batch=SMALL)
        assert send_batches(address, [batch(300, partition_id)], settings) == 300
    [sentence] = warnings(caplog)
    assert sentence.startswith(f"{address}: the fast path has had no credit for a batch for ")
    assert "'public' as receive_path and send_path" in sentence
    assert "Stalled links for sending in this process: 1." in sentence
    assert hub.partition_properties("orders", "0").last_sequence_number == 299
    assert stored(address, 300) == [*range(300)]


def test_an_answer_that_the_client_does_not_pass_on_is_read(
    hub: LocalHub,
    address: HubAddress,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SenderLink, "_incoming_disposition", lambda *_: None)
    settings = SendSettings(bytes_per_batch=SMALL, send_path="fast")
    assert send_batches(address, [batch(50, "0")], settings) == 50
    assert stored(address, 50) == [*range(50)]
    assert warnings(caplog) == []


# Queries


def test_queries_whose_link_stalls_go_on_by_the_public_api(
    hub: LocalHub,
    address: HubAddress,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    credit_counts_elsewhere(monkeypatch)
    # The links for queries begin without credit, unlike those for sending.
    monkeypatch.setattr(SenderLink, "was_granted", True, raising=False)
    monkeypatch.setattr(queries, "attempt_limit", lambda seconds: 1.0)
    hub.publish("orders", "0", ["event"] * 7)
    with closing(address.open_queries()) as asking:
        for _ in range(2):
            properties, partitions = asking.ask(["0"], LIMIT)
            assert properties.partition_ids == ["0"]
            assert partitions["0"].next_sequence_number == 7
    said = [each.getMessage() for each in caplog.records if each.name == queries.__name__]
    [sentence] = said
    assert sentence.startswith(
        f"{address}: a connection for queries was opened, but no query was answered"
    )
    assert "the hub is queried through the client's public API" in sentence
