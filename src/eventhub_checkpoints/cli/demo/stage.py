"""Participants of the demo, and waiting for conditions."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eventhub_checkpoints.cli.children import Child, ChildError
from eventhub_checkpoints.cli.demo.journal import JournalReader
from eventhub_checkpoints.cli.demo.publisher import Publisher
from eventhub_checkpoints.cli.demo.screen import PartitionRow, Screen
from eventhub_checkpoints.cli.demo.servers import Servers
from eventhub_checkpoints.cli.demo.signals import Signals
from eventhub_checkpoints.errors import CheckpointStoreError

TICK_SECONDS = 0.1
ASK_SECONDS = 0.5
"""Interval of reading the stored checkpoints."""

PATIENCE_SECONDS = 60
"""Seconds without any change after which a wait fails."""


class DemoError(CheckpointStoreError):
    """Raised if the demo cannot be completed."""


@dataclass
class Program:
    """Process of the demo, and its journal.

    Attributes:
        runs: false as soon as it is being stopped on purpose, or may exit by itself.
    """

    name: str
    child: Child
    journal: JournalReader
    runs: bool = True

    def last_words(self) -> str:
        """Return the end of its log, for an error message."""
        return f"; the end of what {self.child.name} printed:\n{self.child.tail(40)}"


class Stage:
    """Publisher, programs, and their current state.

    Args:
        stack: stops what is started here.
        folder: for logs and journals.
        step: number of events that are published at a time, while the consumers work.
    """

    def __init__(
        self,
        stack: ExitStack,
        signals: Signals,
        screen: Screen,
        folder: Path,
        servers: Servers,
        publisher: Publisher,
        step: int,
    ) -> None:
        self._stack, self._signals, self.folder = stack, signals, folder
        self._step = max(1, step)
        self.screen, self.servers, self.publisher = screen, servers, publisher
        self.consumers: list[Program] = []
        self._checkpoints: dict[str, int] = {}
        self._asked_at = 0.0
        self._seen: dict[str, set[int]] = defaultdict(set)

    def start_consumer(self, name: str, colour: str) -> Program:
        """Start a consumer process."""
        self.consumers.append(self.start("consumer", name, "--consumer", colour))
        return self.consumers[-1]

    def start(
        self, module: str, name: str, *options: str, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Start one of the demo's programs, with its journal and log."""
        called = f"{module} {name}".strip()
        journal = self.folder / f"{called}.journal"
        program = f"{__package__}.{module}"
        with self._signals.held_back():
            child = Child(
                [sys.executable, "-m", program, "--journal", journal, *options],
                log=self.folder / f"{called}.log",
                # They run in the user's folder, because a URL may name a file relative to it, but
                # must not import the user's files as modules.
                env={
                    "PYTHONSAFEPATH": "1",
                    **self.servers.place.variables,
                    **(environment or {}),
                },
                name=called,
            )
            self._stack.enter_context(child)
        return Program(name, child, JournalReader(journal))

    @property
    def processed(self) -> int:
        """Number of events that were processed at least once."""
        return sum(map(len, self._seen.values()))

    def until(self, condition: Callable[[], bool], what: str, *, publish_to: int = 0) -> None:
        """Wait for a condition; meanwhile publish in steps.

        Publishing ends when `publish_to` events are sent in all.

        Raises:
            ChildError: a consumer exited unexpectedly.
            DemoError: nothing at all has changed for `PATIENCE_SECONDS`.
        """
        known, changed_at = self._known(), time.monotonic()
        self.look()
        while not condition():
            self._publish_some(publish_to)
            time.sleep(TICK_SECONDS)
            self.look()
            if self._known() != known:
                known, changed_at = self._known(), time.monotonic()
            elif time.monotonic() - changed_at > PATIENCE_SECONDS:
                raise DemoError(
                    f"not reached: {what}; nothing has changed for {PATIENCE_SECONDS} s"
                    + "".join(one.last_words() for one in self.consumers)
                )

    def linger(self, seconds: float) -> None:
        """Keep observing for this many seconds.

        Raises:
            ChildError: a consumer exited unexpectedly.
        """
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            time.sleep(TICK_SECONDS)
            self.look()

    def _publish_some(self, limit: int) -> None:
        count = min(self._step, limit - self.publisher.total)
        if count > 0:
            self.publisher.publish(count)

    def _known(self) -> object:
        held = [sorted(one.journal.held) for one in self.consumers]
        return self.publisher.total, self.processed, held, self._checkpoints

    def look(self) -> None:
        """Read the current state, and show it.

        Raises:
            ChildError: a consumer exited unexpectedly.
        """
        self._signals.check()
        for one in self.consumers:
            for partition, number in one.journal.read():
                self._seen[partition].add(number)
            if one.runs and (status := one.child.poll()) is not None:
                raise ChildError(f"{one.child.name} ended with status {status}{one.last_words()}")
        if time.monotonic() - self._asked_at > ASK_SECONDS:
            self._checkpoints = self.servers.stored_checkpoints()
            self._asked_at = time.monotonic()
        self.screen.show([self._row(partition) for partition in self.publisher.sent])

    def _row(self, partition: str) -> PartitionRow:
        holders = [one.name for one in self.consumers if one.runs and partition in one.journal.held]
        return PartitionRow(
            partition,
            " ".join(holders),
            self.publisher.sent[partition],
            len(self._seen[partition]),
            self._checkpoints.get(partition),
        )
