"""Measures, on the simulated clock, how long partitions pause when consumers join a group.

    PYTHONPATH=src:tools:tests/support python -m joining
    PYTHONPATH=src:tools:tests/support python -m joining --sizes 4x2 --interval 5 --seeds 10

The processors and their clients are the real ones; the hub is simulated. The first consumer has
all partitions when the others join, at random phases of its rounds. Printed are, for each group,
without a hand-over and with it, the seconds until it was balanced, the longest time between two
events of a partition that moved, and what that was made of in the hand-over that took longest.
"""

import argparse
import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from eventhub_checkpoints import aio, every
from eventhub_checkpoints.records import Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Listing, Lost, Won
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_hub import HUB, SimulatedHub
from simulated_time import now, quiet, simulate

GROUP = "$Default"
EVERY = 0.05
"""Seconds between two events of a partition."""
LONGEST_ROUND = 1.2
"""Intervals: the client extends one by up to 20 %."""
MEAN_ROUND = 1.1
AFTER = 3
"""Longest rounds for which a group goes on when it is balanced: what was claimed last is opened."""
LOOK = 0.1
PATIENCE = 600.0
"""Simulated seconds after which a group counts as never balanced."""


@dataclass(frozen=True)
class Setting:
    """How a group runs.

    Attributes:
        partitions, consumers: of the group.
        interval: seconds between two rounds of load balancing.
        expires_after: intervals until an ownership expires.
        hands_over: whether partitions are handed over.
        drain: seconds that closing a processor takes.
        opening: seconds until a link is open, by default as measured with the asyncio client on
            the local hub.
        keep_alive: of the links; see `SimulatedHub`. By default that of the client.
    """

    partitions: int = 4
    consumers: int = 2
    interval: float = 1.0
    expires_after: float = 12.0
    hands_over: bool = True
    drain: float = 0.1
    opening: float = 1.4
    keep_alive: float = 1.0


class Write(NamedTuple):
    """Claim that was won: of a partition, or of the hand-over request for it."""

    at: float
    is_request: bool
    partition_id: str
    owner_id: str


class Move(NamedTuple):
    """Hand-over of a partition: when each of its steps was done, in simulated seconds.

    Attributes:
        partition_id: which partition.
        asked: the request was written; the owner goes on until its next round.
        stopped: the owner has detached its link.
        released: it has closed its link and drained.
        claimed: the consumer that asked has claimed the partition.
        opened: its link is open.
    """

    partition_id: str
    asked: float
    stopped: float
    released: float
    claimed: float
    opened: float


class Store(aio.MemoryCheckpointStore):
    """Store of one consumer, which writes down what was claimed, and counts requests."""

    def __init__(self, rows: MemoryRows, writes: list[Write], requests: Counter[str]) -> None:
        super().__init__(rows)
        self._writes, self._requests = writes, requests

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        self._requests["list"] += 1
        return await super().read_ownerships(scope)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        answer = await super().try_claim(proposal)
        if isinstance(answer, Won):
            is_request = proposal.scope.is_reserved
            owner_id = answer.row.owner_id
            self._writes.append(Write(now(), is_request, proposal.partition_id, owner_id))
        return answer


class Group:
    """Consumers of one hub, and what happened to its partitions.

    Attributes:
        hub: what they read.
        processed: of each partition, when an event was processed, by which consumer, and its
            number.
        writes: all claims that were won.
        requests: number of lists.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.hub = SimulatedHub(setting.partitions)
        self.hub.opening, self.hub.keep_alive = setting.opening, setting.keep_alive
        self.processed: dict[str, list[tuple[float, int, int | None]]] = defaultdict(list)
        self.writes: list[Write] = []
        self.requests: Counter[str] = Counter()
        self._rows = MemoryRows()
        self._processors: list[Any] = []

    async def join(self) -> None:
        """Start one more consumer."""
        setting, processed, number = self.setting, self.processed, len(self._processors)

        class Processor(aio.PartitionProcessor):
            async def process_events(self, events: Sequence[Any]) -> None:
                log = processed[self.context.partition_id]
                log.extend((now(), number, event.sequence_number) for event in events)

            async def close(self, reason: object) -> None:
                await asyncio.sleep(setting.drain)

        client = partial(
            self.hub.client.from_connection_string,
            self.hub.connection_string(HUB),
            GROUP,
            load_balancing_interval=setting.interval,
            partition_ownership_expiration_interval=setting.expires_after * setting.interval,
        )
        store = Store(self._rows, self.writes, self.requests)
        policy = every(events=100, seconds=5)
        processor = aio.EventProcessor(
            client, Processor, store=store, policy=policy, handover=setting.hands_over
        )
        self._processors.append(processor)
        await processor.start()

    async def stop(self) -> None:
        """Stop all consumers."""
        await asyncio.gather(*(each.stop() for each in self._processors))

    async def publish(self) -> None:
        """Publish until cancelled."""
        while True:
            for partition_id in self.hub.events:
                self.hub.publish(HUB, partition_id, ["event"])
            await asyncio.sleep(EVERY)

    def is_balanced(self) -> bool:
        """Return whether every consumer has its share, and every partition an owner."""
        owners = {each.partition_id: each.owner_id for each in self.writes if not each.is_request}
        counts = Counter(owners.values())
        share = self.setting.partitions // len(self._processors)
        return (
            "" not in counts
            and len(counts) == len(self._processors)
            and min(counts.values()) >= share
        )

    @property
    def twice(self) -> int:
        """Return how many events too many were processed."""
        numbers = [[number for *_, number in log] for log in self.processed.values()]
        return sum(len(each) - len(set(each)) for each in numbers)

    def silences(self) -> list[float]:
        """Return the seconds between the last event at an owner and the first at the next one."""
        return [
            began - ended
            for log in self.processed.values()
            for (ended, old, _), (began, new, _) in pairwise(log)
            if old != new
        ]

    def moves(self) -> list[Move]:
        """Return the hand-overs that were finished."""
        found: dict[tuple[str, float], Move] = {}
        for write in self.writes:
            if write.is_request and write.owner_id:
                move = self._move(write)
                if move is not None:
                    found[move.partition_id, move.stopped] = move
        return [*found.values()]

    def _move(self, request: Write) -> Move | None:
        key, times = request.partition_id, [request.at]
        owned = [each for each in self.writes if each.partition_id == key and not each.is_request]
        links = [(what, at) for at, what, partition_id in self.hub.history if partition_id == key]
        for happened in (
            [at for what, at in links if what == "detached"],
            [each.at for each in owned if not each.owner_id],
            [each.at for each in owned if each.owner_id],
            [at for what, at in links if what == "attached"],
        ):
            following = [at for at in happened if at >= times[-1]]
            if not following:
                return None
            times.append(following[0])
        return Move(key, *times)


class Joined(NamedTuple):
    """Group that was balanced again after consumers had joined it.

    Attributes:
        group: the consumers, which have stopped.
        balanced_after: seconds since the first of them joined.
        requests: of a consumer in a round until then.
    """

    group: Group
    balanced_after: float
    requests: float


async def joined(setting: Setting) -> Joined:
    """Have consumers join the first one, and wait until the group is balanced."""
    group = Group(setting)
    publishing = asyncio.create_task(group.publish())
    await group.join()
    while len(group.processed) < setting.partitions:  # noqa: ASYNC110 - the clock is simulated
        await asyncio.sleep(LOOK)
    longest = LONGEST_ROUND * setting.interval
    await asyncio.sleep(random.uniform(0, longest))
    began, writes = now(), len(group.writes)
    group.requests.clear()
    for _ in range(setting.consumers - 1):
        await asyncio.sleep(random.uniform(0, setting.interval / setting.consumers))
        await group.join()
    while not group.is_balanced() and now() < began + PATIENCE:  # noqa: ASYNC110 - likewise
        await asyncio.sleep(LOOK)
    balanced_after = now() - began
    # A store that claims in batches makes one request of all that are claimed at once.
    claims = {(each.at, each.is_request) for each in group.writes[writes:]}
    rounds = setting.consumers * balanced_after / (MEAN_ROUND * setting.interval)
    requests = (group.requests.total() + len(claims)) / rounds
    await asyncio.sleep(AFTER * longest + setting.opening)
    publishing.cancel()
    await group.stop()
    return Joined(group, balanced_after, requests)


def row(setting: Setting, runs: Sequence[Joined]) -> str:
    """Return a row of the table."""
    groups = [run.group for run in runs]
    move = max(
        (move for group in groups for move in group.moves()),
        key=lambda each: each.opened - each.stopped,
        default=None,
    )
    parts = ["", "", ""]
    if move is not None:
        steps = move[2:]
        parts = [f"{end - begin:.1f} s" for begin, end in pairwise(steps)]
    silences = [each for group in groups for each in group.silences()]
    cells = [
        f"{setting.partitions} x {setting.consumers}",
        f"{setting.interval:g} s",
        "yes" if setting.hands_over else "no",
        f"{max(run.balanced_after for run in runs):.1f} s",
        f"{max(silences):.1f} s",
        *parts,
        f"{max(run.requests for run in runs):.1f}",
        f"{sum(group.twice for group in groups):,}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = ["16x4", "64x8", "4x2"]
    parser.add_argument("--sizes", nargs="*", default=sizes, help="partitions x consumers")
    parser.add_argument("--interval", type=float, default=1.0, help="in seconds: 1")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each group")
    asked = parser.parse_args()
    for size in asked.sizes:
        partitions, consumers = map(int, size.split("x"))
        for hands_over in (False, True):
            setting = Setting(partitions, consumers, asked.interval, hands_over=hands_over)
            with quiet():
                runs = [simulate(partial(joined, setting), seed) for seed in range(asked.seeds)]
            print(row(setting, runs), flush=True)


if __name__ == "__main__":
    main()
