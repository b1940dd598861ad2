"""Trial of sync and aio clients that work on one place while its server fails.

Four clients take partitions from each other and each renews one that nobody else claims, two write
checkpoints, and one reads what is stored, bypassing the stores. `fault_judge.py` has the rules.
"""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from backends import VARIANTS, Place, Variant
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import (
    StaleCheckpointError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from fault_judge import Claim, Judge, JudgeError, Reading, Write

BOUND = 1.5
"""Seconds that a call may take."""
WAIT_SECONDS = 60.0
PACE_SECONDS = 0.005
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
PARTITIONS = [str(number) for number in range(8)]
SHARED = "shared"
"""Partition whose checkpoints sync and aio writers both write."""


class Worker(threading.Thread):
    """Calls one store repeatedly, until it is stopped.

    Attributes:
        answered: calls that were answered.
        unknown: proposals or checkpoints with an unknown outcome.
        under_way: kind of the current call; `""` between two.
        longest: seconds of the longest call.
        excuse: message of the last error with an unknown outcome.
        missing: messages of errors raised for a place that has vanished.
        failure: error that must not happen.
    """

    def __init__(self, client: Client, variant: Variant, name: str, judge: Judge) -> None:
        super().__init__(name=name)
        self.client = client
        self.variant = variant
        self.judge = judge
        self.stopping = threading.Event()
        self.answered = self.unknown = 0
        self.under_way = self.excuse = ""
        self.longest = 0.0
        self.missing: list[str] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        """Work until stopped."""
        while self.failure is None and not self.stopping.wait(PACE_SECONDS):
            try:
                self.work()
                self.answered += 1
            except StoreUnavailableError as error:
                self.unknown += 1
                self.excuse = str(error)
            except StoreNotReadyError as error:
                self.missing.append(str(error))
            except Exception as error:
                self.failure = error

    @contextmanager
    def calling(self, kind: str) -> Iterator[None]:
        """Measure one call of a kind."""
        self.under_way, began = kind, time.monotonic()
        try:
            yield
        finally:
            self.under_way = ""
            self.longest = max(self.longest, time.monotonic() - began)

    def work(self) -> None:
        """Make one or two calls."""
        raise NotImplementedError


class Claimer(Worker):
    """Worker that renews what it owns, and takes from others."""

    def work(self) -> None:
        """List, and claim a batch."""
        with self.calling("list"):
            stored = {row["partition_id"]: row for row in self.client.list_ownership()}
        etags: dict[str, str | None] = {}
        for partition_id in [self.name, *random.sample(PARTITIONS, len(PARTITIONS))]:
            row = stored.get(partition_id)
            if row is None or row["owner_id"] == self.name or random.random() < 0.5:
                etags[partition_id] = row and row["etag"]
        self._claim(etags)

    def _claim(self, etags: dict[str, str | None]) -> None:
        batch = [self.client.proposal(key, self.name, etag) for key, etag in etags.items()]
        given: dict[str, str] = {}
        try:
            with self.calling("claim"):
                rows = self.client.claim_ownership(batch)
            given = {row["partition_id"]: row["etag"] for row in rows}
        finally:
            for key, etag in etags.items():
                # A renewal without an answer may be returned with its old etag.
                new = given.get(key) if given.get(key) != etag else None
                self.judge.claims.append(Claim(key, self.name, etag, new))


class Writer(Worker):
    """Worker that writes checkpoints of its own partition and of a shared one."""

    numbers = itertools.count()

    def work(self) -> None:
        """Write two checkpoints."""
        self._write(self.name)
        with suppress(StaleCheckpointError):
            self._write(SHARED)

    def _write(self, partition_id: str) -> None:
        number, ended = next(self.numbers), None
        try:
            with self.calling("checkpoint"):
                self.client.save(partition_id, number)
            ended = time.monotonic()
        finally:
            self.judge.writes.append(Write(partition_id, number, ended))


class Trial:
    """All workers on one place; use it in a `with` statement."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.judge = Judge()
        self.workers: list[Worker] = []
        self._opened = ExitStack()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watcher")

    def __enter__(self) -> Self:
        loop = self._opened.enter_context(Loop())
        for variant in VARIANTS:
            for kind, count in ((Claimer, 2), (Writer, 1)):
                for number in range(count):
                    name = f"{kind.__name__.lower()}-{variant}-{number}"
                    self.workers.append(
                        kind(self._client(variant, loop), variant, name, self.judge)
                    )
        for thread in (*self.workers, self._watcher):
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for worker in self.workers:
            worker.stopping.set()
        for thread in (*self.workers, self._watcher):
            thread.join()
        self._opened.close()

    def _client(self, variant: Variant, loop: Loop) -> Client:
        bounds = {"operation_timeout": BOUND, "write_timeout": BOUND, "keep_unconfirmed": BOUND}
        store = self.place.open(variant, **bounds, on_stale="raise")
        client = Client(store, SCOPE, loop)
        self._opened.callback(client.close)
        return client

    def _watch(self) -> None:
        while not self._over.wait(10 * PACE_SECONDS):
            with suppress(Exception):  # nothing can be read while the server is down
                self._read()

    def _read(self) -> None:
        began = time.monotonic()
        for partition_id, row in self.place.rows("checkpoint").items():
            number = int(row["sequencenumber"])
            self.judge.readings.append(Reading(partition_id, number, began))

    def until(self, condition: Callable[[Worker], bool]) -> None:
        """Wait until a condition is true of every worker.

        Raises:
            JudgeError: a worker failed, or the condition is not true in time.
        """
        end = time.monotonic() + WAIT_SECONDS
        for worker in self.workers:
            while not condition(worker):
                if worker.failure is not None:
                    raise JudgeError(f"{worker.name}: {worker.failure!r}") from worker.failure
                if time.monotonic() > end:
                    raise JudgeError(f"{worker.name} did not go on; {worker.excuse!r}")
                time.sleep(PACE_SECONDS)

    def in_the_middle(self) -> None:
        """Wait until a batch of claims and a checkpoint are in progress."""
        while {"claim", "checkpoint"} - {worker.under_way for worker in self.workers}:
            time.sleep(0)

    def go_on(self, calls: int = 3) -> None:
        """Wait until every worker was answered this many times from now."""
        reached = {worker: worker.answered + calls for worker in self.workers}
        self.until(lambda worker: worker.answered >= reached[worker])

    def stop(self) -> None:
        """Stop all workers, and read what is stored for the last time.

        Raises:
            JudgeError: a worker failed.
        """
        for worker in self.workers:
            worker.stopping.set()
        for worker in self.workers:
            worker.join()
        self.until(lambda worker: worker.failure is None)
        self._read()

    def stored(self) -> dict[str, str]:
        """Return the etag of each partition, as listed by a store that owns nothing."""
        with self.place.open("sync") as store:
            listed = store.list_ownership(*SCOPE.as_dict().values())
        raw = self.place.rows("ownership")
        for row in listed:
            if raw[row["partition_id"]]["ownerid"] != row["owner_id"]:
                raise JudgeError(f"{row} is listed, and {raw[row['partition_id']]} is stored")
        return {row["partition_id"]: row["etag"] for row in listed}

    def told(self, variant: Variant) -> str:
        """Return the counts of the sync or the aio workers, in one line."""
        found: Counter[str] = Counter()
        longest = 0.0
        for one in [one for one in self.workers if one.variant == variant]:
            mine = [claim for claim in self.judge.claims if claim.owner_id == one.name]
            found["claims won"] += sum(claim.given is not None for claim in mine)
            found["calls answered"] += one.answered
            found["not"] += one.unknown
            longest = max(longest, one.longest)
        counts = ", ".join(f"{count} {kind}" for kind, count in found.items())
        return f"{counts}, the longest {longest:.1f} s"
