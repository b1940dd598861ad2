"""Compare the speed of the decoder with the azure-eventhub client's, in one process.

Both decode the same frames: 200-byte events as the local hub sends them, into the same columns. The
client's side consists of its transfer and message decoding, `EventData`, and the public path's
columns. Prints events per CPU second, medians of alternating runs, and their ratio; and the same
with the Arrow batch.
"""

from __future__ import annotations

import argparse
import struct
import time
from statistics import median
from typing import TYPE_CHECKING

from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_frame, decode_payload

from benchmarks.receive_producers import PRODUCERS, messages
from eventhub_checkpoints.localhub.events import read_events
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.batches import record_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eventhub_checkpoints.receive.columns import Columns

READ = 256 * 1024
BATCH = 2000
START = 1_000_000
CHANNEL, HANDLE = 1, 0

# Layout of the local hub's links: size, performative up to the delivery id, id, tag, other fields.
HEAD = struct.Struct(">I16sI2sI8s")
PREFIX = struct.pack(">HH", 0x0200, CHANNEL) + b"\x00\x53\x14\xc0\x19\x0b\x70\x00\x00\x00\x00\x70"


def frames_of(kind: str, count: int) -> list[bytes]:
    """Return the frames of `count` events."""
    found = []
    for number, raw in enumerate(messages(kind, count, START), START):
        [event] = read_events(raw, 0)
        stored = event.stored(number, str(number * 312), 1795255200000 + number)
        rest = b"\x43\x41\x42\x40\x40\x40\x40\x40"
        size = HEAD.size + len(stored)
        found.append(HEAD.pack(size, PREFIX, number, b"\xa0\x04", number, rest) + stored)
    return found


def by_the_client(frames: Sequence[bytes]) -> list[Columns]:
    """Decode as the client does, a list of events at a time."""
    batches = []
    for begin in range(0, len(frames), BATCH):
        events = []
        for frame in frames[begin : begin + BATCH]:
            _, fields = decode_frame(memoryview(frame)[8:])
            events.append(EventData._from_message(decode_payload(fields[11])))
        batches.append(columns_of(events))
    return batches


def by_the_decoder(link: Deliveries, data: bytes) -> list[Columns]:
    """Decode reads of a socket."""
    batches = []
    for begin in range(0, len(data), READ):
        link.feed(data[begin : begin + READ])
        if link.rows >= BATCH:
            batches.append(link.take())
    batches.append(link.take())
    return batches


def measured(name: str, count: int, rounds: int) -> str:
    """Return one line of the table."""
    frames = frames_of(name, count)
    data, share = b"".join(frames), frames[: count // 5]
    link = Deliveries(channel=CHANNEL, handle=HANDLE, max_frame_size=65536)
    by_the_decoder(link, data)
    times: dict[str, list[float]] = {"client": [], "ours": [], "client+arrow": [], "ours+arrow": []}
    works: list[tuple[str, Callable[[], list[Columns]], int]] = [
        ("client", lambda: by_the_client(share), len(share)),
        ("ours", lambda: by_the_decoder(link, data), count),
    ]
    for _ in range(rounds):
        for who, work, size in works:
            began = time.process_time()
            batches = work()
            times[who].append((time.process_time() - began) / size)
            for columns in batches:
                record_batch("0", columns)
            times[f"{who}+arrow"].append((time.process_time() - began) / size)
    middle = {who: median(seconds) for who, seconds in times.items()}
    parts = [f"{name:6}"]
    for suffix, label in (("", "columns"), ("+arrow", "Arrow")):
        client, ours = middle[f"client{suffix}"], middle[f"ours{suffix}"]
        parts.append(
            f"{label}: client {1 / client:8,.0f}/s, ours {1 / ours:8,.0f}/s, {client / ours:5.1f} x"
        )
    return "  ".join(parts)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for name in PRODUCERS:
        print(measured(name, given.events, given.rounds), flush=True)


if __name__ == "__main__":
    main()
