"""What a stream of events does by itself."""

import threading

from eventhub_checkpoints.receive.amqp.events import EventStream
from waiting import LIMIT


def receiving() -> set[threading.Thread]:
    """Those of streams that other tests have left may still be closing their links."""
    return {thread for thread in threading.enumerate() if thread.name == "receive-1"}


def test_receiving_ends_with_the_range_and_not_when_its_reader_does(hub, address):
    hub.publish("orders", "1", ["event"] * 1000)
    before = receiving()
    client = address.open_receiving_client("1")
    with EventStream(client, "1", 0, prefetch=10, until=25) as stream:
        [thread] = receiving() - before
        numbers: list[int] = []
        while 24 not in numbers:
            numbers += stream.next(LIMIT).numbers
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert numbers[:25] == [*range(25)]
    assert len(numbers) < 50


def test_a_stream_without_an_end_goes_on(hub, address):
    before = receiving()
    client = address.open_receiving_client("1")
    with EventStream(client, "1", 0, prefetch=10) as stream:
        hub.publish("orders", "1", ["early"])
        assert stream.next(LIMIT).numbers == [0]
        hub.publish("orders", "1", ["late"])
        assert stream.next(LIMIT).numbers == [1]
        assert receiving() - before
