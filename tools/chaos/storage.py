"""Storage of the workers of a round, which can be made unavailable for a while."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tcp_servers import Passage


class Storage(ABC):
    """Storage that processes share.

    Attributes:
        url: for the parent.
        shown: for the workers.
    """

    def __init__(self, url: str, shown: str) -> None:
        self.url, self.shown = url, shown

    @abstractmethod
    def take_away(self) -> None:
        """Make the storage unavailable to the workers."""

    @abstractmethod
    def bring_back(self) -> None:
        """Make the storage available again."""

    @abstractmethod
    def close(self) -> None:
        """Stop everything that was started for it."""

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Make the storage unavailable in this block."""
        self.take_away()
        try:
            yield
        finally:
            self.bring_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SqliteFile(Storage):
    """SQLite file, which the parent can lock."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:///{path}", f"sqlite:///{path}")
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    def take_away(self) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")

    def bring_back(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class Server(Storage):
    """Local server that workers reach through a proxy, which can be closed."""

    def __init__(self, url: str) -> None:
        port = urlsplit(url).port
        if port is None:
            raise ValueError("the URL of the store has no port, so no passage can stand before it")
        self._passage = Passage(("127.0.0.1", port))
        super().__init__(url, url.replace(f":{port}", f":{self._passage.port}", 1))

    def take_away(self) -> None:
        self._passage.down()

    def bring_back(self) -> None:
        self._passage.up()

    def close(self) -> None:
        self._passage.stop()


def storage_of(url: str | None, folder: Path) -> Storage:
    """Return the storage of a URL, or a new SQLite file."""
    return SqliteFile(folder / "store.db") if url is None else Server(url)
