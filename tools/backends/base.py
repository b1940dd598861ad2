"""How tests, campaigns and benchmarks reach a backend: its server, and places on it."""

import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Timer
from typing import Any, ClassVar, Literal, Self

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.cli.container import Container
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.records import Scope

Colour = Literal["sync", "aio"]
Kind = Literal["ownership", "checkpoint"]
Fields = Mapping[str, str | None]
COLOURS: tuple[Colour, ...] = ("sync", "aio")


class ServerMissingError(Exception):
    """No way to this server is open on this machine; the message names the ways."""


def installed(container: Container) -> str:
    """Pull the image of a container, and say which."""
    container.install()
    return str(container)


class Place(ABC):
    """An empty database, keyspace, container or key prefix of a test's own.

    Attributes:
        url: what `open_store` takes, in both colours; credentials included.
    """

    url: str

    def open(self, colour: Colour, **settings: Any) -> Any:
        """A store over it, which the caller closes."""
        return (aio.open_store if colour == "aio" else open_store)(self.url, **settings)

    def create(self) -> Self:
        """Create the tables or whatever the store needs."""
        with open_store(self.url) as store:
            store.create()
        return self

    @abstractmethod
    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        """Leave a row as a stranger would, past the store; None removes it.

        `fields` are `ownerid`, or `offset` and `sequencenumber`, or what another writer stores.
        """

    @abstractmethod
    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        """What is stored, read past every store, by partition: with the fields of `put_raw`."""

    @abstractmethod
    def vanish(self) -> None:
        """Take all of it away under the feet of whoever uses it: tables, keyspace, all keys."""

    @abstractmethod
    def drop(self) -> None:
        """Remove it at the end of a test, also where it has vanished."""

    def __enter__(self) -> Self:
        return self.create()

    def __exit__(self, *_: object) -> None:
        self.drop()


class Backend(ABC):
    """A server that was found running, or a process of our own; `stop` ends only the latter."""

    name: ClassVar[str]
    wheel: ClassVar[str | None] = None
    """A package that brings the server, for a machine that has none."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """Accessors that this backend cannot give, for the conformance suite's report."""
    reaches_processes: ClassVar[bool] = True
    """Whether the stores of several processes can share a place."""

    @property
    def lacks_here(self) -> frozenset[str]:
        """What it lacks on this machine."""
        return frozenset(self.lacks)

    @abstractmethod
    def install(self) -> str:
        """Fetch what `start` needs, once, and say what will be started; may take minutes.

        Raises:
            ServerMissingError: no way is open.
        """

    @abstractmethod
    def start(self) -> Self:
        """Start it and wait until it answers; nothing is downloaded here.

        Raises:
            ServerMissingError: `install` has not run yet, or no way is open.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop it, and remove its files."""

    @abstractmethod
    def place(self) -> Place:
        """A new place, not created yet."""

    def accessors(self, place: Place) -> Accessors:
        """What the conformance suite may do past the store."""
        return Accessors(put_raw=place.put_raw)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class OwnServer(Backend):
    """A server process of our own, with its data in a folder: it can be killed and come back."""

    why_not_killed: ClassVar[str] = ""
    """Why killing it would say nothing about a store; `""` where it can be killed."""

    _child: Child | None = None
    _resuming: Timer | None = None

    @property
    def is_own(self) -> bool:
        """Whether it runs as a process of our own, so that it can be paused."""
        return self._child is not None

    @property
    def lacks_here(self) -> frozenset[str]:
        return super().lacks_here | (frozenset() if self.is_own else {"stall"})

    @cached_property
    def folder(self) -> Path:
        """Where its data are; directly below the system's folder, so that other users reach it."""
        return Path(tempfile.mkdtemp(prefix=f"{self.name}-"))

    @abstractmethod
    def launch(self) -> Child:
        """Start the process on its port and folder, and return when it answers."""

    def start(self) -> Self:
        try:
            self._child = self.launch()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.resume()
        if self._child is not None:
            self._child.stop()
            self._child = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """As `kill -9`, or the power, would end it; its files stay."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def restart(self) -> None:
        """Start again on the same port with the same data."""
        self.kill()
        self._child = self.launch()

    def pause(self, seconds: float | None = None) -> None:
        """Stop its execution (SIGSTOP): connections stay open and nothing answers.

        Args:
            seconds: it resumes by itself after so long; None: when `resume` is called.
        """
        self.resume()
        self._signal(signal.SIGSTOP)
        if self._child is not None:
            # Of a process of many threads, some go on until one of them has seen the signal.
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if seconds is not None:
            self._resuming = Timer(seconds, self._signal, [signal.SIGCONT])
            self._resuming.start()

    def resume(self) -> None:
        """Go on."""
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        self._signal(signal.SIGCONT)

    def accessors(self, place: Place) -> Accessors:
        return Accessors(put_raw=place.put_raw, stall=self.stall if self.is_own else None)

    def stall(self, seconds: float) -> None:
        """Answer nothing for so long from now; 0 ends it."""
        if seconds:
            self.pause(seconds)
        else:
            self.resume()

    def _signal(self, number: int) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)
