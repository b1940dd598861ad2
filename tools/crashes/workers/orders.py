"""Orders of a worker: how it processes, what goes wrong, and when it saves.

The constants are settings that all workers share.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from eventhub_checkpoints import Policy, every, trailing

Way = Literal[
    "pool",
    "handler",
    "processor",
    "coalesced",
    "each",
    "batches",
    "batch-processor",
    "official",
]
Variant = Literal["sync", "aio"]
OFFICIAL: Way = "official"
WAYS: tuple[Way, ...] = get_args(Way)
"""All ways of saving; `OFFICIAL` needs Blob Storage."""
PROCESSORS: tuple[Way, ...] = ("processor", "batch-processor")
HOUR = 3600.0
VARIANTS: tuple[Variant, ...] = get_args(Variant)

EXPIRY_SECONDS = 1.5
CLIENT: Mapping[str, Any] = {
    "load_balancing_interval": 0.3,
    "partition_ownership_expiration_interval": EXPIRY_SECONDS,
    "socket_timeout": 0.02,
}
"""A worker is replaced soon after it was killed."""
DRAIN_SECONDS = 10.0
TURN_SECONDS = 0.2
WRITE_SECONDS = 2.0
THREADS = 8
STORE: Mapping[str, Any] = {
    "operation_timeout": 3.0,
    "write_timeout": WRITE_SECONDS,
    "keep_unconfirmed": 1.0,
}
"""Below the expiry, and short enough for a round to see what happens after a time-out."""

OFFICIAL_STORE: Mapping[str, Any] = {
    "connection_timeout": 3.0,
    "read_timeout": 3.0,
    "initial_backoff": 1,
    "increment_base": 1,
    "random_jitter_range": 1,
}
"""Seconds. By default the official Blob store waits a minute for a silent server, and pauses for a
minute or more between its retries: longer than a worker has to end."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders of one worker.

    Attributes:
        name: of the worker, without blanks.
        way: `pool`: events are tracked, and finished out of order by threads or tasks; `handler`:
            tracked, and finished sequentially; `processor`: an `EventProcessor`; `coalesced`: a
            checkpoint for every event through a `CoalescingCheckpointStore`; `each`: one that is
            written before the next event; `batches`: a loop over `consume_batches` that commits;
            `batch-processor`: an `EventProcessor` with `process_batch`; `official`: as `each`, with
            the store of the official package.
        variant: of the client and the store: sync or aio.
        seed: of its delays and failures.
        connection: of the hub; it and the next two are places, which a round fills in.
        url: of the store.
        journal: path of the file.
        saves_trailing: whether the policy is `trailing` rather than `every`.
        events: of the policy; None: it does not count. A loop over batches has none, and commits
            after this many at most.
        seconds: of the policy; None: it has no clock.
        max_pending: of the checkpointer, or of the processor.
        max_unsaved: of the checkpointer; None: no limit. A loop over batches repeats a commit that
            fails, and so has one.
        batch: maximum number of events per call of a processor, or per batch.
        is_apart: whether a processor finishes events separately.
        slowness: seconds that an event may take.
        write_slowness: additional seconds that a write may take.
        failures: share of events that fail, each time.
        clock: seconds by which the worker's clock is ahead.
        hands_over: whether a `HandoverStore` is around the store; a processor has its own.
        wait: `max_wait` of batches, in seconds.
        buffer: `buffer_bytes` of batches.
        path: `receive_path` of batches.
        commits_after: number of batches after which a loop over them commits.
        restarts: whether such a loop ends when an event fails, and another one begins; it is
            stopped by `close`, without a last commit.
    """

    name: str
    way: Way
    variant: Variant
    seed: int
    connection: str = ""
    url: str = ""
    journal: str = ""
    saves_trailing: bool = False
    events: int | None = 1
    seconds: float | None = None
    max_pending: int = 1
    max_unsaved: int | None = None
    batch: int = 1
    is_apart: bool = False
    slowness: float = 0.0
    write_slowness: float = 0.0
    failures: float = 0.0
    clock: float = 0.0
    hands_over: bool = False
    wait: float = 0.0
    buffer: int = 2**20
    path: str = "auto"
    commits_after: int = 1
    restarts: bool = False

    @property
    def policy(self) -> Policy:
        """Return the policy of the worker."""
        if self.saves_trailing and self.events and self.seconds:
            return trailing(events=self.events, seconds=self.seconds)
        return every(events=self.events, seconds=self.seconds)

    @property
    def window(self) -> int:
        """Number of events that may be started and not passed: a worker's end makes them repeat."""
        if self.way == "pool":
            return self.max_pending
        if self.way == "batches":
            return 0  # it commits all that was returned
        if self.way == "batch-processor":
            return self.batch
        if self.way == "processor":
            return self.batch + (self.max_pending if self.is_apart else 0)
        return 1

    @property
    def kind(self) -> str:
        """Name under which its replay is reported; until the first comma, that of its counts."""
        ways = {"processor": "processor, apart" if self.is_apart else "processor"}
        bounded = "" if self.max_unsaved is None else ", max_unsaved"
        handing = ", handing over" if self.hands_over else ""
        return f"{self.variant} {ways.get(self.way, self.way)}{bounded}{handing}"

    @property
    def batching(self) -> Mapping[str, Any]:
        """Return the settings of a member of the group that reads in batches."""
        return {
            "max_rows": self.batch,
            "max_wait": self.wait,
            "buffer_bytes": self.buffer,
            "receive_path": self.path,
            "columns": ("partition", "sequenceNumber"),
            "load_balancing_interval": CLIENT["load_balancing_interval"],
            "partition_ownership_expiration_interval": EXPIRY_SECONDS,
        }

    def to_json(self) -> str:
        """Return the orders as JSON, for the command line."""
        return json.dumps(asdict(self))


def chosen_orders(
    chance: random.Random, name: str, ways: Sequence[Way] = WAYS, clocks: Sequence[float] = (0.0,)
) -> Orders:
    """Return random orders, without the places `connection`, `url` and `journal`.

    Args:
        chance: source of randomness.
        name: of the worker.
        ways: of saving, to choose from.
        clocks: seconds by which the worker's clock may be ahead, to choose from.
    """
    way = chance.choice(ways)
    has_policy = way not in ("each", "official")
    has_bound = way in ("pool", "handler", "batches") and chance.random() < 0.5
    counted = chance.random()
    orders = Orders(
        name=name,
        way=way,
        variant=chance.choice(VARIANTS),
        seed=chance.randrange(2**32),
        saves_trailing=chance.random() < 0.35,
        events=(chance.randint(1, 40) if counted < 0.75 else None) if has_policy else 1,
        seconds=round(chance.uniform(0.05, 0.6), 3) if counted > 0.45 and has_policy else None,
        max_pending=chance.choice((2, 10, 60)),
        max_unsaved=chance.choice((1, 5, 40, 100)) if has_bound else None,
        batch=chance.randint(1, 30),
        is_apart=chance.random() < 0.5,
        hands_over=way not in ("official", *PROCESSORS) and chance.random() < 0.5,
        # Otherwise a pool would always be empty when a stopping client calls the close handler.
        slowness=chance.choice((0.0, 0.005, 0.02, 0.05)) * (10 if way == "pool" else 1),
        write_slowness=chance.choice((0.0, 0.0, 0.02, 0.1)),
        failures=chance.choice((0.0, 0.0, 0.002, 0.01)),
        clock=chance.choice(clocks),
        wait=chance.choice((0.0, 0.05, 0.3)),
        buffer=chance.choice((10, 100, 2**20)),
        path=chance.choice(("auto", "auto", "public")),
        commits_after=chance.choice((1, 1, 2, 5)),
        restarts=chance.random() < 0.4,
    )
    if way != "batches":
        return orders
    bound = orders.commits_after * orders.batch
    return replace(orders, events=bound, seconds=None, max_unsaved=bound if has_bound else None)


def orders_of(text: str) -> Orders:
    """Return the orders from the result of `Orders.to_json`."""
    given: dict[str, Any] = json.loads(text)
    return Orders(**given)
