"""Real consumers on a real store: two groups, one for each client, and regular rebalances."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from backends import BACKENDS, Place
from eventhub_checkpoints import open_store
from eventhub_checkpoints.cli.demo.children import Child, ChildError
from eventhub_checkpoints.localhub import LocalHub
from soak.consumer import Orders
from soak.ledger import Ledger
from soak.trend import TOLERATED, Sample, Trend, sample, table, trends

VARIANTS = ("sync", "aio")
PARTITIONS = ("0", "1", "2", "3")
HUB = "soak"
TICK_SECONDS = 0.05
RETAINED = 20_000
"""Events that the hub keeps of a partition: more than a consumer is ever behind."""
REST_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        backend: name of the store's backend.
        seconds: length of the run.
        rate: events per second, over all partitions.
        visit: every so many seconds a second consumer joins each group, for half of that time.
        every: seconds between two samples.
        interval: seconds between two rounds of load balancing.
        kept: bytes that the consumers leak of every event.
        keeps_tags: whether azure-eventhub keeps a tag of every event, as it does by itself.
    """

    backend: str = "postgres"
    seconds: float = 1800.0
    rate: float = 200.0
    visit: float = 60.0
    every: float = 60.0
    interval: float = 2.0
    kept: int = 0
    keeps_tags: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run.

    Attributes:
        samples: of the consumer that runs all the time, by group.
        ledgers: by group.
        lost: number of events that were not processed, by group.
        visits: number of times that a second consumer has joined each group.
        problems: descriptions of broken rules.
    """

    samples: dict[str, list[Sample]]
    ledgers: dict[str, Ledger]
    lost: dict[str, int]
    visits: int
    problems: list[str]

    @property
    def trends(self) -> list[tuple[str, str, Trend]]:
        """Return what is judged: the group, the measure and its trend."""
        return [
            (variant, name, one)
            for variant, samples in self.samples.items()
            for name, one in trends(samples).items()
        ]

    def report(self) -> str:
        """Return the report in Markdown."""
        counts = [
            f"{variant}: {ledger.events:,} events, {self.lost[variant]} lost, "
            f"{ledger.twice:,} times one again in {self.visits} visits"
            for variant, ledger in self.ledgers.items()
        ]
        return "\n".join([*counts, "", table(self.trends), *self.problems])


class Group:
    """Consumers of one variant: one that stays, and one that comes and goes."""

    def __init__(self, orders: Orders, folder: Path) -> None:
        self._orders, self._folder = orders, folder
        self.ledger = Ledger(Path(orders.journal))
        self.steady = self._start("steady")
        self._visitor: Child | None = None

    def _start(self, role: str) -> Child:
        name = f"{self._orders.variant}-{role}"
        orders = replace(self._orders, samples=str(self._samples(role)))
        paths = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        return Child(
            [sys.executable, "-m", "soak.consumer", orders.to_json()],
            log=self._folder / f"{name}.log",
            env={"PYTHONPATH": os.pathsep.join(paths)},
            name=name,
        )

    def _samples(self, role: str) -> Path:
        return self._folder / f"{self._orders.variant}-{role}-samples"

    def sample(self, at: float) -> Sample:
        """Read what the consumer that stays uses now."""
        return sample(self.steady.pid, self._samples("steady"), at)

    def change(self, has_visitor: bool) -> None:
        """Let the second consumer come or go.

        Raises:
            ChildError: a consumer has ended by itself, or with an error.
        """
        if (status := self.steady.poll()) is not None:
            raise ChildError(f"{self.steady.name} ended with {status}:\n{self.steady.tail()}")
        if has_visitor and self._visitor is None:
            self._visitor = self._start("visitor")
        elif not has_visitor and self._visitor is not None:
            visitor, self._visitor = self._visitor, None
            # On a busy machine it may not have got as far as handling the signal.
            stop(visitor, 0, -signal.SIGTERM)

    def stop(self) -> None:
        """Stop the consumers gracefully.

        Raises:
            ChildError: one of them ended with an error.
        """
        self.change(has_visitor=False)
        stop(self.steady, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in filter(None, (self._visitor, self.steady)):
            child.kill()


def stop(child: Child, *accepted: int) -> None:
    """Stop a consumer gracefully.

    Raises:
        ChildError: its exit status is none of those that are accepted.
    """
    if (status := child.stop(STOP_SECONDS)) not in accepted:
        raise ChildError(f"{child.name} ended with {status} after SIGTERM:\n{child.tail()}")


class Soak:
    """A run."""

    def __init__(self, plan: Plan, hub: LocalHub, place: Place, groups: dict[str, Group]) -> None:
        self._plan, self._hub, self._place, self._groups = plan, hub, place, groups
        self._published = 0
        self._visits = 0
        self._samples: dict[str, list[Sample]] = {variant: [] for variant in groups}
        self._problems: list[str] = []

    def run(self) -> Outcome:
        """Publish, and let visitors come and go, until the time is over."""
        began = now = time.monotonic()
        while now - began < self._plan.seconds:
            self._publish(now - began)
            self._visit(now - began)
            if now - began >= len(next(iter(self._samples.values()))) * self._plan.every:
                self._sample(now - began)
            time.sleep(TICK_SECONDS)
            now = time.monotonic()
        return self._end()

    def _publish(self, elapsed: float) -> None:
        due = int(elapsed * self._plan.rate) // len(PARTITIONS) * len(PARTITIONS)
        count, self._published = (due - self._published) // len(PARTITIONS), due
        for partition in PARTITIONS if count else ():
            numbers = self._hub.publish(HUB, partition, [b"event"] * count)
            self._hub.trim(HUB, partition, before=max(numbers.start - RETAINED, 0))

    def _visit(self, elapsed: float) -> None:
        # Between two visits: by default, each sample shows a consumer that has all partitions.
        has_visitor = 0.25 <= elapsed / self._plan.visit % 1 < 0.75
        self._visits += has_visitor and elapsed // self._plan.visit >= self._visits
        for group in self._groups.values():
            group.change(has_visitor)

    def _sample(self, elapsed: float) -> None:
        told = []
        for variant, group in self._groups.items():
            taken = group.sample(elapsed)
            self._samples[variant].append(taken)
            group.ledger.read()
            used = ", ".join(f"{name} {getattr(taken, name):.4g}" for name in TOLERATED)
            counted = f"{group.ledger.events} events, {group.ledger.twice} again"
            told.append(f"{variant}: {counted}, {used}")
        print(f"{elapsed:6.0f} s", *told, sep="  ", flush=True)

    def _end(self) -> Outcome:
        """Let the consumers process the rest, stop them, and compare what they have saved."""
        ends = dict.fromkeys(PARTITIONS, self._published // len(PARTITIONS))
        deadline = time.monotonic() + REST_SECONDS
        ledgers = {variant: group.ledger for variant, group in self._groups.items()}
        while time.monotonic() < deadline:
            for ledger in ledgers.values():
                ledger.read()
            if not any(ledger.missing(ends) for ledger in ledgers.values()):
                break
            time.sleep(TICK_SECONDS)
        for variant, group in self._groups.items():
            group.stop()
            group.ledger.read()
            self._check_saved(variant, ends)
        lost = {variant: ledger.missing(ends) for variant, ledger in ledgers.items()}
        self._problems += [f"{variant}: {count} lost" for variant, count in lost.items() if count]
        return Outcome(self._samples, ledgers, lost, self._visits, self._problems)

    def _check_saved(self, variant: str, ends: dict[str, int]) -> None:
        with open_store(self._place.url) as store:
            rows = store.list_checkpoints(f"{self._hub.host}:{self._hub.port}", HUB, variant)
        saved = {row["partition_id"]: row["sequence_number"] + 1 for row in rows}
        if saved != ends:
            self._problems.append(f"{variant}: {saved} is saved, and the hub ends at {ends}")


@contextmanager
def started(plan: Plan) -> Iterator[Soak]:
    """Start the hub, the store's server and the consumers."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        backend = opened.enter_context(BACKENDS[plan.backend]())
        place = opened.enter_context(backend.place())
        hub = opened.enter_context(LocalHub({HUB: len(PARTITIONS)}))
        groups = {}
        for variant in VARIANTS:
            journal = folder / f"{variant}-journal"
            journal.touch()
            orders = Orders(
                variant=variant,
                connection=hub.connection_string(HUB),
                url=place.url,
                journal=str(journal),
                interval=plan.interval,
                kept=plan.kept,
                keeps_tags=plan.keeps_tags,
            )
            groups[variant] = opened.enter_context(Group(orders, folder))
        yield Soak(plan, hub, place, groups)
