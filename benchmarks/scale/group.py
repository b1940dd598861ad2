"""A consumer group: a hub, consumers with the SDK's `EventProcessor`, and what is observed."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from azure.eventhub import LoadBalancingStrategy
from azure.eventhub.aio._eventprocessor.event_processor import EventProcessor
from azure.eventhub.exceptions import ConnectionLostError

from benchmarks.scale.backends import Processor, Server, SimulatedStore, store_on
from benchmarks.scale.late import LateStore
from eventhub_checkpoints.aio import HandoverStore
from eventhub_checkpoints.consume._async.member import GroupMember
from eventhub_checkpoints.consume.balancer import Strategy
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Ownership, Scope, fresh_etag
from simulated_time import EPOCH

SCOPE = Scope("simulated.servicebus.windows.net", "hub", "$default")
OPEN_SECONDS = 1.4
"""From the claim until a reader is open: measured with the asyncio client on the local hub."""
OPEN_WORK = 0.03
"""Seconds of work of a client to open a reader. An assumption."""


class Hub:
    """Event hub whose partitions have at most one reader, as with the SDK's `owner_level`.

    Attributes:
        unread: since when each partition without a reader has none, in simulated seconds.
        gaps: seconds without a reader, of each gap that has ended.
        replaced: number of readers that were replaced by another while they read.
    """

    def __init__(self, partitions: int) -> None:
        self.partition_ids = [str(number) for number in range(partitions)]
        self.unread = dict.fromkeys(self.partition_ids, 0.0)
        self.gaps: list[float] = []
        self.replaced = 0
        self._readers: dict[str, asyncio.Future[None]] = {}

    def connect(self, partition_id: str) -> asyncio.Future[None]:
        """Return a new reader, which ends when it is replaced by another."""
        loop = asyncio.get_running_loop()
        previous = self._readers.get(partition_id)
        if previous is not None and not previous.done():
            self.replaced += 1
            previous.set_exception(ConnectionLostError("another receiver was opened"))
        if partition_id in self.unread:
            self.gaps.append(loop.time() - self.unread.pop(partition_id))
        self._readers[partition_id] = loop.create_future()
        return self._readers[partition_id]

    def disconnect(self, partition_id: str, reader: asyncio.Future[None] | None) -> None:
        """End a reader, unless another has replaced it."""
        if reader is not None and self._readers.get(partition_id) is reader:
            del self._readers[partition_id]
            self.unread[partition_id] = asyncio.get_running_loop().time()

    def forget_gaps(self) -> None:
        """Count gaps and replaced readers from now on only."""
        self.gaps.clear()
        self.replaced = 0
        self.unread = dict.fromkeys(self.unread, asyncio.get_running_loop().time())


class Reader:
    """As much of the SDK's `EventHubConsumer` as its `EventProcessor` calls; it gets no events."""

    def __init__(self, hub: Hub, processor: Processor, partition_id: str) -> None:
        self._hub = hub
        self._processor = processor
        self._partition_id = partition_id
        self._reader: asyncio.Future[None] | None = None

    async def receive(self, *_: object) -> None:
        await self._processor.work(OPEN_WORK)
        await asyncio.sleep(OPEN_SECONDS)
        self._reader = self._hub.connect(self._partition_id)
        await self._reader

    async def close(self) -> None:
        self._hub.disconnect(self._partition_id, self._reader)


class Client:
    """As much of the SDK's `EventHubConsumerClient` as its `EventProcessor` calls."""

    eventhub_name = SCOPE.eventhub_name
    _address = SimpleNamespace(hostname=SCOPE.fully_qualified_namespace)

    def __init__(self, hub: Hub, processor: Processor) -> None:
        self.readers: list[Reader] = []
        self._hub = hub
        self._processor = processor

    async def get_partition_ids(self) -> list[str]:
        return list(self._hub.partition_ids)

    def _create_consumer(self, _group: str, partition_id: str, *_: object, **__: object) -> Reader:
        self.readers.append(Reader(self._hub, self._processor, partition_id))
        return self.readers[-1]


@dataclass(frozen=True)
class Options:
    """How the consumers of a group run.

    Attributes:
        interval, expiration: see `Setup`, like the others.
    """

    @property
    def settings(self) -> ConsumeSettings:
        """Return them as those of a member that reads in batches."""
        return ConsumeSettings(
            load_balancing_strategy=self.strategy,
            load_balancing_interval=self.interval,
            partition_ownership_expiration_interval=self.expiration,
        )

    strategy: Strategy
    interval: float
    expiration: float
    hands_over: bool = False
    drain: float = 0.0
    load: float = 0.0
    late: float = 0.0
    in_batches: bool = False


def wrapped(store: SimulatedStore, options: Options) -> Any:
    """Return the store that a consumer uses."""
    used: Any = store
    if options.hands_over:
        used = HandoverStore(store, expires_after=options.expiration)
    return LateStore(used, options.late) if options.late else used


class Consumer:
    """One process of the group: a client, its store, and the SDK's `EventProcessor`.

    Attributes:
        failed_rounds: number of rounds of load balancing that raised an error.
    """

    def __init__(self, hub: Hub, store: SimulatedStore, options: Options) -> None:
        self.store = store
        self.failed_rounds = 0
        self._client = Client(hub, store.processor)
        self._drain = options.drain
        client: Any = self._client
        self._processor = EventProcessor(
            client,
            SCOPE.consumer_group,
            self._ignore,
            checkpoint_store=wrapped(store, options),
            error_handler=self._count_error,
            partition_close_handler=self._close,
            load_balancing_strategy=LoadBalancingStrategy(options.strategy),
            load_balancing_interval=options.interval,
            partition_ownership_expiration_interval=options.expiration,
        )
        self.owner_id: str = self._processor._id
        self._task: asyncio.Task[None] | None = None

    @property
    def partition_ids(self) -> set[str]:
        """The partitions that the processor reads."""
        return set(self._processor._tasks)

    def start(self, delay: float) -> None:
        """Start after a delay."""

        async def run() -> None:
            await asyncio.sleep(delay)
            await self._processor.start()

        self._task = asyncio.create_task(run())

    async def stop(self) -> None:
        """Stop as a program does that ends: the partitions are released."""
        await self._processor.stop()
        await self._end()

    async def kill(self) -> None:
        """End without releasing anything, as a killed process does."""
        self.store.is_cut = True
        for reader in self._client.readers:
            await reader.close()
        await self._processor.stop()
        await self._end()

    async def _end(self) -> None:
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _ignore(self, _context: object, _event: object) -> None:
        """Handle an event, of which the simulated hub has none."""

    async def _close(self, _context: object, _reason: object) -> None:
        await asyncio.sleep(self._drain)

    async def _count_error(self, context: object, _error: Exception) -> None:
        # Without a context, load balancing has failed. In a killed process nobody would know.
        if context is None and not self.store.is_cut:
            self.failed_rounds += 1


class BatchConsumer:
    """One process of the group that reads in batches: a `GroupMember`, and its partitions.

    Attributes:
        failed_rounds: see `Consumer`.
    """

    def __init__(self, hub: Hub, store: SimulatedStore, options: Options) -> None:
        self.store = store
        self.failed_rounds = 0
        self._hub, self._drain = hub, options.drain
        used = wrapped(store, options)
        self._member = GroupMember(used, SCOPE, options.settings, self._list_partitions)
        self.owner_id = self._member.owner_id
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def partition_ids(self) -> set[str]:
        """The partitions that the member reads."""
        return set(self._tasks)

    def start(self, delay: float) -> None:
        """Start after a delay."""
        self._task = asyncio.create_task(self._run(delay))

    async def stop(self) -> None:
        """Stop as a program does that ends: the partitions are released."""
        await self._end()

    async def kill(self) -> None:
        """End without releasing anything, as a killed process does."""
        self.store.is_cut = True
        await self._end()

    async def _end(self) -> None:
        for task in [self._task, *self._tasks.values()]:
            if task is not None:
                task.cancel()
        await asyncio.gather(
            *filter(None, [self._task, *self._tasks.values()]), return_exceptions=True
        )

    async def _list_partitions(self) -> list[str]:
        return list(self._hub.partition_ids)

    async def _run(self, delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            try:
                lost, won = await self._member.balance([*self._tasks])
            except Exception:
                self.failed_rounds += not self.store.is_cut
            else:
                for partition_id in lost:
                    if task := self._tasks.get(partition_id):  # it may have ended meanwhile
                        task.cancel()
                for partition_id in won:
                    self._tasks[partition_id] = asyncio.create_task(self._read(partition_id))
            await asyncio.sleep(self._member.pause)

    async def _read(self, partition_id: str) -> None:
        """Read a partition until it is closed or taken, and release it."""
        reader: asyncio.Future[None] | None = None
        try:
            await self.store.processor.work(OPEN_WORK)
            await asyncio.sleep(OPEN_SECONDS)
            reader = self._hub.connect(partition_id)
            with suppress(ConnectionLostError):
                await reader
        finally:
            self._hub.disconnect(partition_id, reader)
            if not self.store.is_cut:
                await asyncio.sleep(self._drain)
                with suppress(CheckpointStoreError):
                    await self._member.release(partition_id)
            del self._tasks[partition_id]


AnyConsumer = Consumer | BatchConsumer


class Observer:
    """Owners of all partitions, as the server's rows show them.

    A group is balanced when every partition has an owner that runs, and every consumer that runs
    has at least its share, rounded down: then the SDK's load balancer moves nothing any more.

    Attributes:
        balanced_since: when the group last became balanced; None while it is not.
        hand_overs: number of times a partition went from an owner to another one.
        takeovers: those where the previous owner was running and had not released it.
        by_second: number of hand-overs in each second.
    """

    def __init__(self, partition_ids: Sequence[str]) -> None:
        self.balanced_since: float | None = None
        self.hand_overs = self.takeovers = 0
        self.by_second: Counter[int] = Counter()
        self._owners = dict.fromkeys(partition_ids, "")
        self._last_owners = dict.fromkeys(partition_ids, "")
        self._held: Counter[str] = Counter()
        self._running: set[str] = set()
        self._short = self._without = 0

    @property
    def shares(self) -> list[int]:
        """Number of partitions of each running consumer."""
        return [self._held[owner_id] for owner_id in self._running]

    def runs(self, owner_ids: set[str]) -> None:
        """Set the consumers that run."""
        self._running = owner_ids
        self._short = sum(count < self._share for count in self.shares)
        self._without = sum(owner not in owner_ids for owner in self._owners.values())
        self._update()

    def claimed(self, partition_id: str, owner_id: str) -> None:
        previous, last = self._owners[partition_id], self._last_owners[partition_id]
        if previous == owner_id:
            return
        now = asyncio.get_running_loop().time()
        self._owners[partition_id] = owner_id
        if owner_id:
            self._last_owners[partition_id] = owner_id
            if last and last != owner_id:
                self.hand_overs += 1
                self.takeovers += previous in self._running
                self.by_second[int(now)] += 1
        for owner, change in ((previous, -1), (owner_id, 1)):
            if owner in self._running:
                was_short = self._held[owner] < self._share
                self._held[owner] += change
                self._short += (self._held[owner] < self._share) - was_short
                self._without -= change
            else:
                self._held[owner] += change
        self._update()

    @property
    def _share(self) -> int:
        return len(self._owners) // max(len(self._running), 1)

    def _update(self) -> None:
        if self._short or self._without or not self._running:
            self.balanced_since = None
        elif self.balanced_since is None:
            self.balanced_since = asyncio.get_running_loop().time()


class Group:
    """The consumers of one consumer group, on one hub and one server."""

    def __init__(self, hub: Hub, server: Server, options: Options) -> None:
        self.hub, self.server = hub, server
        self.consumers: list[AnyConsumer] = []
        self.ended: list[AnyConsumer] = []
        self.observer = Observer(hub.partition_ids)
        server.observer = self.observer
        self._options = options

    def start(self, delays: Sequence[float]) -> None:
        """Add one consumer for each delay."""
        for delay in delays:
            self._add().start(delay)
        self._observe()

    def start_balanced(self, delays: Sequence[float]) -> None:
        """Add consumers that already own their even shares, as if they had run for some time."""
        consumers = [self._add() for _ in delays]
        self._observe()
        for number, partition_id in enumerate(self.hub.partition_ids):
            owner_id = consumers[number % len(consumers)].owner_id
            self.server.put(Ownership(SCOPE, partition_id, owner_id, fresh_etag(), EPOCH))
        for consumer, delay in zip(consumers, delays, strict=True):
            consumer.start(delay)

    def _add(self) -> AnyConsumer:
        store = store_on(self.server, self._options.load)
        kind = BatchConsumer if self._options.in_batches else Consumer
        consumer = kind(self.hub, store, self._options)
        self.consumers.append(consumer)
        return consumer

    def _observe(self) -> None:
        self.observer.runs({consumer.owner_id for consumer in self.consumers})

    async def stop(self, consumers: Sequence[AnyConsumer]) -> None:
        """Stop consumers; they release their partitions."""
        await self._end(consumers, [consumer.stop() for consumer in consumers])

    async def kill(self, consumers: Sequence[AnyConsumer]) -> None:
        """Kill consumers; they release nothing."""
        await self._end(consumers, [consumer.kill() for consumer in consumers])

    async def _end(self, consumers: Sequence[AnyConsumer], ends: Sequence[Any]) -> None:
        self.consumers = [each for each in self.consumers if each not in consumers]
        self.ended += consumers
        self._observe()
        await asyncio.gather(*ends)

    def counted(self, name: str) -> int:
        """Return the sum of a counter of all stores."""
        return sum(each.store.counters[name] for each in (*self.consumers, *self.ended))

    @property
    def failed_rounds(self) -> int:
        """Number of rounds of load balancing that raised an error."""
        return sum(each.failed_rounds for each in (*self.consumers, *self.ended))

    @property
    def is_read_once(self) -> bool:
        """Whether each partition is read by exactly one consumer that runs."""
        read = [key for consumer in self.consumers for key in consumer.partition_ids]
        return sorted(read) == sorted(self.hub.partition_ids) and not self.hub.unread
