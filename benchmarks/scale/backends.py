"""Simulated servers with the measured figures of real ones, and the store that calls them.

The store is the package's base class with its four hooks, so claims, retries, time limits and
partition state are the real code; only the server's rows, delays and refusals are simulated.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from eventhub_checkpoints.aio.base import BaseCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory.rows import claim

T = TypeVar("T")


@dataclass(frozen=True)
class Backend:
    """Figures of a server.

    Attributes:
        round_trip: mean time of a request without its rows, in seconds; each request takes between
            half and one and a half times as long.
        claim_seconds, list_seconds: server time per row that is claimed or listed. Requests of
            servers without `limit` wait for each other.
        batch: how many claims a request may have.
        limit: requests per second above which the server refuses.
    """

    name: str
    round_trip: float
    claim_seconds: float
    list_seconds: float
    batch: int = 1_000_000
    limit: float = math.inf

    @property
    def is_queued(self) -> bool:
        """Whether requests wait for each other, instead of being refused."""
        return math.isinf(self.limit)


# Seconds per claim: 1 / the rate of single writes by 64 tasks with the bare driver, in the results
# of all backends in benchmarks/README.md. Seconds per listed row: the bare list of 1024 rows there;
# Cassandra: docs/reference/cassandra.md. They contain the client's time, so real servers are
# faster. The round trips are assumptions: one region, and four for a transaction of Cassandra.
BACKENDS = {
    backend.name: backend
    for backend in (
        # Limit: Microsoft Learn, "Scalability and performance targets for standard storage
        # accounts". Time per listed row: an assumption, as Azurite's does not apply to the service.
        Backend("blob", 0.010, 0.0, 0.0001, batch=1, limit=20_000),
        Backend("postgres", 0.002, 1 / 23_879, 0.00104 / 1024),
        Backend("redis", 0.001, 1 / 16_973, 0.00206 / 1024),
        Backend("cassandra", 0.005, 1 / 1_678, 0.046 / 1024, batch=128),
    )
}


class ServerBusyError(OSError):
    """The server refuses a request because there are too many; the base class retries it."""


class Observer(Protocol):
    """Receives every confirmed claim."""

    def claimed(self, partition_id: str, owner_id: str) -> None:
        """Note that the row of a partition now has this owner; `""`: released."""


class Server:
    """Rows of one consumer group on one server, and of its hand-over requests.

    Attributes:
        requests: number of requests by kind: `list`, `claim`, `checkpoints`, and with a
            `HandoverStore` `list hand-over requests` and `claim hand-over requests`.
        by_second: number of requests in each second.
        refused: number of refused requests; they are counted in `requests` as well.
    """

    def __init__(self, backend: Backend, partition_ids: Sequence[str], seed: int) -> None:
        self.backend = backend
        self.partitions = len(partition_ids)
        self._handover_requests: dict[str, Ownership | None] = {}
        self.requests: Counter[str] = Counter()
        self.by_second: Counter[int] = Counter()
        self.refused = 0
        self.observer: Observer | None = None
        self._rows: dict[str, Ownership | None] = dict.fromkeys(partition_ids)
        self._random = Random(seed)
        self._free_at = 0.0

    async def request(self, kind: str, rows: int, seconds: float, action: Callable[[], T]) -> T:
        """Carry out an action after the delay of a request with this number of rows.

        It is carried out even if the client no longer waits for the response.
        """
        loop = asyncio.get_running_loop()
        self.requests[kind] += 1
        second = int(loop.time())
        self.by_second[second] += 1
        one_way = self.backend.round_trip * self._random.uniform(0.25, 0.75)
        if self.by_second[second] > self.backend.limit:
            self.refused += 1
            await asyncio.sleep(2 * one_way)
            raise ServerBusyError("503 Server Busy")
        arrival = loop.time() + one_way
        if self.backend.is_queued:
            arrival = max(arrival, self._free_at)
            self._free_at = arrival + rows * seconds
        response: asyncio.Future[T] = loop.create_future()

        def carry_out() -> None:
            loop.call_later(one_way, respond, action())

        def respond(result: T) -> None:
            if not response.done():
                response.set_result(result)

        loop.call_at(arrival + rows * seconds, carry_out)
        return await response

    def ownerships(self, scope: Scope, now: float) -> Listing[Ownership]:
        """Return all rows of the group, or of its hand-over requests."""
        return Listing([row for row in self._table(scope).values() if row], now)

    def _table(self, scope: Scope) -> dict[str, Ownership | None]:
        return self._handover_requests if scope.is_reserved else self._rows

    def claim(self, proposal: Proposal, now: float) -> Won | Lost:
        """Compare and set one row."""
        table = self._table(proposal.scope)
        answer = claim(table.get(proposal.partition_id), proposal, now)
        if isinstance(answer, Won):
            if proposal.scope.is_reserved:
                table[proposal.partition_id] = answer.row
            else:
                self.put(answer.row)
        return answer

    def put(self, row: Ownership) -> None:
        """Store a row."""
        self._rows[row.partition_id] = row
        if self.observer:
            self.observer.claimed(row.partition_id, row.owner_id)


class Processor:
    """The processor of one process, on which its event loop does one thing after the other.

    Args:
        load: seconds that a second of work takes, because others use the processor, too; 0: work
            takes no time.
    """

    def __init__(self, load: float) -> None:
        self._load = load
        self._turn = asyncio.Lock()  # first come, first served, as the tasks of an event loop

    async def work(self, seconds: float) -> None:
        """Do work, in turn with the other tasks of the process."""
        if not self._load:
            return
        for _ in range(math.ceil(seconds / SLICE)):
            async with self._turn:
                await asyncio.sleep(SLICE * self._load)


SLICE = 0.001
"""Seconds of work after which the other tasks of an event loop have their turn."""
REQUEST_SECONDS = 0.003
"""Work of a client for one request. An assumption."""


class SimulatedStore(BaseCheckpointStore):
    """The base class over a simulated server; its clock is the simulated one.

    Attributes:
        processor: of the process of this store.
        is_cut: whether the process of this store has been killed, so that nothing is sent.
    """

    def __init__(self, server: Server, processor: Processor, **settings: Any) -> None:
        super().__init__(**settings)
        self.server = server
        self.processor = processor
        self.is_cut = False

    async def _send(self, kind: str, rows: int, seconds: float, action: Callable[[], T]) -> T:
        if self.is_cut:
            raise PermissionError("this process was killed")
        await self.processor.work(REQUEST_SECONDS)
        return await self.server.request(kind, rows, seconds, action)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        server = self.server
        rows, seconds = server.partitions, server.backend.list_seconds
        kind = "list hand-over requests" if scope.is_reserved else "list"
        return await self._send(kind, rows, seconds, lambda: server.ownerships(scope, time.time()))

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        [answer] = await self._claim([proposal])
        return answer

    async def _claim(self, proposals: Sequence[Proposal]) -> list[Won | Lost]:
        server, seconds = self.server, self.server.backend.claim_seconds

        def carry_out() -> list[Won | Lost]:
            return [server.claim(proposal, time.time()) for proposal in proposals]

        kind = "claim hand-over requests" if proposals[0].scope.is_reserved else "claim"
        return await self._send(kind, len(proposals), seconds, carry_out)

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        # Listed when partitions are gained: the rows take their time, but hold no position.
        rows, seconds = self.server.partitions, self.server.backend.list_seconds
        return await self._send("checkpoints", rows, seconds, lambda: Listing([]))

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        raise NotImplementedError("the simulated consumers process no events")


class BatchingStore(SimulatedStore):
    """Claims a batch in one request, as the stores of SQL, Redis and Cassandra do."""

    async def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        size = self.server.backend.batch
        batches = [proposals[start : start + size] for start in range(0, len(proposals), size)]
        answers = await asyncio.gather(*map(self._claim, batches))
        return [answer for batch in answers for answer in batch]


def store_on(server: Server, load: float = 0.0, **settings: Any) -> SimulatedStore:
    """Return a new store on this server, in a process of its own."""
    kind = SimulatedStore if server.backend.batch == 1 else BatchingStore
    return kind(server, Processor(load), **settings)
