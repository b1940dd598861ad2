"""Plan of a round: which workers live when, what goes wrong, and how they end; drawn from a seed.

Every worker and every fault has a name, such as `worker-2` and `fault-0`. A plan without some of
them leaves the others as they are, which makes a failing round smaller.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from crashes.processing.stream import Stream
from crashes.workers.orders import HOUR, OFFICIAL, WAYS, Orders, Way, chosen_orders

End = Literal["kill", "stop"]
HUB_FAULTS = ("connections lost", "connections refused", "hub busy", "hub slow")
FREEZE = "freeze"
RECREATE = "recreate"
STREAM_EVERY = 50
"""Rounds for one with a Spark stream, which takes long to start. Its hub is not created again: it
would need its checkpoint folder removed."""
BEHIND = -50 * 60.0
"""A client's tokens are valid for an hour by its clock; later, the hub would refuse them."""
OFFICIAL_SHARE = 0.25
"""Of the workers on Blob Storage."""
OWN_CLOCK = "sqlite"
"""The store whose clock is that of the workers' machine."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong while workers process.

    Attributes:
        name: for `--without`.
        kind: one of the storage's, one of `HUB_FAULTS`, or `FREEZE`, which suspends a worker.
        seconds: how long it lasts.
    """

    name: str
    kind: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Member:
    """Worker and its end.

    Attributes:
        orders: of the worker, without places.
        waits: whether the round waits until the worker is seen at work.
        end: how it ends.
        pause: seconds after its end until the next worker's.
    """

    orders: Orders
    waits: bool
    end: End
    pause: float


@dataclass(frozen=True, slots=True)
class Life:
    """Some workers at the same time, from their start to their end.

    Attributes:
        members: in the order in which they start; they end in the reverse order.
        faults: one after another.
        seconds: that they process after the last fault.
        recreated: the fault that the hub is created again when they have ended.
    """

    members: Sequence[Member]
    faults: Sequence[Fault]
    seconds: float
    recreated: Fault | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a round.

    Attributes:
        seed: from which it was drawn.
        store: its name.
        lives: one after another.
        last: orders of the worker that processes the rest.
        stream: the Spark stream beside the workers.
    """

    seed: int
    store: str
    lives: Sequence[Life]
    last: Orders
    stream: Stream | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of all faults, and of all workers that end before the last one."""
        faults = [fault.name for life in self.lives for fault in life.faults]
        faults += [life.recreated.name for life in self.lives if life.recreated]
        faults += [self.stream.name] if self.stream else []
        return faults + [one.orders.name for life in self.lives for one in life.members]

    def without(self, names: Sequence[str]) -> "Plan":
        """Return the plan without these faults and workers."""
        lives = [
            replace(
                life,
                members=[one for one in life.members if one.orders.name not in names],
                faults=[one for one in life.faults if one.name not in names],
                recreated=None
                if life.recreated and life.recreated.name in names
                else life.recreated,
            )
            for life in self.lives
        ]
        stream = None if self.stream and self.stream.name in names else self.stream
        lives = [life for life in lives if life.members or life.recreated]
        return replace(self, lives=lives, stream=stream)


def drawn(seed: int, store: str, faults: Sequence[str], ways: Sequence[Way] = WAYS) -> Plan:
    """Draw the plan of a seed.

    Args:
        seed: of the round.
        store: its name.
        faults: kinds that its storage can have.
        ways: those that workers are drawn from.
    """
    chance = random.Random(seed)
    names = iter(range(100))
    lives: list[Life] = []
    workers = 0

    def member() -> Member:
        nonlocal workers
        orders = orders_of_a_worker(chance, f"worker-{workers}", store, ways)
        workers += 1
        waits, end = chance.random() < 0.85, chance.random()
        return Member(
            orders, waits, "kill" if end < 0.65 else "stop", chance.choice((0.0, 0.0, 2.5))
        )

    for _ in range(chance.randint(2, 4)):
        members = [member() for _ in range(chance.choice((1, 1, 2)))]
        drawn_faults = []
        for _ in range(chance.choice((0, 1, 1, 2))):
            kind = chance.choice((*faults, chance.choice(HUB_FAULTS), FREEZE))
            seconds = chance.uniform(2.0, 4.0) if kind == FREEZE else chance.uniform(0.1, 2.5)
            drawn_faults.append(Fault(f"fault-{next(names)}", kind, seconds))
        recreated = Fault(f"fault-{next(names)}", RECREATE, 0) if chance.random() < 0.1 else None
        lives.append(Life(members, drawn_faults, chance.uniform(0, 1.5), recreated))
    last = orders_of_a_worker(chance, "last", store, ways)
    stream = None
    if seed % STREAM_EVERY == 0:
        stream = Stream("stream", chance.random() < 0.7, chance.random() < 0.5)
        lives = [replace(life, recreated=None) for life in lives]
    last = replace(last, failures=0.0, slowness=0.0, write_slowness=0.0, restarts=False)
    return Plan(seed, store, lives, last, stream)


def orders_of_a_worker(chance: random.Random, name: str, store: str, ways: Sequence[Way]) -> Orders:
    """Return random orders that suit a store."""
    if store == "blob" and OFFICIAL in ways and chance.random() < OFFICIAL_SHARE:
        # The official stores compare the server's times with the worker's clock.
        return chosen_orders(chance, name, (OFFICIAL,))
    clocks = (0.0,) if store == OWN_CLOCK else (0.0,) * 8 + (BEHIND, HOUR)
    return chosen_orders(chance, name, [way for way in ways if way != OFFICIAL], clocks)
