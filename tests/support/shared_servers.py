"""One set of servers for all processes of a test run.

pytest-xdist's controller has the servers, because it outlives its workers: a worker that dies takes
no server with it, and the servers end with the controller, after Ctrl-C and after a kill too. A
worker asks for a server when its first test needs it, over a socket in a folder that only this user
can read. What tests store is kept apart by a database, keyspace, container or prefix for each test.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from backends import BACKENDS, Backend, OwnServer, ServerMissingError


@dataclass(frozen=True)
class Answer:
    """Answer to a worker: the URL of a server, why there is none, or how it ended."""

    url: str = ""
    missing: str = ""
    ended: str = ""


class SharedServers:
    """Servers that a run starts, each when a worker first asks for it.

    Args:
        announce: called with a line about each server that is started.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._folder = TemporaryDirectory(prefix="servers-")
        self.socket = str(Path(self._folder.name, "socket"))
        self._listener = Listener(self.socket, "AF_UNIX")
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._backends: dict[str, OwnServer] = {}
        self._started: dict[str, Future[Answer]] = {}
        self._keepers: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # closed, or a worker that died while it asked
                continue
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection:
            try:
                name = connection.recv()
                connection.send(self._server(name))
            except (EOFError, OSError):  # the worker has died
                return

    def _server(self, name: str) -> Answer:
        with self._guard:
            if name not in self._started:
                self._started[name] = Future()
                # A thread of its own that lives as long as the server: the kernel kills a child
                # when the thread that started it ends.
                keeper = threading.Thread(target=self._keep, args=[name])
                self._keepers.append(keeper)
                keeper.start()
        answer = self._started[name].result()
        backend = self._backends.get(name)
        return answer if backend is None or not backend.ended else Answer(ended=backend.ended)

    def _keep(self, name: str) -> None:
        started = self._started[name]
        backend = BACKENDS[name]()
        assert isinstance(backend, OwnServer), name
        try:
            backend.start()
        except ServerMissingError as missing:
            started.set_result(Answer(missing=str(missing)))
            return
        except BaseException as error:
            started.set_result(Answer(ended=f"{name} did not start: {error}"))
            return
        try:
            self._backends[name] = backend
            started.set_result(Answer(url=backend.url))
            self._announce(f"{name} started for all processes: {backend.url}")
            self._over.wait()
        finally:
            backend.stop()

    def close(self) -> None:
        """Stop what was started, and remove the socket."""
        self._over.set()
        for keeper in self._keepers:
            keeper.join()
        self._listener.close()
        self._folder.cleanup()


class Borrowed:
    """Servers of the run, as a worker sees them."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._asked: set[str] = set()

    def ended(self) -> list[str]:
        """Return how servers that this worker uses have ended, of those that have."""
        return [answer.ended for answer in map(self.ask, sorted(self._asked)) if answer.ended]

    def ask(self, name: str) -> Answer:
        """Return what became of a server, which is started if no worker has asked before."""
        with Client(self._socket, "AF_UNIX") as connection:
            connection.send(name)
            answer = connection.recv()
        assert isinstance(answer, Answer)
        return answer

    @contextmanager
    def server(self, name: str) -> Iterator[Backend]:
        """Yield the backend of a name, on the run's server if it has one.

        Raises:
            ServerMissingError: it is not available on this machine.
        """
        kind = BACKENDS[name]
        if not kind.variable:
            with kind() as own:
                yield own
            return
        self._asked.add(name)
        answer = self.ask(name)
        if answer.missing:
            raise ServerMissingError(answer.missing)
        if answer.ended:
            raise RuntimeError(answer.ended)
        with ExitStack() as stack:
            with patch.dict(os.environ, {kind.variable: answer.url}):
                backend = stack.enter_context(kind())
            yield backend
