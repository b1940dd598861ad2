"""Break a reader's connection in every known way, and check that each event is read exactly once.

A round reads a random range of a partition, while a thread cuts connections off in the middle of a
frame, drops, closes and refuses them, and detaches links, all at random times. The result has to be
exactly the range, in order, with every body as it was sent. Round n of seed s is the round of seed
s + n. The seed decides what happens; the timing depends on the machine.
"""

import asyncio
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.conditions import idle
from eventhub_checkpoints.localhub.server import Server
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.ranges import ReceivePath
from tcp_servers import HOST, Passage

EVENTS = 20_000
HUB, PARTITION = "orders", "0"
CONDITIONS = ("amqp:link:detach-forced", "com.microsoft:server-busy", "amqp:internal-error")
PATIENT: dict[str, Any] = {
    "retry_total": 50,
    "retry_backoff_factor": 0.02,
    "retry_backoff_max": 0.1,
}
"""Generous limits: the rounds test that reading continues, not that it gives up."""


class CuttingProxy(Passage):
    """Forwards bytes to one port of this machine, and cuts its connections after some of them.

    Attributes:
        cuts: number of connections that were cut off so far.
    """

    def __init__(self, backend_port: int) -> None:
        self._limits: deque[int] = deque()
        self.cuts = 0
        super().__init__((HOST, backend_port))

    def cut_after(self, *sizes: int) -> None:
        """Cut the next connections off, each after its number of bytes from the server."""
        self._limits.extend(sizes)

    def heal(self) -> None:
        """Cut off no more connections than those already chosen."""
        self._limits.clear()

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        if not self._limits:
            await super()._outwards(source, sink)
            return
        left = self._limits.popleft()
        while data := await source.read(min(self._piece, left)):
            sink.write(data)
            await sink.drain()
            left -= len(data)
            if not left:
                self.cuts += 1
                return


@dataclass(frozen=True)
class Place:
    """Hub, the proxy in front of it, and the events published to it."""

    hub: LocalHub
    proxy: CuttingProxy
    bodies: list[bytes]

    def address(self) -> HubAddress:
        """Address of the hub behind the proxy."""
        string = self.hub.connection_string(HUB)
        string = string.replace(f":{self.hub.port};", f":{self.proxy.port};")
        return HubAddress.from_connection_string(string, **PATIENT)


@contextmanager
def place_of(seed: int) -> Iterator[Place]:
    """Yield a hub with small events, and some that need many frames or many reads."""
    chance = random.Random(seed)
    sizes = [chance.choice((0, 20, 200, 2000)) for _ in range(EVENTS)]
    for number in chance.sample(range(EVENTS), 12):
        sizes[number] = chance.choice((60_000, 300_000, 1_000_000))
    bodies = [number.to_bytes(4, "big") + bytes(size) for number, size in enumerate(sizes)]
    with LocalHub({HUB: 1}) as hub, CuttingProxy(hub.port) as proxy:
        hub.publish(HUB, PARTITION, bodies)
        yield Place(hub, proxy, bodies)


class Disturber(threading.Thread):
    """Causes a limited number of random faults, so that a reader finishes on a slow machine."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        super().__init__(name="disturber")
        self.place, self.chance = place, chance
        self.done: Counter[str] = Counter()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Cause faults, with pauses in which something can be read, or nothing yet."""
        harms = (self.cut, self.drop, self.detach, self.close, self.refuse)
        for harm in self.chance.choices(harms, k=self.chance.randint(1, 8)):
            if self._stopped.wait(self.chance.uniform(0.002, 0.05)):
                break
            harm()
            self.done[harm.__name__] += 1

    def stop(self) -> None:
        """Stop, and undo lasting faults."""
        self._stopped.set()
        self.join()
        self.place.hub.refuse_connections(False)
        self.place.proxy.heal()

    def cut(self) -> None:
        """Cut the current connection, and the next one anywhere in its bytes."""
        size = int(2 ** self.chance.uniform(4, 21))
        self.place.proxy.cut_after(size)
        self.place.hub.drop_connections()

    def drop(self) -> None:
        """Cut off all connections."""
        self.place.hub.drop_connections()

    def detach(self) -> None:
        """Detach the link; its session and connection stay open."""
        self.place.hub.detach_receivers(HUB, condition=self.chance.choice(CONDITIONS))

    def close(self) -> None:
        """Close the connection properly, with a reason."""

        def work(server: Server) -> None:
            for connection in [*server.connections]:
                connection.close(idle(1.0))

        self.place.hub._call(work)

    def refuse(self) -> None:
        """Refuse connections for a while."""
        self.place.hub.refuse_connections()
        self._stopped.wait(self.chance.uniform(0.0, 0.1))
        self.place.hub.refuse_connections(False)


def run_round(place: Place, seed: int, path: ReceivePath) -> Counter[str]:
    """Read one range during faults; return the faults.

    Raises:
        AssertionError: an event is missing, was read twice or differs from what was sent.
    """
    chance = random.Random(seed)
    begin = chance.randrange(EVENTS // 4)
    end = chance.randrange(begin, EVENTS + 1)
    settings = ReadSettings(
        rows_per_batch=chance.choice((50, 500, 2000)),
        prefetch=chance.choice((3, 100, 1000)),
        receiver_timeout=10.0,
        receive_path=path,
    )
    disturber = Disturber(place, chance)
    disturber.start()
    number = begin
    try:
        for batch in read_range(place.address(), OffsetRange(PARTITION, begin, end), settings):
            after = number + batch.num_rows
            context = f"seed {seed}: {number} to {after} of {begin} to {end}"
            found = batch.column("sequenceNumber").to_pylist()
            assert found == [*range(number, after)], f"{context}: {found} came"
            bodies = batch.column("body").to_pylist()
            assert bodies == place.bodies[number:after], f"{context}: other bodies came"
            number = after
            time.sleep(chance.choice((0, 0, 0.01)))
    finally:
        disturber.stop()
    assert number == end, f"seed {seed}: {number} is the end of {begin} to {end}"
    return disturber.done + Counter(events=end - begin)


def run_rounds(seed: int, rounds: int, path: ReceivePath) -> Counter[str]:
    """Run this many rounds on one hub; return the faults.

    Raises:
        AssertionError: a round failed; the message has its seed.
    """
    seen: Counter[str] = Counter()
    with place_of(seed) as place:
        for number in range(rounds):
            seen += run_round(place, seed + number, path)
            seen["rounds"] += 1
        seen["connections cut within their bytes"] = place.proxy.cuts
    return seen
