"""Parts that the demo's programs share: hub and store from the environment, and their journals.

A journal survives a `kill -9` of its program. A line is written after the work and before the
checkpoint, unbuffered: the kernel keeps what was written. So the demo counts what happened, not
what a dying process remembers.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.records import Scope

HUB_VARIABLE = "EVENTHUB_CONNECTION_STRING"
STORE_VARIABLE = "CHECKPOINT_STORE"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of the hub, and of the store with its checkpoints.

    Attributes:
        connection_string: of the hub.
        store_url: of the store; it may contain a password.
    """

    connection_string: str
    store_url: str = field(repr=False)

    @property
    def scope(self) -> Scope:
        """Scope of the checkpoints."""
        return HubAddress.from_connection_string(self.connection_string).scope()

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for a program that uses them."""
        return {HUB_VARIABLE: self.connection_string, STORE_VARIABLE: self.store_url}


def addresses_from_environment() -> Addresses:
    """Return the addresses in the two variables; raises as `from_environment`."""
    return Addresses(from_environment(HUB_VARIABLE), from_environment(STORE_VARIABLE))


def from_environment(name: str) -> str:
    """Return the value of a variable.

    Raises:
        ConfigurationError: it is not set.
    """
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(f"the environment variable {name} is not set")
    return value


class JournalWriter:
    """Writer of a journal; writes to standard output if there is no path."""

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = 1 if path is None else os.open(path, flags, 0o600)

    def took(self, partition: str) -> None:
        """Record that the program holds a partition."""
        self._write(f"took {partition}\n")

    def left(self, partition: str) -> None:
        """Record that the program no longer holds a partition."""
        self._write(f"left {partition}\n")

    def processed(self, partition: str, numbers: Iterable[int]) -> None:
        """Record processed events by sequence number."""
        self._write("".join(f"event {partition} {number}\n" for number in numbers))

    def saved(self, partition: str, number: int) -> None:
        """Record that the store has confirmed a checkpoint."""
        self._write(f"saved {partition} {number}\n")

    def phase(self, text: str) -> None:
        """Record what the program does from now on, if that takes long."""
        self._write(f"phase {text}\n")

    def _write(self, lines: str) -> None:
        left = lines.encode()
        while left:
            left = left[os.write(self._file, left) :]


class JournalReader:
    """Incremental reader of a growing journal.

    Attributes:
        events: sequence numbers by partition, in the order of processing, repetitions included.
        saved: the highest confirmed checkpoint by partition.
        held: partitions taken and not left.
        phase: what the program does, if it has said so; else `""`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: dict[str, list[int]] = defaultdict(list)
        self.saved: dict[str, int] = {}
        self.held: set[str] = set()
        self.phase = ""
        self._position = 0

    def read(self) -> list[tuple[str, int]]:
        """Read the added lines; return the new events as partition and sequence number.

        An incomplete line is left for the next call.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._position)
            whole = file.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        self._position += len(whole)
        lines = [line.split() for line in whole.decode().splitlines()]
        return [event for words in lines if (event := self._take(words)) is not None]

    def _take(self, words: list[str]) -> tuple[str, int] | None:
        match words:
            case ["event", partition, number]:
                self.events[partition].append(int(number))
                return partition, int(number)
            case ["saved", partition, number]:
                self.saved[partition] = max(int(number), self.saved.get(partition, -1))
            case ["took", partition]:
                self.held.add(partition)
            case ["left", partition]:
                self.held.discard(partition)
            case ["phase", *text]:
                self.phase = " ".join(text)
            case _:
                raise ValueError(f"{self.path} has an unknown line: {' '.join(words)}")
        return None

    @property
    def count(self) -> int:
        """Number of processed events, repetitions included."""
        return sum(map(len, self.events.values()))
