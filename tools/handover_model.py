"""Bounded model of the hand-over: every interleaving of a few consumers, on the rule itself.

    PYTHONPATH=src:tools python -m handover_model            all cases
    PYTHONPATH=src:tools python -m handover_model planned    some of them
    PYTHONPATH=src:tools python -m handover_model --large    those that take from minutes to an hour

One consumer owns all partitions, others want them. A step is one call of the store, the end of a
drain, a tick of the clock, or trouble: a crash, a stop, a call that fails or whose answer is lost.
Each round of load balancing is four steps, with `GroupHandover` deciding as in the store. The
client of the model may do all that the real one does, and more: it may want any partition or none.
All orders of all steps are tried, within the bounds of a case.

Checked at every step: nobody takes over a partition of a live owner before the deadline of the
hand-over request, and nobody opens a partition that a live consumer still has open or drains,
unless the partition was taken over after that deadline or after the ownership had expired. Checked
at every end: if the rest goes well, each partition is soon open in one live consumer.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from eventhub_checkpoints.processing.handover import Answer, GroupHandover

LIMIT = 2
"""Ticks until an ownership expires, and that an owner has to answer."""
IDLE, LISTED, READY, CLAIMED = "idle", "listed", "ready", "claimed"
OPEN, DRAINING, STALE = "open", "draining", "stale"
ETERNITY = 6 * LIMIT
"""Rounds of all consumers in which what is left of a hand-over has to be over."""

Row = tuple[str, int, int]
"""Owner, etag, and the time of the last change."""


class ModelError(AssertionError):
    """A step that must not happen, or an end from which no consumer gets a partition."""


@dataclass(frozen=True)
class Case:
    """What may happen, and how often.

    Attributes:
        newcomers: consumers that own nothing at first.
        partitions: all owned by one consumer at first.
        rounds: of load balancing: of the owner, and of each newcomer.
        ticks: of the clock. Below `LIMIT`, every hand-over is a planned one.
        crashes: consumers that die.
        stops: consumers that stop in good order.
        faults: calls of the store that fail, or are carried out without an answer.
        skew: ticks by which the clock of the first newcomer is ahead of the store's.
        is_foreign: whether the store below refuses a release with an old etag.
        is_deaf: whether the owner has no `HandoverStore`.
    """

    newcomers: int = 1
    partitions: int = 2
    rounds: tuple[int, int] = (2, 3)
    ticks: int = 1
    crashes: int = 0
    stops: int = 0
    faults: int = 0
    skew: int = 0
    is_foreign: bool = False
    is_deaf: bool = False


CASES = {
    "planned": Case(partitions=1, rounds=(3, 3), ticks=1),
    "planned, two partitions": Case(rounds=(2, 2), ticks=1),
    "two newcomers": Case(newcomers=2, partitions=1, rounds=(2, 2), ticks=1),
    "two newcomers, two partitions": Case(newcomers=2, rounds=(1, 2), ticks=0),
    "two at once": Case(partitions=4, rounds=(2, 2), ticks=0),
    "two at once, two newcomers": Case(newcomers=2, partitions=4, rounds=(1, 1), ticks=0),
    "deadline": Case(partitions=1, rounds=(2, 3), ticks=3),
    "newcomer dies": Case(partitions=1, rounds=(2, 2), ticks=2, crashes=1),
    "one of three dies": Case(newcomers=2, partitions=1, rounds=(1, 1), ticks=1, crashes=1),
    "two die": Case(partitions=1, rounds=(2, 2), ticks=2, crashes=2),
    "stop in the middle": Case(rounds=(2, 1), ticks=0, stops=1),
    "stop of one of three": Case(newcomers=2, partitions=1, rounds=(1, 2), ticks=0, stops=1),
    "storage away": Case(partitions=1, rounds=(2, 2), ticks=1, faults=2),
    "storage away, two newcomers": Case(
        newcomers=2, partitions=1, rounds=(1, 2), ticks=0, faults=1
    ),
    "clock ahead": Case(partitions=1, rounds=(2, 3), ticks=3, skew=1),
    "clock behind": Case(partitions=1, rounds=(2, 3), ticks=3, skew=-1),
    "foreign store": Case(partitions=1, rounds=(2, 3), ticks=1, faults=1, is_foreign=True),
    "owner without it": Case(partitions=1, rounds=(2, 3), ticks=3, is_deaf=True),
}
LARGE = {
    "two newcomers, two partitions, time": Case(newcomers=2, rounds=(1, 2), ticks=1),
    "two newcomers, deadline": Case(newcomers=2, partitions=1, rounds=(1, 2), ticks=2),
    "two newcomers, one of three dies": Case(
        newcomers=2, partitions=1, rounds=(1, 2), ticks=1, crashes=1
    ),
    "two partitions, more rounds": Case(rounds=(3, 3), ticks=1),
}


class Actor:
    """One consumer.

    Attributes:
        open: partitions that it has open, drains, or has lost without knowing.
        held: etag of each partition in the last result that its client has; its releases use it.
        newest: etag that its store has last won for each partition.
        asked: which owner it has last asked for each partition, and when; also after another
            consumer's request has replaced its own, as it may take the partition over meanwhile.
    """

    def __init__(self, name: str, skew: int, rounds: int) -> None:
        self.name, self.skew, self.rounds = name, skew, rounds
        self.phase, self.is_alive, self.is_stopping = IDLE, True, False
        self.group = GroupHandover(LIMIT)
        self.open: dict[str, str] = {}
        self.held: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        self.asked: dict[str, tuple[str, int]] = {}
        self.rows: dict[str, Row] = {}
        self.claims: tuple[tuple[str, int | None], ...] = ()
        self.asks: tuple[tuple[str, str, int | None], ...] = ()
        self.result: tuple[tuple[str, bool], ...] = ()

    def copy(self) -> "Actor":
        """Return an actor that shares nothing that changes."""
        other = Actor.__new__(Actor)
        other.__dict__.update(self.__dict__)
        for name in ("open", "held", "newest", "asked"):
            setattr(other, name, dict(getattr(self, name)))
        group = other.group = GroupHandover.__new__(GroupHandover)
        group.__dict__.update(self.group.__dict__)
        group.departures = {key: replace(each) for key, each in group.departures.items()}
        group.released, group.asking = set(group.released), set(group.asking)
        group._spent, group.over = dict(group._spent), dict(group.over)
        return other

    def key(self) -> tuple[Any, ...]:
        """Return all that makes a difference, as a value."""
        group = self.group
        departures = [(key, *vars(each).values()) for key, each in group.departures.items()]
        requests = None if group._requests is None else frozenset(group._requests.items())
        return (
            *(self.phase, self.is_alive, self.is_stopping, self.rounds, self.claims, self.asks),
            *(self.result, frozenset(self.open.items()), frozenset(self.held.items())),
            *(frozenset(self.newest.items()), frozenset(self.rows.items())),
            *(frozenset(departures), requests, frozenset(group._owners.items())),
            frozenset(group._shown.items()),
            *(frozenset(group._spent.items()), frozenset(group.over.items())),
            *(frozenset(group._etags.items()), frozenset(group.released)),
            *(group.me, group._listed_at, group._longest_delay, group._late_until, group._patience),
            frozenset(self.asked.items()),
        )


class World:
    """State of everything."""

    def __init__(self, case: Case) -> None:
        self.case, self.now, self.etag = case, 0, 0
        self.crashes, self.stops, self.faults = case.crashes, case.stops, case.faults
        self.rows: dict[str, Row] = {}
        self.requests: dict[str, Row] = {}
        owner = Actor("owner", 0, case.rounds[0])
        owner.group.me = owner.name
        self.actors = [owner]
        for number in range(case.newcomers):
            skew = case.skew if number == 0 else 0
            self.actors.append(Actor(f"newcomer{number}", skew, case.rounds[1]))
        for partition_id in map(str, range(case.partitions)):
            self.write(self.rows, partition_id, "owner")
            owner.open[partition_id] = OPEN
            owner.held[partition_id] = owner.newest[partition_id] = self.etag

    def copy(self) -> "World":
        """Return a world that shares nothing that changes."""
        other = World.__new__(World)
        other.__dict__.update(self.__dict__)
        other.rows, other.requests = dict(self.rows), dict(self.requests)
        other.actors = [actor.copy() for actor in self.actors]
        return other

    def key(self) -> int:
        """Return all that makes a difference, as a hash."""
        rest = self.now, self.crashes, self.stops, self.faults
        rows = frozenset(self.rows.items()), frozenset(self.requests.items())
        return hash((rest, rows, *(actor.key() for actor in self.actors)))

    def write(self, table: dict[str, Row], partition_id: str, owner: str) -> None:
        """Change a row, and give it an etag that no row has had."""
        self.etag += 1
        table[partition_id] = owner, self.etag, self.now

    # The steps of a consumer.

    def list_ownerships(self, actor: Actor, ok: bool) -> None:
        """Begin a round."""
        actor.rounds -= 1
        if ok:
            actor.rows, actor.phase = dict(self.rows), LISTED

    def list_requests(self, actor: Actor, ok: bool) -> list[dict[str, str]]:
        """Return the partitions and owners that the client is shown."""
        rows = [dictionary(key, row) for key, row in actor.rows.items()]
        requests = [dictionary(key, row) for key, row in self.requests.items()] if ok else None
        if self.is_deaf(actor):
            return rows
        return actor.group.listed(rows, requests, self.now + actor.skew)

    def is_deaf(self, actor: Actor) -> bool:
        """Return whether the actor has no `HandoverStore`."""
        return self.case.is_deaf and actor.name == "owner"

    def choices(self, actor: Actor, shown: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        """Yield what the client may propose: what is its own, and at most one partition more."""
        now = self.now + actor.skew
        own: list[Any] = []
        free: list[Any] = []
        others: list[Any] = []
        for row in shown:
            claim = row["partition_id"], row["etag"]
            if not row["owner_id"] or row["last_modified_time"] + LIMIT < now:
                free.append(claim)
            else:
                (own if row["owner_id"] == actor.name else others).append(claim)
        yield tuple(own)
        for claim in free or (others if actor.name != "owner" else []):
            yield (*own, claim)

    def claim(self, actor: Actor, is_kept: bool) -> None:
        """Claim, renew and release, all in one call, and record what is to be asked for."""
        now = self.now + actor.skew
        asks: list[Any] = []
        result: list[tuple[str, bool]] = []
        for partition_id, etag in actor.claims:
            answer = Answer.CLAIM
            if not self.is_deaf(actor):
                actor.group.me = actor.name
                answer = actor.group.answer(partition_id, actor.name, now)
            if answer is Answer.ASK:
                asks += actor.group.asked(partition_id)
            if answer in (Answer.ASK, Answer.WAIT):
                continue
            owner, stored, modified = self.rows[partition_id]
            if stored != etag:
                continue
            if answer is Answer.RELEASE:
                self.write(self.rows, partition_id, "")
                continue
            if owner not in ("", actor.name):
                self.check_taking(actor, partition_id, owner, modified)
                self.others_become_stale(actor, partition_id)
            self.write(self.rows, partition_id, actor.name)
            actor.newest[partition_id] = self.etag
            result.append((partition_id, answer is Answer.KEEP))
        if not self.is_deaf(actor):
            renewed = {partition_id for partition_id, *_ in asks}
            over = actor.group.over.items()
            asks += ((key, "", etag) for key, etag in over if key not in renewed)
        if is_kept:
            actor.asks, actor.result, actor.phase = tuple(asks), tuple(result), CLAIMED
        else:
            actor.phase = IDLE  # the client keeps everything as it is

    def check_taking(self, actor: Actor, partition_id: str, owner: str, modified: int) -> None:
        """Check that a partition of a live owner is taken over only after the deadline."""
        ticks = LIMIT - abs(self.case.skew)
        if self.now - modified >= ticks:
            return
        asked, asked_at = actor.asked.get(partition_id, ("", 0))
        if asked == owner and self.now - asked_at >= ticks:
            return
        raise ModelError(f"{actor.name} takes {partition_id} from {owner}")

    def others_become_stale(self, actor: Actor, partition_id: str) -> None:
        """Mark the partition as lost in the other consumers that have it open."""
        for other in self.actors:
            if other is not actor and partition_id in other.open:
                other.open[partition_id] = STALE

    def ask(self, actor: Actor, ok: bool) -> None:
        """Write and withdraw requests, and have the client open and close partitions."""
        for partition_id, owner, etag in actor.asks if ok else ():
            if self.requests.get(partition_id, ("", None, 0))[1] != etag:
                continue
            if not owner:
                self.write(self.requests, partition_id, "")
            else:
                self.write(self.requests, partition_id, f"{actor.name}>{owner}")
                actor.asked[partition_id] = owner, self.now
        actor.phase = IDLE
        if actor.is_stopping:
            return
        released = () if self.is_deaf(actor) else actor.group.released
        result = [each for each in actor.result if each[0] not in released]
        kept = {partition_id for partition_id, is_departing in result if not is_departing}
        for partition_id, _ in result:
            actor.held[partition_id] = actor.newest[partition_id]
        for partition_id in actor.open.keys() - kept:
            if actor.open[partition_id] == OPEN:
                actor.open[partition_id] = DRAINING
        for partition_id in kept - actor.open.keys():
            actor.open[partition_id] = self.opened(actor, partition_id)

    def opened(self, actor: Actor, partition_id: str) -> str:
        """Return the state of a partition that is opened, and check that nobody else has it.

        If it was taken since it was claimed, and rightly, its new owner's link ends this one.
        """
        if self.rows[partition_id][0] != actor.name:
            return STALE
        for other in self.actors:
            state = other.open.get(partition_id, STALE)
            if other is not actor and other.is_alive and state != STALE:
                raise ModelError(f"{actor.name} opens {partition_id}, {state} in {other.name}")
        return OPEN

    def drained(self, actor: Actor, partition_id: str, ok: bool) -> None:
        """End the drain of a partition, and release it as the client does."""
        del actor.open[partition_id]
        if not self.is_deaf(actor):
            actor.group.closed(partition_id)
        owner, etag, _ = self.rows[partition_id]
        known = {actor.held.pop(partition_id, None)}
        if not self.case.is_foreign:
            known.add(actor.newest.get(partition_id))
        if ok and owner == actor.name and etag in known:
            self.write(self.rows, partition_id, "")

    # All that may happen next.

    def steps(self) -> Iterator[tuple[str, "World"]]:
        """Yield every step, and the world after it."""
        for at, actor in enumerate(self.actors):
            if actor.is_alive:
                yield from self.steps_of(at, actor)
        if self.now < self.case.ticks:
            other = self.copy()
            other.now += 1
            yield "tick", other

    def steps_of(self, at: int, actor: Actor) -> Iterator[tuple[str, "World"]]:
        """Yield the steps of one consumer."""
        name = actor.name
        for ok in (True, False) if self.faults else (True,):
            for what, other in self.rounds_of(at, actor, ok):
                other.faults -= not ok
                yield f"{name} {what}{'' if ok else ', which fails'}", other
        if self.crashes:
            other = self.copy()
            other.crashes -= 1
            other.actors[at].is_alive = False
            yield f"{name} dies", other
        if self.stops and not actor.is_stopping:
            other = self.copy()
            other.stops -= 1
            stopped = other.actors[at]
            stopped.is_stopping = True
            for partition_id, state in stopped.open.items():
                if state == OPEN:
                    stopped.open[partition_id] = DRAINING
            yield f"{name} stops", other

    def rounds_of(self, at: int, actor: Actor, ok: bool) -> Iterator[tuple[str, "World"]]:
        """Yield the next step of a round, and the ends of drains."""
        if actor.phase == IDLE and actor.rounds and not actor.is_stopping:
            other = self.copy()
            other.list_ownerships(other.actors[at], ok)
            yield "lists ownerships", other
        elif actor.phase == LISTED:
            for claims in self.copy().proposals(at, ok):
                other = self.copy()
                other.list_requests(other.actors[at], ok)
                other.actors[at].claims = claims
                other.actors[at].phase = READY if claims and not actor.is_stopping else IDLE
                yield f"lists requests, and wants {claims}", other
        elif actor.phase == READY:
            other = self.copy()
            other.claim(other.actors[at], ok)
            yield "claims", other
            if not ok:
                other = self.copy()
                other.actors[at].phase = IDLE
                yield "does not claim", other
        elif actor.phase == CLAIMED and (ok or actor.asks):
            other = self.copy()
            other.ask(other.actors[at], ok)
            yield "asks, and opens and closes", other
        for partition_id, state in actor.open.items():
            if state == DRAINING or (state == STALE and actor.is_stopping):
                other = self.copy()
                other.drained(other.actors[at], partition_id, ok)
                yield f"has drained {partition_id}", other

    def proposals(self, at: int, ok: bool) -> list[tuple[Any, ...]]:
        """Return what the client may propose after the next list of requests."""
        actor = self.actors[at]
        return list(self.choices(actor, self.list_requests(actor, ok)))

    # What happens if the rest goes well.

    def check_end(self) -> None:
        """Check that each partition is open in one live consumer, after a while without trouble."""
        alive = [actor for actor in self.actors if actor.is_alive and not actor.is_stopping]
        for _ in range(ETERNITY if alive else 0):
            self.now += 1
            for at, actor in enumerate(self.actors):
                if actor.is_alive:
                    self.finish_round(at, actor)
        for partition_id, (owner, *_) in self.rows.items() if alive else ():
            holders = [each for each in alive if each.open.get(partition_id) == OPEN]
            if [each.name for each in holders] != [owner]:
                raise ModelError(f"{partition_id} of {owner} is open in {len(holders)} consumers")

    def finish_round(self, at: int, actor: Actor) -> None:
        for partition_id, state in list(actor.open.items()):
            if state == DRAINING or actor.is_stopping:
                self.drained(actor, partition_id, True)
        if actor.is_stopping:
            actor.phase = IDLE
            return
        if actor.phase == IDLE:
            self.list_ownerships(actor, True)
        if actor.phase == LISTED:
            # Nothing new is wanted of others, and all that is free.
            shown = self.list_requests(actor, True)
            own, *more = self.choices(actor, shown)
            free = [claim[-1] for claim in more if self.is_free(actor, claim[-1][0], shown)]
            actor.claims, actor.phase = (*own, *free), READY
        if actor.phase == READY:
            self.claim(actor, True)
        if actor.phase == CLAIMED:
            self.ask(actor, True)
        for partition_id, state in list(actor.open.items()):
            if state == STALE:  # its link was taken by the owner's
                self.drained(actor, partition_id, True)

    def is_free(self, actor: Actor, partition_id: str, shown: list[dict[str, Any]]) -> bool:
        row = next(row for row in shown if row["partition_id"] == partition_id)
        is_expired = row["last_modified_time"] + LIMIT < self.now + actor.skew
        return not row["owner_id"] or bool(is_expired)


def dictionary(partition_id: str, row: Row) -> dict[str, Any]:
    """Return a row as a store does."""
    owner, etag, modified = row
    return {
        "partition_id": partition_id,
        "owner_id": owner,
        "etag": etag,
        "last_modified_time": modified,
    }


@dataclass
class Tried:
    """What was tried of a case.

    Attributes:
        traces: orders of steps from the beginning to an end.
    """

    states: int = 0
    steps: int = 0
    ends: int = 0
    traces: int = 0


def explore(case: Case) -> Tried:
    """Try all interleavings of a case.

    Raises:
        ModelError: one of them breaks a rule; the message has its steps.
    """
    tried, traces = Tried(), dict[int, int]()
    begin = World(case)
    # Every step uses up something, so the states form no circle. Each entry of the path is a
    # state's key, the steps that are still to be tried, and the traces that were counted.
    path: list[tuple[int, Iterator[tuple[str, World]], list[int]]] = []
    names: list[str] = []

    def enter(world: World) -> None:
        path.append((world.key(), world.steps(), [0, 0]))
        tried.states += 1
        worlds.append(world)

    worlds: list[World] = []
    enter(begin)
    try:
        while path:
            key, steps, counted = path[-1]
            name, following = next(steps, ("", None))
            if following is not None:
                tried.steps += 1
                counted[1] += 1
                known = traces.get(following.key())
                if known is None:
                    names.append(name)
                    enter(following)
                else:
                    counted[0] += known
                continue
            world = worlds.pop()
            if not counted[1]:
                tried.ends += 1
                counted[0] = 1
                world.copy().check_end()
            traces[key] = counted[0]
            path.pop()
            if path:
                path[-1][2][0] += counted[0]
                names.pop()
    except ModelError as error:
        raise ModelError(f"{error}, after: {'; '.join(names)}") from None
    tried.traces = traces[begin.key()]
    return tried


def main() -> None:
    """Try the cases that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    cases = CASES | LARGE
    parser.add_argument("cases", nargs="*", help=", ".join(cases))
    parser.add_argument("--large", action="store_true", help="the large cases, if none is named")
    asked = parser.parse_args()
    total = Tried()
    for name in asked.cases or (LARGE if asked.large else CASES):
        began = time.monotonic()
        tried = explore(cases[name])
        for field in vars(total):
            setattr(total, field, getattr(total, field) + getattr(tried, field))
        print(line(name, tried, time.monotonic() - began), flush=True)
    print(line("all", total, 0.0))


def line(name: str, tried: Tried, seconds: float) -> str:
    """Return one line of the report."""
    counts = f"{tried.states:>10,} states {tried.steps:>11,} steps {tried.ends:>9,} ends"
    return f"{name:<35} {counts} {tried.traces:>12.3g} traces {seconds:>7.1f} s"


if __name__ == "__main__":
    main()
