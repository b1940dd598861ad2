"""SQLite: a file in a folder, without a server."""

import shutil
import tempfile
import uuid
from functools import cached_property
from pathlib import Path
from typing import Self

from backends.base import Backend, Place
from backends.tables import TablesPlace
from eventhub_checkpoints.stores.sql.tables import Tables


class Sqlite(Backend):
    """Backend of private files, one per place."""

    name = "sqlite"
    lacks = ("stall", "shift_clock")

    @cached_property
    def folder(self) -> Path:
        """Folder of the files."""
        return Path(tempfile.mkdtemp(prefix="sqlite-"))

    def install(self) -> str:
        return "Python's own"

    def start(self) -> Self:
        return self

    def stop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def place(self) -> Place:
        url = f"sqlite:///{self.folder}/{uuid.uuid4().hex}.db"
        return TablesPlace(url, url, Tables("eventhub_checkpoints"))
