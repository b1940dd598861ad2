"""Fail-overs under load, and what a cluster then has forgotten of what it had confirmed.

Four clients, sync and aio, claim, and two write checkpoints (`fault_trial.py`) while the primary is
killed. Between its death and the choice of its successor, when no call can succeed, every survivor
is read with a store and compared with what the clients were told; the survivor that takes over is
counted.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from backends.cassandra_trio import CassandraTrio
from backends.cluster import Cluster, ClusterPlace
from backends.postgres_pair import PostgresPair
from backends.redis_sentinel import RedisSentinel
from eventhub_checkpoints import open_store
from fault_judge import Judge, JudgeError
from fault_trial import SCOPE, Trial

CUT_SECONDS = 1.0
CLUSTERS: dict[str, Callable[[], Cluster]] = {
    "postgres": PostgresPair,
    "cassandra": CassandraTrio,
    "redis": RedisSentinel,
    "redis-cut": partial(RedisSentinel, cut_seconds=CUT_SECONDS),
    "redis-cut-unguarded": partial(RedisSentinel, cut_seconds=CUT_SECONDS, is_guarded=False),
}
ORDERLY = 0.25
"""Share of the primaries that are shut down in order."""


@dataclass
class Stored:
    """What one survivor has: an etag and a sequence number for each partition."""

    etags: Mapping[str, str]
    numbers: Mapping[str, int]

    @classmethod
    def on(cls, url: str) -> "Stored":
        """Read the rows of the trial's group with a store."""
        with open_store(url) as store:
            owned = store.list_ownership(*SCOPE)
            saved = store.list_checkpoints(*SCOPE)
        return cls(
            {row["partition_id"]: row["etag"] for row in owned},
            {row["partition_id"]: row["sequence_number"] for row in saved},
        )


class Ledger:
    """Counts of what is forgotten in each fail-over of a trial on a cluster."""

    def __init__(self, cluster: Cluster, place: ClusterPlace, trial: Trial) -> None:
        self._cluster = cluster
        self._place = place
        self._trial = trial
        self._claims = self._writes = 0
        self._told = Judge()
        self._found: dict[object, Stored] = {}

    def look(self) -> None:
        """Read every survivor, and keep what the clients have been told until now."""
        told = self._trial.judge.so_far()
        self._found = {
            node: Stored.on(self._place.url_of(node)) for node in self._cluster.survivors
        }
        # An answer may have arrived just before its server's death, and be recorded after it.
        self._told = self._trial.judge.so_far() if self._cluster.stops else told

    def counted(self) -> Counter[str]:
        """Return what the current primary had forgotten when it took over."""
        stored, told = self._found[self._cluster.primary], self._told
        seen = Counter(
            {
                "fail-overs": 1,
                "claims confirmed": sum(
                    claim.given is not None for claim in told.claims[self._claims :]
                ),
                "checkpoints confirmed": sum(
                    write.ended is not None for write in told.writes[self._writes :]
                ),
                "claims forgotten": told.forgotten_claims(stored.etags, self._claims),
                "checkpoints forgotten": told.forgotten_checkpoints(stored.numbers, self._writes),
            }
        )
        self._claims, self._writes = len(told.claims), len(told.writes)
        return seen


def run_failovers(cluster: Cluster, seed: int, rounds: int) -> Counter[str]:
    """End the primary of a running cluster `rounds` times under load; return the counts.

    Args:
        cluster: the cluster.
        seed: decides whether a primary is killed or shut down in order.
        rounds: number of fail-overs.

    Raises:
        JudgeError: a client did not go on, or a partition had two owners or something was
            forgotten although the cluster keeps what it confirms.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with cluster.place() as place, Trial(place) as trial:
        ledger = Ledger(cluster, place, trial)
        for _ in range(rounds):
            trial.go_on()
            trial.in_the_middle()
            is_orderly = order.random() < ORDERLY
            cluster.fail_over(ledger.look, is_orderly=is_orderly)
            seen.update(ledger.counted())
            seen["primaries shut down" if is_orderly else "primaries killed"] += 1
        trial.go_on()
        trial.stop()
        seen["two owners"] = trial.judge.won_twice()
        seen["calls answered"] = sum(worker.answered for worker in trial.workers)
        seen["calls without an answer"] = sum(worker.unknown for worker in trial.workers)
        if not cluster.forgets:
            trial.judge.checkpoints()
    lost = seen["claims forgotten"] + seen["checkpoints forgotten"] + seen["two owners"]
    if lost and not cluster.forgets:
        raise JudgeError(f"{cluster.name} keeps what it confirms, and yet: {dict(seen)}")
    return seen
