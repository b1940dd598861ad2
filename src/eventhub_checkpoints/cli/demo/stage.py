"""Parts of the demo: hub, storage, publisher, consumers and the Spark job; and waiting for them."""

import importlib.util
import json
import os
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eventhub_checkpoints.cli.demo.children import Child, ChildError
from eventhub_checkpoints.cli.demo.command import Signals
from eventhub_checkpoints.cli.demo.programs import Addresses, JournalReader
from eventhub_checkpoints.cli.demo.publisher import Publisher
from eventhub_checkpoints.cli.demo.report import PartitionRow, Screen
from eventhub_checkpoints.cli.demo.storage import Storage
from eventhub_checkpoints.errors import CheckpointStoreError

HUB_SECONDS = 30
TICK_SECONDS = 0.1
LIST_SECONDS = 0.5
"""Interval of reading the stored checkpoints."""

PATIENCE_SECONDS = 60
"""Seconds without any change after which a wait fails."""

STOP_SECONDS = 60
"""Timeout: a consumer with the synchronous client takes up to a second for each partition."""

SPARK_SECONDS = 240
"""Timeout of the whole job. Java and PySpark start slowly on a busy machine."""

JAVA_FOR_A_SHORT_JOB = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No second compiler and no parallel collector: measured 9 s of CPU time instead of 16 s."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Hub that only this demo uses, and the storage of its checkpoints."""

    addresses: Addresses
    storage: Storage

    def stored_checkpoints(self) -> dict[str, int]:
        """Return the stored sequence number of each partition's checkpoint."""
        return self.storage.checkpoints(self.addresses.scope)


def start_servers(
    stack: ExitStack, signals: Signals, storage: Storage, folder: Path, partitions: int
) -> Servers:
    """Start hub and storage; the stack stops them.

    Raises:
        ChildError: the hub did not start.
    """
    hub = start_hub(stack, signals, folder, partitions)
    return Servers(Addresses(hub, storage.start(stack, Addresses(hub, "").scope)), storage)


def start_hub(stack: ExitStack, signals: Signals, folder: Path, partitions: int) -> str:
    """Start a local hub in a separate process; return its connection string."""
    log = folder / "hub.log"
    # A unique name, because the user's store may have rows of an earlier hub on the same port.
    name = f"orders-{uuid.uuid4().hex[:12]}"
    module = "eventhub_checkpoints.localhub"
    command = [sys.executable, "-P", "-m", module, "--hub", f"{name}={partitions}", "--json"]
    with signals.held_back():
        hub = stack.enter_context(Child(command, log=log, name="the local hub"))

    def announced() -> str | None:
        lines = log.read_text().splitlines(keepends=True)
        return next((line for line in lines if line[0] == "{" and line[-1] == "\n"), None)

    return str(json.loads(hub.wait_ready(announced, HUB_SECONDS))["connection_string"])


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
        self._listed_at = 0.0
        self._seen: dict[str, set[int]] = defaultdict(set)

    def start_consumer(self, name: str, client: str) -> Program:
        """Start a consumer process."""
        self.consumers.append(self.start("consumer", name, "--consumer", client))
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
                    **self.servers.addresses.variables,
                    **(environment or {}),
                },
                name=called,
            )
            self._stack.enter_context(child)
        return Program(name, child, JournalReader(journal))

    def stop(self, program: Program) -> None:
        """Stop a program, and read what it did at the end.

        Raises:
            DemoError: it did not end in good order.
        """
        program.runs = False
        if (status := program.child.stop(STOP_SECONDS)) != 0:
            raise DemoError(
                f"{program.name} did not stop cleanly: status {status}{program.last_words()}"
            )
        self.look()

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
            self.publisher.publish(min(self._step, max(0, publish_to - self.publisher.total)))
            time.sleep(TICK_SECONDS)
            self.look()
            if self._known() != known:
                known, changed_at = self._known(), time.monotonic()
            elif time.monotonic() - changed_at > PATIENCE_SECONDS:
                raise DemoError(
                    f"not reached: {what}; nothing has changed for {PATIENCE_SECONDS} s"
                    + "".join(consumer.last_words() for consumer in self.consumers)
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

    def _known(self) -> object:
        held = [sorted(consumer.journal.held) for consumer in self.consumers]
        return self.publisher.total, self.processed, held, self._checkpoints

    def look(self, reader: Program | None = None) -> None:
        """Read the current state, and show it.

        Args:
            reader: a program that reads besides the consumers, and ends by itself.

        Raises:
            ChildError: a consumer exited unexpectedly.
        """
        self._signals.check()
        for each in (*self.consumers, *([reader] if reader else [])):
            for partition, number in each.journal.read():
                self._seen[partition].add(number)
            if each is not reader and each.runs and (status := each.child.poll()) is not None:
                raise ChildError(f"{each.child.name} ended with status {status}{each.last_words()}")
        if time.monotonic() - self._listed_at > LIST_SECONDS:
            self._checkpoints = self.servers.stored_checkpoints()
            self._listed_at = time.monotonic()
        rows = [self._row(partition) for partition in self.publisher.sent]
        self.screen.show(rows, f"{reader.name}: {reader.journal.phase}" if reader else "")

    def _row(self, partition: str) -> PartitionRow:
        holders = [
            each.name for each in self.consumers if each.runs and partition in each.journal.held
        ]
        return PartitionRow(
            partition,
            " ".join(holders),
            self.publisher.sent[partition],
            len(self._seen[partition]),
            self._checkpoints.get(partition),
        )


def read_with_spark(stage: Stage) -> dict[str, list[int]]:
    """Run the job; return the sequence numbers that it read, by partition.

    Raises:
        ChildError: it failed, or did not finish in time; has the end of its log.
    """
    job = stage.start("spark_job", "", environment=spark_environment(stage.folder))
    job.name, job.journal.phase = "PySpark", "Python starts"
    deadline = time.monotonic() + SPARK_SECONDS
    while (status := job.child.poll()) is None and time.monotonic() < deadline:
        time.sleep(TICK_SECONDS)
        stage.look(job)
    if status != 0:
        ended = "still runs" if status is None else f"ended with status {status}"
        raise ChildError(f"the PySpark job {ended}{job.last_words()}")
    job.journal.read()
    return job.journal.events


def spark_environment(folder: Path) -> dict[str, str]:
    """Return variables that restrict Spark to this PySpark, machine and folder."""
    spec = importlib.util.find_spec("pyspark")
    home = str(Path(spec.origin).parent) if spec and spec.origin else ""
    scratch = folder / "spark-scratch"
    scratch.mkdir()
    java = f"{JAVA_FOR_A_SHORT_JOB} -XX:-UsePerfData -Djava.io.tmpdir={scratch}"
    return {
        # Another Spark on this machine may be of another version.
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {java}".strip(),
    }
