"""Scenarios: what happens to a group, and what is measured until it is balanced again."""

import asyncio
import gc
import math
import time
from collections import Counter
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal, get_args

from benchmarks.scale.backends import BACKENDS, Server
from benchmarks.scale.group import Group, Hub, Options
from eventhub_checkpoints.consume.balancer import Strategy
from simulated_time import quiet, simulate

Scenario = Literal["start", "join", "fail-10%", "fail-all", "rolling"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
SCENARIO_TITLES: dict[Scenario, str] = {
    "start": "all consumers start within a second, nothing is stored",
    "join": "a tenth more consumers start",
    "fail-10%": "a tenth of the consumers is killed",
    "fail-all": "all consumers are killed; as many start 10 s later",
    "rolling": "a tenth after the other stops, and is replaced 5 s later",
}
TENTHS = 10
WARM_INTERVALS = 2.5
"""Intervals before something happens to a running group."""
ROUND_INTERVALS = 1.1
"""Mean length of a round: the SDK extends an interval by up to 20 %."""
QUIET_ROUNDS = 3
"""Rounds for which a group has to stay balanced, and in which its steady rates are measured."""
START_SECONDS = 1.0
RESTART_SECONDS = 10.0
REPLACE_SECONDS = 5.0
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Setup:
    """One run of the simulation.

    Attributes:
        interval, expiration: the client's `load_balancing_interval` and
            `partition_ownership_expiration_interval`, by default those of the SDK.
        longest: simulated seconds after which the run ends, balanced or not.
        lasting: if set, the run ends exactly that many seconds after the event.
        hands_over: whether the consumers have a `HandoverStore`.
        drain: seconds that `on_partition_close` takes.
        load: seconds that a second of a consumer's work takes; 0: work takes no time.
        late: seconds by which each round of a consumer begins too late, at most.
        in_batches: whether the consumers are members that read in batches, not clients of the SDK.
    """

    scenario: Scenario
    backend: str
    consumers: int
    partitions: int
    strategy: Strategy = "greedy"
    interval: float = 30.0
    expiration: float = 0.0
    seed: int = 1
    longest: float = 48 * 3600.0
    lasting: float = 0.0
    hands_over: bool = False
    drain: float = 0.0
    load: float = 0.0
    late: float = 0.0
    in_batches: bool = False

    def __str__(self) -> str:
        size = f"{self.consumers} x {self.partitions}"
        return f"{self.scenario} {size} {self.backend} {self.strategy} {self.interval:g} s"


@dataclass(frozen=True)
class Outcome:
    """Result of one run; times in simulated seconds since the event of the scenario.

    Attributes:
        balanced_after: time until the group was balanced, and stayed so; None if it never was.
        hand_overs, takeovers: see `Observer`; `late_hand_overs` happened after it was balanced.
        replaced: see `Hub`.
        longest_gap, mean_gap: seconds for which a partition had no reader; the mean is over all
            partitions, so that one without a gap counts as 0.
        requests: number of requests until the group was balanced, by kind; `all_requests`: until
            the run ended.
        peak: most requests in one second. `refused`: those above the server's limit.
        lost_claims, unconfirmed_claims: counters of the stores.
        failed_rounds: rounds of load balancing that raised an error.
        largest, smallest: partitions per consumer in the end.
        is_read_once: whether in the end each partition was read by exactly one consumer.
        steady: requests per second after it was balanced, by kind.
        hand_overs_by_second, requests_by_second: since the event.
        run_seconds: real time that the run took.
    """

    setup: Setup
    balanced_after: float | None
    hand_overs: int
    takeovers: int
    replaced: int
    late_hand_overs: int
    longest_gap: float
    mean_gap: float
    requests: dict[str, int]
    all_requests: dict[str, int]
    peak: int
    refused: int
    lost_claims: int
    unconfirmed_claims: int
    failed_rounds: int
    largest: int
    smallest: int
    is_read_once: bool
    steady: dict[str, float]
    hand_overs_by_second: dict[int, int]
    requests_by_second: dict[int, int]
    run_seconds: float

    def facts(self) -> dict[str, Any]:
        """Return everything that the seed decides."""
        facts = asdict(self)
        del facts["run_seconds"]
        return facts


def run(setup: Setup) -> Outcome:
    """Simulate one scenario."""
    gc.collect()
    with quiet():
        return simulate(lambda: Run(setup).main(), setup.seed)


class Run:
    """A scenario while it runs."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._began = time.perf_counter()
        self._random = Random(setup.seed)
        self._hub = Hub(setup.partitions)
        self._server = Server(BACKENDS[setup.backend], self._hub.partition_ids, setup.seed)
        options = Options(
            setup.strategy,
            setup.interval,
            setup.expiration or 6 * setup.interval,
            setup.hands_over,
            setup.drain,
            setup.load,
            setup.late,
            setup.in_batches,
        )
        self._group = Group(self._hub, self._server, options)
        self._event_at = 0.0

    async def main(self) -> Outcome:
        setup, group = self._setup, self._group
        some = math.ceil(setup.consumers / TENTHS)
        if setup.scenario != "start":
            group.start_balanced(self._delays(setup.consumers, setup.interval))
            await asyncio.sleep(WARM_INTERVALS * setup.interval)
        self._begin()
        if setup.scenario == "start":
            group.start(self._delays(setup.consumers, START_SECONDS))
        elif setup.scenario == "join":
            group.start(self._delays(some, START_SECONDS))
        elif setup.scenario == "fail-10%":
            await group.kill(self._random.sample(group.consumers, some))
        elif setup.scenario == "fail-all":
            await group.kill(group.consumers)
            await asyncio.sleep(RESTART_SECONDS)
            group.start(self._delays(setup.consumers, START_SECONDS))
        else:
            first = list(group.consumers)
            for start in range(0, len(first), some):
                batch = first[start : start + some]
                await group.stop(batch)
                await asyncio.sleep(REPLACE_SECONDS)
                group.start(self._delays(len(batch), START_SECONDS))
                await asyncio.sleep(setup.interval)
        return await self._outcome()

    def _delays(self, count: int, seconds: float) -> list[float]:
        return [self._random.uniform(0, seconds) for _ in range(count)]

    def _begin(self) -> None:
        """Forget what was counted before the event of the scenario."""
        self._event_at = self._now
        self._server.requests.clear()
        self._server.by_second.clear()
        self._hub.forget_gaps()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _outcome(self) -> Outcome:
        setup, group, server = self._setup, self._group, self._server
        observer = group.observer
        balanced_at: float | None = None
        requests, hand_overs = Counter(server.requests), observer.hand_overs
        steady_from, before = math.inf, requests
        end = self._event_at + (setup.lasting or setup.longest)
        while self._now < end:
            if observer.balanced_since is None:
                balanced_at, steady_from = None, math.inf
            elif balanced_at is None:
                balanced_at = observer.balanced_since
                requests, hand_overs = Counter(server.requests), observer.hand_overs
            elif math.isinf(steady_from):
                # All rounds may be in step: whole rounds are counted, from between two of them.
                if self._now - balanced_at >= ROUND_INTERVALS * setup.interval / 2:
                    steady_from, before = self._now, Counter(server.requests)
            elif (
                self._now - steady_from >= QUIET_ROUNDS * ROUND_INTERVALS * setup.interval
                and not self._hub.unread
                and not setup.lasting
            ):
                break
            await asyncio.sleep(POLL_SECONDS)
        all_requests = dict(server.requests)
        gaps = [*self._hub.gaps, *(self._now - since for since in self._hub.unread.values())]
        lasted = self._now - steady_from
        steady = {
            kind: max(count - before[kind], 0) / lasted
            for kind, count in (all_requests.items() if lasted > 0 else ())
        }
        is_read_once = group.is_read_once
        shares = observer.shares
        await group.kill(group.consumers)
        return Outcome(
            setup=setup,
            balanced_after=None if balanced_at is None else balanced_at - self._event_at,
            hand_overs=observer.hand_overs,
            takeovers=observer.takeovers,
            replaced=self._hub.replaced,
            late_hand_overs=observer.hand_overs - hand_overs if balanced_at is not None else 0,
            longest_gap=max(gaps, default=0.0),
            mean_gap=sum(gaps) / setup.partitions,
            requests=dict(requests),
            all_requests=all_requests,
            peak=max(server.by_second.values()),
            refused=server.refused,
            lost_claims=group.counted("lost_claims"),
            unconfirmed_claims=group.counted("unconfirmed_claims"),
            failed_rounds=group.failed_rounds,
            largest=max(shares),
            smallest=min(shares),
            is_read_once=is_read_once,
            steady=steady,
            hand_overs_by_second=self._since_event(observer.by_second),
            requests_by_second=self._since_event(server.by_second),
            run_seconds=time.perf_counter() - self._began,
        )

    def _since_event(self, by_second: Counter[int]) -> dict[int, int]:
        began = int(self._event_at)
        return {second - began: count for second, count in sorted(by_second.items())}
