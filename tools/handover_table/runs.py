"""A group on a local hub, which a second consumer joins while events arrive."""

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from handover_table import GROUP
from handover_table._async.member import Member as AioMember
from handover_table._sync.member import Member as SyncMember
from waiting import LIMIT, eventually

HUB = "orders"
BATCHES = 20
"""Published each second."""


class Ledger:
    """Every event that was processed: by whom, and how often."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.times: Counter[tuple[str, int | None]] = Counter()
        self.partitions: dict[str, Counter[str]] = defaultdict(Counter)

    def count(self, name: str, partition_id: str, sequence_number: int | None) -> None:
        """Record one event."""
        with self._guard:
            self.times[partition_id, sequence_number] += 1
            self.partitions[name][partition_id] += 1

    @property
    def twice(self) -> int:
        """Return how many events too many were processed."""
        with self._guard:
            return self.times.total() - len(self.times)


@dataclass(frozen=True)
class Setting:
    """How a group runs.

    Attributes:
        way: one of `WAYS`.
        variant: `"sync"` or `"aio"`.
        partitions: of the hub.
        rate: events a second, of all partitions.
        interval: seconds between two rounds of load balancing.
        expires_after: seconds until an ownership expires.
        seconds: how long events arrive after the group is balanced.
    """

    way: str
    variant: str
    partitions: int = 4
    rate: int = 1000
    interval: float = 1.0
    expires_after: float = 60.0
    seconds: float = 2.0

    def arguments(self, hub: LocalHub) -> dict[str, Any]:
        """Return the arguments of a client, without its store."""
        return {
            "conn_str": hub.connection_string(HUB),
            "consumer_group": GROUP,
            "load_balancing_interval": self.interval,
            "partition_ownership_expiration_interval": self.expires_after,
            "socket_timeout": 0.02,
        }


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        published: events.
        twice: events that were processed once too often.
        lost: events that were not processed.
        seconds: from the start of the second consumer until the group was balanced.
    """

    published: int
    twice: int
    lost: int
    seconds: float


class Group:
    """Consumers of one hub, and what they have processed."""

    def __init__(self, setting: Setting, hub: LocalHub, loop: Loop) -> None:
        self.ledger = Ledger()
        self._setting, self._hub, self._loop = setting, hub, loop
        self._running: list[tuple[Any, Any]] = []
        self._stores: list[Any] = []

    def join(self, name: str, store: Any, *, hands_over: bool) -> None:
        """Start a consumer; it runs until the group is stopped, which also closes its store."""
        self._stores.append(store)
        setting, arguments = self._setting, self._setting.arguments(self._hub)
        member_of: Any = AioMember if setting.variant == "aio" else SyncMember
        rest = store, self.ledger.count, hands_over, arguments
        if setting.variant == "aio":
            member, task = self._loop.finished(started(member_of, name, setting.way, *rest))
            self._running.append((member, task))
            return
        member = member_of(name, setting.way, *rest)
        thread = threading.Thread(target=member.receive)
        thread.start()
        self._running.append((member, thread))

    def stop(self) -> None:
        """Stop all consumers, and close their stores."""
        for member, running in self._running:
            if isinstance(running, threading.Thread):
                member.stop()
                running.join(LIMIT)
            else:
                self._loop.finished(stopped(member, running))
        self._running.clear()
        while self._stores:
            self._loop.finished(self._stores.pop().close())


async def started(member_of: Any, *args: Any) -> tuple[Any, Any]:
    """Start a member in this loop."""
    member = member_of(*args)
    return member, asyncio.get_running_loop().create_task(member.receive())


async def stopped(member: Any, task: Any) -> None:
    """Stop a member of this loop."""
    await member.stop()
    task.cancel()  # the client would go on until its load balancing has slept
    with suppress(asyncio.CancelledError):
        await task


class Publisher:
    """Publishes at a constant rate in the background."""

    def __init__(self, setting: Setting, hub: LocalHub) -> None:
        self._setting, self._hub = setting, hub
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self.published = 0

    def _publish(self) -> None:
        setting = self._setting
        bodies = ["event"] * (setting.rate // BATCHES // setting.partitions)
        while not self._is_over.wait(1 / BATCHES):
            for partition_id in self._hub.partition_ids(HUB):
                self._hub.publish(HUB, partition_id, bodies)
                self.published += len(bodies)

    def __enter__(self) -> "Publisher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Publish nothing more."""
        self._is_over.set()
        self._thread.join()


@contextmanager
def group_of(setting: Setting) -> Iterator[tuple[Group, Publisher]]:
    """Run a hub, and a group without consumers."""
    with LocalHub({HUB: setting.partitions}) as hub, Loop() as loop:
        group = Group(setting, hub, loop)
        try:
            with Publisher(setting, hub) as publisher:
                yield group, publisher
        finally:
            group.stop()


def joined(
    setting: Setting,
    make_store: Callable[[str], Any],
    *,
    hands_over: tuple[bool, bool],
) -> Result:
    """Have a second consumer join the first, and count.

    Args:
        setting: of the group.
        make_store: returns the store of a consumer, by its name: `"first"` or `"second"`.
        hands_over: which of the two have a `HandoverStore`.
    """
    with group_of(setting) as (group, publisher):
        ledger, half = group.ledger, setting.partitions // 2
        first, second = ledger.partitions["first"], ledger.partitions["second"]
        group.join("first", make_store("first"), hands_over=hands_over[0])
        eventually(lambda: len(first) == setting.partitions)
        began = time.monotonic()
        group.join("second", make_store("second"), hands_over=hands_over[1])
        eventually(lambda: len(second) >= half)
        seconds = time.monotonic() - began
        time.sleep(setting.seconds)
        publisher.stop()
        eventually(lambda: len(ledger.times) == publisher.published)
        lost = publisher.published - len(ledger.times)
        return Result(publisher.published, ledger.twice, lost, seconds)
