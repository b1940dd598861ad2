"""Base classes of the backends of tests, campaigns and benchmarks: servers and places on them."""

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

from container import Container
from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.records import Scope

Variant = Literal["sync", "aio"]
Kind = Literal["ownership", "checkpoint"]
Fields = Mapping[str, str | None]
VARIANTS: tuple[Variant, ...] = ("sync", "aio")


class ServerMissingError(Exception):
    """The server is not available on this machine; the message names the ways to get it."""


def installed(container: Container) -> str:
    """Pull the image of a container, and return its name."""
    container.install()
    return str(container)


class Place(ABC):
    """Empty database, keyspace, container or key prefix for a single test.

    Attributes:
        url: argument of `open_store`, sync and async; includes credentials.
    """

    url: str

    def open(self, variant: Variant, **settings: Any) -> Any:
        """Return a store on it, which the caller closes."""
        return (aio.open_store if variant == "aio" else open_store)(self.url, **settings)

    def create(self) -> Self:
        """Create the tables or whatever the store needs."""
        with self.open("sync") as store:
            store.create()
        return self

    @abstractmethod
    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        """Write a row as a foreign writer would, bypassing the store; None removes it.

        `fields` are `ownerid`, or `offset` and `sequencenumber`, or what another writer stores.
        """

    @abstractmethod
    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        """Return the rows by partition, bypassing the store, with the fields of `put_raw`."""

    @abstractmethod
    def vanish(self) -> None:
        """Delete everything while it is in use: tables, keyspace, all keys."""

    @abstractmethod
    def drop(self) -> None:
        """Remove it at the end of a test, even if it has vanished."""

    def __enter__(self) -> Self:
        return self.create()

    def __exit__(self, *_: object) -> None:
        self.drop()


class Backend(ABC):
    """Server that was found running, or a child process; `stop` ends only the latter."""

    name: ClassVar[str]
    wheel: ClassVar[str | None] = None
    """Package that contains the server, for a machine that has none."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """Accessors that this backend does not provide, for the conformance suite's report."""
    variable: ClassVar[str] = ""
    """Environment variable that names a running server; "" if the backend has no server."""
    compares_case: ClassVar[bool] = False
    """Whether its stores, unless told otherwise, compare the names of a group with their case."""
    reaches_processes: ClassVar[bool] = True
    """Whether the stores of several processes can share a place."""

    @property
    def lacks_here(self) -> frozenset[str]:
        """Return the accessors that are missing on this machine."""
        return frozenset(self.lacks)

    @abstractmethod
    def install(self) -> str:
        """Download what `start` needs, once, and return what will be started; may take minutes.

        Raises:
            ServerMissingError: the server is not available.
        """

    @abstractmethod
    def start(self) -> Self:
        """Start the server and wait until it answers; downloads nothing.

        Raises:
            ServerMissingError: `install` has not run yet, or the server is not available.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop the server, and remove its files."""

    @abstractmethod
    def place(self) -> Place:
        """Return a new place, not created yet."""

    def accessors(self, place: Place) -> Accessors:
        """Return the accessors by which the conformance suite bypasses the store."""
        return Accessors(put_raw=place.put_raw)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class OwnServer(Backend):
    """Server as a child process, with its data in a folder: it can be killed and restarted."""

    why_not_killed: ClassVar[str] = ""
    """Why killing it would say nothing about a store; `""` if it can be killed."""

    _child: Child | None = None
    _resuming: Timer | None = None

    @property
    def is_own(self) -> bool:
        """Return whether it runs as a child process, so that it can be paused."""
        return self._child is not None

    @property
    @abstractmethod
    def url(self) -> str:
        """Return the address of the running server, as `variable` names it."""

    @property
    def ended(self) -> str:
        """Return how it has ended by itself; "" while it runs, or if it is not a child process."""
        if self._child is None or (status := self._child.poll()) is None:
            return ""
        return f"{self.name} has ended with status {status}; its last lines:\n{self._child.tail()}"

    @property
    def lacks_here(self) -> frozenset[str]:
        return super().lacks_here | (frozenset() if self.is_own else {"stall"})

    @cached_property
    def folder(self) -> Path:
        """Folder of its data; directly in the system's temporary folder, for other users."""
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
        self.shut_down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill it as `kill -9` or a power cut would; its files stay."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def shut_down(self) -> None:
        """End it as a restart of its machine would, in order; its files stay."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def restart(self) -> None:
        """Start again on the same port with the same data."""
        self.kill()
        self._child = self.launch()

    def pause(self, seconds: float | None = None) -> None:
        """Suspend the process (SIGSTOP): connections stay open and nothing answers.

        Args:
            seconds: it resumes by itself after this time; None: when `resume` is called.
        """
        self.resume()
        self._signal(signal.SIGSTOP)
        if self._child is not None:
            # Some threads of the process run on until one of them has received the signal.
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if seconds is not None:
            self._resuming = Timer(seconds, self._signal, [signal.SIGCONT])
            self._resuming.start()

    def resume(self) -> None:
        """Resume the suspended process."""
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        self._signal(signal.SIGCONT)

    def accessors(self, place: Place) -> Accessors:
        return Accessors(put_raw=place.put_raw, stall=self.stall if self.is_own else None)

    def stall(self, seconds: float) -> None:
        """Answer nothing for this many seconds from now; 0 ends it."""
        if seconds:
            self.pause(seconds)
        else:
            self.resume()

    def _signal(self, number: int) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)
