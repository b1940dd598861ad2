"""When the hub does what it does by time, on a simulated clock: latency, silence, expiry."""

import asyncio
import base64
import json

import pytest

from eventhub_checkpoints.amqp.performatives import (
    AMQP_HEADER,
    EMPTY_FRAME,
    RECEIVER,
    Attach,
    Begin,
    Close,
    Detach,
    Flow,
    Open,
    Source,
    Transfer,
    decode_body,
    encode_frame,
    split_frame,
)
from eventhub_checkpoints.localhub.connection import Connection
from eventhub_checkpoints.localhub.events import make_events
from eventhub_checkpoints.localhub.hubs import Hubs
from eventhub_checkpoints.localhub.server import Server
from simulated_time import EPOCH, now, simulate


class Simulated(Server):
    """A server without a listener, so that nothing needs a thread or a socket."""

    is_listening = True

    def __init__(self, idle_timeout=240.0, delay=0.0):
        super().__init__(Hubs({"orders": 1}, None), idle_timeout)
        self.faults.delay = delay

    def on_lost(self, connection):
        self.connections.discard(connection)


class Wire(asyncio.Transport):
    """A client's end: what it says goes to the hub, and what comes is noted with its second."""

    def __init__(self, server):
        super().__init__()
        self.chunks = []
        self.closed = None
        self.hub = Connection(server)
        self.hub.connection_made(self)

    def write(self, data):
        self.chunks.append((now(), data))

    def is_closing(self):
        return self.closed is not None

    def close(self):
        self.closed = now()
        self.hub.connection_lost(None)

    def say(self, *performatives):
        self.hub.data_received(b"".join(map(encode_frame, performatives)))

    def open(self, **fields):
        self.hub.data_received(AMQP_HEADER)
        self.say(Open(container_id="c", **fields), Begin(incoming_window=100, outgoing_window=1))

    def attach(self, handle=0):
        address = "orders/ConsumerGroups/$Default/Partitions/0"
        reader = Attach(
            name=f"r{handle}", handle=handle, role=RECEIVER, source=Source(address=address)
        )
        self.say(reader)

    def came(self, kind):
        """The frames of a kind, each with its second."""
        return [(second, body) for second, body in self._bodies() if isinstance(body, kind)]

    def beats(self):
        """The seconds of the empty frames."""
        return [second for second, data in self.chunks if data == EMPTY_FRAME]

    def _bodies(self):
        for second, data in self.chunks:
            at = 8 if data.startswith(b"AMQP") else 0
            while frame := split_frame(data, at, 1 << 21):
                yield second, decode_body(data, frame).performative
                at = frame.end


def test_a_delay_is_a_latency_and_no_limit_of_throughput():
    async def main():
        server = Simulated(delay=0.2)
        wire = Wire(server)
        wire.open()
        await asyncio.sleep(0.1)
        wire.attach()
        await asyncio.sleep(0.1)
        wire.say(Flow(next_incoming_id=0, incoming_window=100, handle=0, link_credit=100))
        for _ in range(50):
            server.log("orders", "0").append(make_events([b"x"], None, None), 0)
        await asyncio.sleep(10)
        return wire

    wire = simulate(main)
    assert [second for second, _ in wire.came(Open)] == [0.2]
    assert [second for second, _ in wire.came(Attach)] == [0.3]
    transfers = wire.came(Transfer)
    assert {second for second, _ in transfers} == {0.4}
    assert [transfer.delivery_id for _, transfer in transfers] == [*range(50)]


def test_what_a_shorter_delay_is_given_to_does_not_overtake():
    async def main():
        server = Simulated(delay=5.0)
        wire = Wire(server)
        wire.open()
        await asyncio.sleep(1)
        server.faults.delay = 0.0
        wire.attach()
        await asyncio.sleep(10)
        return wire

    wire = simulate(main)
    assert [second for second, _ in wire.came((Open, Attach))] == [5.0, 5.0]


def test_the_hub_beats_twice_as_often_as_the_client_asks():
    async def main():
        wire = Wire(Simulated())
        wire.open(idle_time_out=1000)
        await asyncio.sleep(2.2)
        return wire.beats()

    assert simulate(main) == [0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("spoken", [0, 20])
def test_a_client_is_cut_off_after_its_silence_and_not_before(spoken):
    """The hub looks twice in the time that it tolerates, and answers half of it as its own."""

    async def main():
        wire = Wire(Simulated(idle_timeout=1.5))
        wire.open()
        for _ in range(spoken):
            await asyncio.sleep(1.0)
            wire.hub.data_received(EMPTY_FRAME)
        await asyncio.sleep(60)
        return wire

    wire = simulate(main)
    [(_, opened)] = wire.came(Open)
    assert opened.idle_time_out == 750
    [(second, close)] = wire.came(Close)
    assert close.error.condition == "amqp:connection:forced"
    assert second == wire.closed
    # The first look that finds more than 1.5 s of silence.
    assert second == {0: 2.25, 20: 21.75}[spoken]


def jwt(expiry):
    parts = [{"alg": "RS256"}, {"exp": expiry}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*coded, "c2ln"]).replace("=", "")


@pytest.mark.parametrize("renewed_at", [None, 5])
def test_a_link_is_detached_when_the_last_token_expires(renewed_at):
    async def main():
        server = Simulated()
        server.keys = frozenset({"key"})
        wire = Wire(server)
        wire.open()
        wire.hub.authorize(jwt(EPOCH + 6))
        wire.attach()
        if renewed_at is not None:
            await asyncio.sleep(renewed_at)
            wire.hub.authorize(jwt(EPOCH + 60))
        await asyncio.sleep(100)
        wire.attach(handle=1)
        await asyncio.sleep(1)
        return wire

    wire = simulate(main)
    expired, refused = wire.came(Detach)
    assert expired[0] == (6.0 if renewed_at is None else 60.0)
    assert expired[1].error.condition == "amqp:link:detach-forced"
    assert refused[1].error.condition == "amqp:unauthorized-access"
    assert "RenewToken" in expired[1].error.description
