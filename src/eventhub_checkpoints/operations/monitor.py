"""Background polling of consumer groups, whose latest samples any number of readers share.

Each hub has a thread. A poll takes the properties of the hub's partitions once for all of its
groups, and one list of checkpoints and one of ownerships a group, concurrently. Readers never cause
a poll.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.groups import Group, group, listed_scopes
from eventhub_checkpoints.operations.lag import GroupLag, Missing, confirmed_lag
from eventhub_checkpoints.operations.lag_seconds import EnqueuedTimes, with_seconds
from eventhub_checkpoints.operations.scale import DEMAND_HOLD, TARGET, Demand, demand
from eventhub_checkpoints.operations.states import WINDOW, State, states, worst
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    PartitionProperties,
    checked_group,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

log = logging.getLogger(__name__)

INTERVAL = 15.0
"""Seconds between two polls."""
FRESH_INTERVALS = 3
FRESH_SECONDS = 10.0
"""A sample counts as known for so many intervals, and at least for so many seconds."""
READ_SECONDS = 10.0
"""Seconds for reading events; a poll of other groups of the hub waits for it."""
READ_AGAIN = 60.0
"""Seconds until events are read again after a failure; lag in events does not depend on them."""
FIND_INTERVALS = 4
"""Intervals between two searches for new groups; each lists the groups of the stores."""
UNREAD = "it has not been read yet"
"""Why the lag of a group is unknown before its first poll has ended."""
STOP_SECONDS = 5.0
"""Seconds for which `Monitor.stop` waits for a poll."""


@dataclass(frozen=True, slots=True)
class PolledGroup:
    """Consumer group to poll.

    Attributes:
        store: any synchronous checkpoint store.
        hub: the hub, as read by the group.
        missing: where the consumers start in a partition without a checkpoint.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        timeout: seconds for the queries to the hub, and for the lists of the store.
        through: consumer group through which events are read; None: the group itself, as far as
            its consumers admit that.
        has_seconds: whether the first unprocessed events are read, for the lag in seconds.

    Raises:
        ConfigurationError: `through` is not the name of a consumer group.
    """

    store: CheckpointStore
    hub: HubAddress
    missing: Missing = "earliest"
    expires_after: float = EXPIRES_AFTER
    timeout: float = OPERATION_TIMEOUT
    through: str | None = None
    has_seconds: bool = False

    def __post_init__(self) -> None:
        if self.through is not None:
            checked_group("consumer_group", self.through)

    @property
    def scope(self) -> Scope:
        """Return the names of the group."""
        return self.hub.scope()

    def read(self) -> Group:
        """Read the rows of the group."""
        return group(self.store, self.scope, expires_after=self.expires_after)

    def beside(self, scope: Scope) -> "PolledGroup":
        """Return another group of the same store and hub."""
        if scope.folded == self.scope.folded:
            # Some stores keep names in lower case: the operator's spelling is nicer to read.
            return self
        name = checked_group("consumer_group", scope.consumer_group)
        return replace(self, hub=replace(self.hub, consumer_group=name))


def groups_to_poll(
    requested: Sequence[PolledGroup],
) -> tuple[list[list[PolledGroup]], list[Scope]]:
    """Choose the groups to poll by those that an operator has named.

    `$Default`, which is meant when no group is named, stands for every group of its hub that the
    store has.

    Args:
        requested: the groups that are named.

    Returns:
        For each request its groups, each group only once, at the first request that has it; and
        the stored groups of all other hubs.

    Raises:
        StoreError: a store could not be read.
    """
    chosen: list[list[PolledGroup]] = []
    known: set[Scope] = set()
    listed: list[Scope] = []
    for polled in requested:
        own, store = polled.scope, polled.store
        stored = listed_scopes(store) if isinstance(store, ListsScopes) else []
        listed += stored
        of_hub = [scope for scope in stored if scope.folded[:2] == own.folded[:2]]
        if own.consumer_group.lower() != DEFAULT_CONSUMER_GROUP.lower() or not of_hub:
            of_hub = [own]
        groups: list[PolledGroup] = []
        for scope in of_hub:
            # A store that keeps names as typed may list a group twice.
            if scope.folded not in known:
                known.add(scope.folded)
                groups.append(polled.beside(scope))
        chosen.append(groups)
    hubs = {scope[:2] for scope in known}
    others = {scope.folded: scope for scope in listed if scope.folded[:2] not in hubs}
    return chosen, [*others.values()]


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a group.

    Attributes:
        scope: the group.
        window: samples, oldest first.
        error: why its lag is unknown now; `""` if it is known.
        polls: number of polls that have ended.
        failures: number of those that failed.
        seconds: duration of the last poll; 0 before the first one.
        hold: seconds for which demand must have been lower before it falls; see `scale.demand`.
    """

    scope: Scope
    window: Sequence[GroupLag] = ()
    error: str = UNREAD
    polls: int = 0
    failures: int = 0
    seconds: float = 0.0
    hold: float = DEMAND_HOLD

    @property
    def newest(self) -> GroupLag:
        """Return the latest sample.

        Raises:
            CheckpointStoreError: the lag is unknown now.
        """
        self.check()
        return self.window[-1]

    def check(self) -> None:
        """Raise if the lag is unknown now.

        Raises:
            CheckpointStoreError: it has the reason.
        """
        if self.error:
            raise CheckpointStoreError(f"the lag of {self.scope} is unknown: {self.error}")

    def demand(self, target: int = TARGET, activation: int = 0) -> Demand:
        """Return what an autoscaler may ask for; see `scale.demand`.

        Raises:
            CheckpointStoreError: the lag is unknown now.
        """
        self.check()
        return demand(self.window, target, activation, self.hold)

    @property
    def states(self) -> Mapping[str, State]:
        """Return the state of each partition, by partition id."""
        return states(self.window[-WINDOW:])

    @property
    def state(self) -> State:
        """Return the worst of its partitions' states; UNKNOWN if the lag is unknown now."""
        return State.UNKNOWN if self.error else worst(self.states.values())


class Monitor:
    """Polls groups until it is stopped. All methods may be called from any thread.

    Use it as a context manager, or call `start` and `stop`. Close the stores after that.

    Args:
        groups: what to poll; each group once.
        interval: seconds from the beginning of a poll to that of the next one.
        hold: seconds for which samples are kept, at least; see `scale.demand`.
        fresh: seconds for which the last sample counts as known. Default: three intervals, and at
            least 10 seconds.
        find: returns groups to poll from now on, among which may be known ones; called every four
            intervals. None: only `groups` are polled.
        observe: is given the status of each group after each of its polls, in the thread that
            polls.

    Raises:
        ConfigurationError: there is no group, or one is named twice.
    """

    def __init__(
        self,
        groups: Iterable[PolledGroup],
        *,
        interval: float = INTERVAL,
        hold: float = DEMAND_HOLD,
        fresh: float | None = None,
        find: Callable[[], Iterable[PolledGroup]] | None = None,
        observe: Callable[[Status], None] = lambda status: None,
    ) -> None:
        self._interval, self._hold = interval, hold
        self._observe = observe
        self._fresh = max(FRESH_SECONDS, FRESH_INTERVALS * interval) if fresh is None else fresh
        self._changed = threading.Condition()
        self._version = 0
        self._stopped = threading.Event()
        self._is_started = False
        self._statuses: dict[Scope, Status] = {}
        self._read_at: dict[Scope, float] = {}
        self._pollers: dict[Scope, HubPoller] = {}
        self._threads: list[threading.Thread] = []
        for polled in groups:
            if not self.add(polled):
                raise ConfigurationError(f"{polled.scope} is named twice")
        if not self._pollers:
            raise ConfigurationError("pass one group or more to poll")
        if find is not None:
            self._new_thread(self._find, find, name="find groups")

    def add(self, polled: PolledGroup) -> bool:
        """Poll a group from now on; return whether it is new."""
        hub = polled.scope.folded._replace(consumer_group="")
        with self._changed:
            if polled.scope.folded in {scope.folded for scope in self._statuses}:
                return False
            self._statuses = {**self._statuses, polled.scope: Status(polled.scope, hold=self._hold)}
            poller = self._pollers.get(hub)
            if poller is None:
                samples = max(WINDOW, ceil(self._hold / self._interval) + 1)
                poller = self._pollers[hub] = HubPoller(polled.hub, samples, self._hold)
                thread = self._new_thread(self._run, poller, name=f"poll {poller.hub}")
                if self._is_started:
                    thread.start()
            poller.add(polled)
        return True

    def _new_thread(self, run: Callable[..., None], of: object, *, name: str) -> threading.Thread:
        thread = threading.Thread(target=run, args=(of,), name=name, daemon=True)
        self._threads.append(thread)
        return thread

    def start(self) -> Self:
        """Begin to poll."""
        with self._changed:
            self._is_started = True
            for thread in self._threads:
                thread.start()
        return self

    def stop(self) -> None:
        """Begin no more polls, and wait a few seconds for those that are running."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            # The thread may hang in a client without a time limit; it ends with the process.
            thread.join(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_alive(self) -> bool:
        """Return whether all polling threads are running."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def is_stopped(self) -> bool:
        """Return whether it was stopped."""
        return self._stopped.is_set()

    @property
    def statuses(self) -> list[Status]:
        """Return what is known of each group now."""
        now = time.monotonic()
        with self._changed:
            return [self._aged(status, now) for status in self._statuses.values()]

    def find(
        self, namespace: str = "", eventhub: str = "", consumer_group: str = ""
    ) -> list[Scope]:
        """Return the groups with these names; `""` stands for any.

        Args:
            namespace: the host name, or its first label, as in a trigger of KEDA.
            eventhub: name of the hub.
            consumer_group: name of the group.
        """

        def matches(scope: Scope) -> bool:
            host = scope.fully_qualified_namespace.lower()
            return (
                namespace.lower() in ("", host, host.partition(".")[0])
                and eventhub.lower() in ("", scope.eventhub_name.lower())
                and consumer_group.lower() in ("", scope.consumer_group.lower())
            )

        return [scope for scope in self._statuses if matches(scope)]

    def status(self, scope: Scope) -> Status:
        """Return what is known of a group now."""
        with self._changed:
            return self._aged(self._statuses[scope], time.monotonic())

    def wait(self, version: int, timeout: float) -> int:
        """Wait until a poll has ended that this version does not include; return the new version.

        Args:
            version: as returned by the previous call; -1 returns at once.
            timeout: seconds.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._version != version or self._stopped.is_set(), timeout
            )
            return self._version

    def _aged(self, status: Status, now: float) -> Status:
        age = now - self._read_at.get(status.scope, now)
        if status.error or age <= self._fresh:
            return status
        return replace(
            status, error=f"the last poll ended {age:.0f} s ago, and the next one has not ended"
        )

    def _run(self, poller: "HubPoller") -> None:
        while not self._stopped.is_set():
            begun = time.monotonic()
            self._publish(poller.poll())
            self._stopped.wait(max(0.0, begun + self._interval - time.monotonic()))

    def _find(self, find: Callable[[], Iterable[PolledGroup]]) -> None:
        previous = ""
        while not self._stopped.wait(FIND_INTERVALS * self._interval):
            error = ""
            try:
                for polled in find():
                    self.add(polled)
            except CheckpointStoreError as failure:
                error = str(failure)
            except Exception as failure:
                # As for a poll: the thread has to survive it.
                error = described(failure)
            if error and error != previous:
                log.warning("groups that are new were not found: %s", error)
            previous = error

    def _publish(self, statuses: Sequence[Status]) -> None:
        for status in statuses:
            self._observe(status)
        with self._changed:
            for status in statuses:
                before = self._statuses[status.scope]
                if status.error and status.error != before.error:
                    log.warning("%s is unknown: %s", status.scope, status.error)
                elif before.failures and before.error and not status.error:
                    log.warning("%s is known again", status.scope)
                self._statuses[status.scope] = status
                self._read_at[status.scope] = time.monotonic()
            self._version += 1
            self._changed.notify_all()


class HubPoller:
    """Polls the groups of one hub, in one thread; others may add groups.

    Args:
        hub: the hub.
        samples: maximum number of samples that are kept for each group.
        hold: see `Status`.
    """

    def __init__(self, hub: HubAddress, samples: int, hold: float) -> None:
        self.hub = hub
        self._samples, self._hold = samples, hold
        self._groups: dict[Scope, PolledGroup] = {}
        self._statuses: dict[Scope, Status] = {}
        self._windows: dict[Scope, deque[GroupLag]] = {}
        self._times: dict[Scope, EnqueuedTimes] = {}
        self._read_again: dict[Scope, float] = {}
        self._partition_ids: Sequence[str] = ()

    def add(self, polled: PolledGroup) -> None:
        """Poll a group from the next poll on."""
        scope = polled.scope
        self._statuses[scope] = Status(scope, hold=self._hold)
        self._windows[scope] = deque(maxlen=self._samples)
        self._times[scope] = EnqueuedTimes()
        self._read_again[scope] = 0.0
        # At last, and as a new mapping: a poll may be reading the old one.
        self._groups = {**self._groups, scope: polled}

    def poll(self) -> list[Status]:
        """Take a sample of each group."""
        begun = time.monotonic()
        groups = [*self._groups.values()]
        lists = [in_daemon_thread(each.read) for each in groups]
        properties: Mapping[str, PartitionProperties] = {}
        error = ""
        try:
            properties = partition_properties(
                self.hub,
                expected=self._partition_ids,
                timeout=max(polled.timeout for polled in groups),
            )
            self._partition_ids = [*properties]
        except CheckpointStoreError as failure:
            error = str(failure)
        except Exception as failure:
            # No library documents such an error; the thread that polls has to survive it.
            error = described(failure)
        for polled, rows in zip(groups, lists, strict=True):
            self._statuses[polled.scope] = self._status(polled, rows, properties, error, begun)
        return [self._statuses[polled.scope] for polled in groups]

    def _status(
        self,
        polled: PolledGroup,
        rows: Future[Group],
        properties: Mapping[str, PartitionProperties],
        error: str,
        begun: float,
    ) -> Status:
        scope = polled.scope
        if not error:
            try:
                sample = confirmed_lag(
                    polled.hub,
                    awaited(rows, polled, begun + polled.timeout),
                    properties,
                    polled.missing,
                    polled.timeout,
                )
                self._windows[scope].append(self._with_seconds(polled, sample))
            except CheckpointStoreError as failure:
                error = str(failure)
            except Exception as failure:
                error = described(failure)
        before = self._statuses[scope]
        return replace(
            before,
            window=tuple(self._windows[scope]),
            error=error,
            polls=before.polls + 1,
            failures=before.failures + bool(error),
            seconds=time.monotonic() - begun,
        )

    def _with_seconds(self, polled: PolledGroup, sample: GroupLag) -> GroupLag:
        """Add the lag in seconds where it can be read; a failure leaves it unknown."""
        if not polled.has_seconds:
            return sample
        scope, times = polled.scope, self._times[polled.scope]
        if time.monotonic() < self._read_again[scope]:
            return with_seconds(sample, {})
        try:
            seconds = min(polled.timeout, READ_SECONDS)
            return times.add_to(sample, polled.hub, polled.through, seconds)
        except CheckpointStoreError as failure:
            self._read_again[scope] = time.monotonic() + READ_AGAIN
            log.warning("the lag of %s in seconds is unknown: %s", scope, failure)
            return with_seconds(sample, times.known)


def awaited(rows: Future[Group], polled: PolledGroup, deadline: float) -> Group:
    """Return the rows of a group.

    Args:
        rows: being read.
        polled: the group.
        deadline: on the clock of `time.monotonic`.

    Raises:
        StoreUnavailableError: they have not arrived by then.
    """
    wait([rows], max(0.0, deadline - time.monotonic()))
    if not rows.done():
        raise StoreUnavailableError(
            f"the store gave no answer for {polled.scope} within {polled.timeout:g} s"
        )
    return rows.result()
