"""Rules for a journal, and the judge that checks them.

The lines are in the order of the actions, so these rules need no clock:

1. Whenever a position is saved, or found saved, every event up to it is done.
2. The position found saved is never below one found or confirmed before.
3. With `max_unsaved` = M a session has started no event more than M after the position found.
4. After a graceful end, all that was finished in order is saved, and all that was started is done.
5. Of all claims with one etag one wins, and no stored row has an etag that was replaced.
6. After a hand-over, that is, if the owner was asked for the partition and has released it, nothing
   that was done is read again, unless a write has failed.

Two rules have a clock. Without `max_unsaved`, `claimed.py` has the bound for what is read again.
And a worker that has read that a partition has another owner begins no event of it `GRACE` seconds
later. What a frozen worker has in its hands when it goes on counts as read again.

A cluster that replicates after it has confirmed may lose that in a fail-over. What the new primary
lacks is counted as forgotten. Until the next checkpoint is confirmed, a position may then be found
as low as on the survivors, and more be read again; and an etag that one of them has may win again.

An official worker writes and first claims without a condition: what it has written back is counted,
and breaks no rule. A Spark stream has partitions of its own, and only the rules 1 and 2. When the
hub is created again, everything begins again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from crashes.workers.claimed import PATIENCE, Claimed, Replay, replay_of, unfinished, way_of
from crashes.workers.diary import PARTITIONS
from crashes.workers.journal import HANDS_OVER, NOTHING, STOPS, Line
from crashes.workers.orders import PROCESSORS, Orders

GRACE = 15.0
"""Seconds within which a worker on a busy machine stops what it has lost; usually less than one."""
Key = tuple[str, str, int]
"""Worker, partition, number of the session."""


class Judge:
    """Reads a round's journal, line by line.

    Args:
        orders: of every worker, by its name.

    Attributes:
        problems: descriptions of broken rules.
        counts: broken rules by their names, and what official workers have written back.
        ways: the same and what else occurred, by `way_of` of the worker concerned.
        done: the events that were processed, by partition.
        known: the position that was last found or confirmed, by partition.
        replays: of every session that another one has followed.
    """

    def __init__(self, orders: Mapping[str, Orders]) -> None:
        self._orders = orders
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.ways: dict[str, Counter[str]] = defaultdict(Counter)
        self.replays: list[Replay] = []
        self._dead: dict[str, float] = {}
        self._frozen: dict[str, tuple[float, float]] = {}
        self._begin()

    def _begin(self) -> None:
        """Know nothing of the hub's events and of the rows: at the start, and for a new hub."""
        self.done: dict[str, set[int]] = defaultdict(set)
        self._prefix: dict[str, int] = defaultdict(lambda: NOTHING)
        self.known: dict[str, int] = defaultdict(lambda: NOTHING)
        self._listings: dict[str, dict[str, int]] = {}
        self._listed_at: dict[str, float] = {}
        self._claims: dict[Key, Claimed] = {}
        self._open: dict[str, dict[Key, Claimed]] = defaultdict(dict)
        self._set_back: set[str] = set()
        self._replaced: dict[tuple[str, str], tuple[str, str]] = {}
        self._others: dict[tuple[str, str], float] = {}
        self._writers: dict[str, str] = {}
        self._confirmed: dict[str, list[int]] = defaultdict(list)
        self._lacking: dict[int, Counter[str]] = defaultdict(Counter)
        self._survived: dict[str, int] = {}
        self._survived_etags: set[tuple[str, str]] = set()
        self._survived_at = 0.0

    def read(self, lines: Iterable[Line]) -> None:
        """Check the next lines."""
        for line in lines:
            getattr(self, f"_on_{line.what}")(line)

    def _count(self, who: str, what: str) -> None:
        """Count what a worker has done, or that a rule was broken by it."""
        self.counts[what] += 1
        self.ways[self._way(who)][what] += 1

    def _way(self, who: str) -> str:
        return way_of(self._orders[who].kind) if who in self._orders else who

    def _problem(self, line: Line, rule: str, what: str, who: str = "") -> None:
        told = f"{line.who}, partition {line.partition}, claim {line.claim}: {what}"
        self._count(who or line.who, rule)
        self.problems.append(f"at {line.at:.3f} {told}")

    def _is_official(self, who: str) -> bool:
        return who in self._orders and self._orders[who].way == "official"

    def _on_listing(self, line: Line) -> None:
        self._listings[line.who] = dict(self.known)
        self._listed_at[line.who] = line.at

    def _on_listed(self, line: Line) -> None:
        before = self._listings[line.who].get(line.partition, NOTHING)
        if line.number < before:
            if line.number >= self._survived.get(line.partition, before):
                self.known[line.partition] = line.number
            elif line.partition in PARTITIONS and any(map(self._is_official, self._orders)):
                self._count(self._writers.get(line.partition, line.who), "back by official")
                self._set_back.add(line.partition)
                self.known[line.partition] = line.number
            else:
                found = f"found {line.number} saved, where {before} was before"
                # Not by the one that notices it, but by the last that wrote.
                self._problem(line, "back", found, self._writers.get(line.partition, ""))
        self._check_passed(line, "was found saved")
        self.known[line.partition] = max(self.known[line.partition], line.number)

    def _check_passed(self, line: Line, how: str) -> None:
        done, number = self.done[line.partition], self._prefix[line.partition]
        while number + 1 in done:
            number += 1
        self._prefix[line.partition] = number
        if line.number > number:
            self._problem(line, "passed", f"{line.number} {how}, and {number + 1} is not done")

    def _on_claimed(self, line: Line) -> None:
        before = self._open.pop(line.partition, {})
        self._others.pop((line.who, line.partition), None)
        for key, claim in before.items():
            self._judge(line, key, claim)
            if key[0] not in self._dead and claim.closing_at is None and key[0] != line.who:
                self._count(line.who, "takeovers")
        if line.who in self._orders:
            self._count(line.who, "sessions")
            claim = Claimed(self._orders[line.who], line.number)
            key = line.who, line.partition, line.claim
            self._claims[key] = self._open[line.partition][key] = claim

    def _of(self, line: Line) -> Claimed:
        return self._claims[line.who, line.partition, line.claim]

    def _on_begun(self, line: Line) -> None:
        claim = self._of(line)
        if not claim.has_begun:
            claim.has_begun = True
            self._check_start(line, claim)
        since = self._others.get((line.who, line.partition))
        _, thawed = self._frozen.get(line.who, (0.0, 0.0))
        if since is not None and line.at > max(since, thawed) + GRACE:
            began = f"began {line.number}, {line.at - since:.1f} s after it read of another owner"
            self._problem(line, "two owners", began)
        claim.repeats |= line.number in claim.begun
        # A loop over batches still has the batch that it was given before.
        if claim.closing_at is None or claim.orders.way == "batches":
            claim.begun.setdefault(line.number, line.at)

    def _check_start(self, line: Line, claim: Claimed) -> None:
        """Check where a session begins; `claim.start` becomes where it has to."""
        before = self._claims.get((line.who, line.partition, line.claim - 1))
        if before and claim.start == NOTHING and before.orders.way in PROCESSORS:
            # A processor that has saved nothing continues after what it has finished.
            claim.start = before.prefix
        if line.number != claim.start + 1:
            began = f"began at {line.number}, where {claim.start} was saved"
            self._problem(line, "left out", began)

    def _on_other(self, line: Line) -> None:
        self._others.setdefault((line.who, line.partition), line.at)

    def _on_own(self, line: Line) -> None:
        self._others.pop((line.who, line.partition), None)

    def _on_won(self, line: Line) -> None:
        key = line.partition, line.before
        if key in self._survived_etags:
            self._survived_etags.discard(key)
            self._replaced.pop(key, None)
        first, _ = self._replaced.setdefault(key, (line.who, line.etag))
        is_unconditional = line.before == "none" and (
            self._is_official(line.who) or self._is_official(first)
        )
        if first != line.who and not is_unconditional:
            both = f"{first} and {line.who} have both won with the etag {line.before}"
            self._problem(line, "two owners", both)

    def _on_stored(self, line: Line) -> None:
        key = line.partition, line.etag
        if key in self._replaced and key not in self._survived_etags:
            winner, _ = self._replaced[key]
            stored = f"the etag {line.etag} is stored, which a claim of {winner} has replaced"
            self._problem(line, "two owners", stored, winner)

    def _on_survived(self, line: Line) -> None:
        beyond = sum(number > line.number for number in self._confirmed[line.partition])
        claims, key = 0, (line.partition, line.etag)
        self._survived_etags.add(key)
        while key in self._replaced:
            claims, key = claims + 1, (line.partition, self._replaced[key][1])
        self._lacking[line.claim].update(
            {"checkpoints forgotten": beyond, "claims forgotten": claims}
        )
        lowest = self._survived.get(line.partition, line.number)
        self._survived[line.partition] = min(lowest, line.number)
        self._survived_at = line.at
        if beyond:
            self._set_back.add(line.partition)

    def _on_succeeded(self, line: Line) -> None:
        self.counts += self._lacking[line.claim]
        self._lacking.clear()
        self._confirmed.clear()

    def _on_frozen(self, line: Line) -> None:
        self._frozen[line.who] = line.at, float("inf")

    def _on_thawed(self, line: Line) -> None:
        self._frozen[line.who] = self._frozen[line.who][0], line.at

    def _on_recreated(self, line: Line) -> None:
        self._begin()

    def _on_done(self, line: Line) -> None:
        claim = self._of(line)
        claim.done[line.number] = line.at
        claim.raised.discard(line.number)
        if line.number not in self.done[line.partition]:
            self.ways[self._way(line.who)]["events"] += 1
        self.done[line.partition].add(line.number)

    def _on_read(self, line: Line) -> None:
        self.ways[line.who]["events"] += line.number not in self.done[line.partition]
        self.done[line.partition].add(line.number)

    def _on_publishing(self, line: Line) -> None:
        self._check_passed(line, "is being published")
        self._writers[line.partition] = line.who

    def _on_published(self, line: Line) -> None:
        self.known[line.partition] = max(self.known[line.partition], line.number)

    def _on_failed(self, line: Line) -> None:
        self._of(line).failed.add(line.number)

    def _on_raised(self, line: Line) -> None:
        self._of(line).raised.add(line.number)

    def _on_closing(self, line: Line) -> None:
        claim = self._of(line)
        claim.closing_at = line.at
        claim.is_graceful, claim.hands_over = line.number == STOPS, line.number == HANDS_OVER

    def _on_releasing(self, line: Line) -> None:
        for (who, _, _), claim in self._open[line.partition].items():
            if who == line.who and claim.closing_at is not None:
                claim.released_at = line.at

    def _on_closed(self, line: Line) -> None:
        claim = self._of(line)
        claim.closed_at = line.at
        claim.left = set(claim.begun) - claim.done.keys() - claim.failed

    def _on_saving(self, line: Line) -> None:
        self._check_passed(line, "is being saved")
        self._writers[line.partition] = line.who
        claim = self._of(line)
        claim.tried_at = line.at
        if claim.troubled_since is None:
            claim.troubled_since = line.at

    def _on_saved(self, line: Line) -> None:
        self.known[line.partition] = max(self.known[line.partition], line.number)
        self._confirmed[line.partition].append(line.number)
        if self._of(line).tried_at > self._survived_at and line.partition in self._survived:
            del self._survived[line.partition]
            self._set_back.discard(line.partition)
        self._on_refused(line)

    def _on_refused(self, line: Line) -> None:
        claim = self._of(line)
        if claim.troubled_since is not None:
            claim.writes.append((claim.troubled_since, line.at))
        claim.troubled_since, claim.has_failed_writes = None, False

    def _on_unsaved(self, line: Line) -> None:
        self._of(line).has_failed_writes = True

    def _on_uncommitted(self, line: Line) -> None:
        claim = self._of(line)
        claim.has_failed_writes, claim.tried_at = True, line.at
        claim.troubled_since = claim.troubled_since or line.at

    def _on_kill(self, line: Line) -> None:
        self._dead[line.who] = line.at
        self._count(line.who, "kills")

    def _on_ended(self, line: Line) -> None:
        self._dead.setdefault(line.who, line.at)
        for (who, _, _), claim in self._claims.items():
            if who == line.who and line.number == 0 and claim.closed_at is None:
                claim.closed_at = line.at

    def _judge(self, line: Line, key: Key, claim: Claimed) -> None:
        """Compare what a session has done with the position after which the next one begins."""
        told = f"{claim.orders.kind}, {claim.orders.policy!r}, of {key[0]}, claim {key[2]}"
        # The old owner may continue for a while after the new one has read where to begin.
        position, read_at = line.number, self._listed_at[line.who]
        ends = [read_at, self._dead.get(key[0], read_at), claim.closing_at or read_at]
        frozen, thawed = self._frozen.get(key[0], (read_at, read_at))
        # A worker that has just been woken is still about to save what it did before.
        ends += [frozen] if read_at < thawed + PATIENCE else []
        replay = replay_of(claim, position, read_at, min(ends))
        if line.partition in self._set_back:
            return
        self.replays.append(replay)
        if replay.counted > replay.bound:
            most = f"{replay.counted} events are read again, expected at most {replay.bound}"
            self._problem(line, "replay", f"{most}; {told}", key[0])
        is_over = claim.closed_at is not None and claim.closed_at <= read_at
        if claim.is_graceful and is_over and not claim.has_failed_writes:
            for what in unfinished(claim, position):
                self._problem(line, "graceful", f"after a graceful end {what}; {told}", key[0])
        is_released = claim.released_at is not None and claim.released_at <= read_at
        if claim.hands_over and is_released and not claim.has_failed_writes:
            self._count(key[0], "hand-overs")
            for what in unfinished(claim, position):
                self._problem(line, "read twice", f"after a hand-over {what}; {told}", key[0])

    def lost(self, published: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return and count events that nobody has done.

        They count for the worker that was the first to begin a later one, or for the last to write.

        Args:
            published: the last event of each partition.
        """
        found = lost(self.done, published)
        for partition, number in found:
            passed = (
                who
                for (who, one, _), claim in self._claims.items()
                if one == partition and max(claim.begun, default=NOTHING) > number
            )
            self._count(next(passed, self._writers.get(partition, "nobody")), "lost")
        return found


def lost(done: Mapping[str, set[int]], published: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return events that nobody has done.

    Args:
        done: by partition.
        published: the last event of each partition.
    """
    return [
        (partition, number)
        for partition, last in published.items()
        for number in range(last + 1)
        if number not in done[partition]
    ]
