"""The files in a query's checkpoint folder, on this machine or wherever Spark's Hadoop reads."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark.given import require_kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""At least two letters: one is a drive of Windows."""


class CheckpointFiles(Protocol):
    """What is asked of a folder; names are relative to it."""

    def names(self, folder: str) -> list[str] | None:
        """The names in a folder; None where it does not exist."""

    def text(self, name: str) -> str | None:
        """What a file holds; None where it does not exist."""


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, location: Path) -> None:
        self._location = location

    def names(self, folder: str) -> list[str] | None:
        """As in the protocol."""
        found = self._location / folder
        return [path.name for path in found.iterdir()] if found.is_dir() else None

    def text(self, name: str) -> str | None:
        """As in the protocol."""
        try:
            return (self._location / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None


class HadoopFiles:
    """A folder of any file system that Spark is set up for, through the driver's Java.

    Raises:
        ConfigurationError: the session is one of Spark Connect, or is not set up for it.
    """

    def __init__(self, location: str, spark: "SparkSession") -> None:
        # Attributes of Java objects have no types; Spark Connect's session has neither of the two.
        jvm: Any = getattr(spark, "_jvm", None)
        session: Any = getattr(spark, "_jsparkSession", None)
        if jvm is None or session is None:
            raise ConfigurationError(
                f"{location} is read through the driver's Java, which a session of Spark Connect "
                "does not have; give a classic SparkSession, or copy the folder to a local path "
                "and leave spark out"
            )
        self._jvm = jvm
        self._location = jvm.org.apache.hadoop.fs.Path(location)
        # As a query resolves it: with the session's own settings over Spark's.
        settings = session.sessionState().newHadoopConf()
        try:
            self._files = self._location.getFileSystem(settings)
        except Exception as error:
            raise ConfigurationError(
                f"Spark cannot open the file system of {location}: "
                f"{getattr(error, 'java_exception', error)}"
            ) from error

    def names(self, folder: str) -> list[str] | None:
        """As in the protocol."""
        path = self._path(folder)
        if not self._files.exists(path):
            return None
        return [str(status.getPath().getName()) for status in self._files.listStatus(path)]

    def text(self, name: str) -> str | None:
        """As in the protocol."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._location, name)


def checkpoint_files(
    location: "str | Path", spark: "SparkSession | None" = None
) -> CheckpointFiles:
    """The files of a folder: through Spark where a session is given, else of this machine.

    Raises:
        ConfigurationError: it is on another file system and no session was given, or one that
            cannot read it.
    """
    require_kind("the checkpoint location", location, isinstance(location, str | Path), "a path")
    text = str(location)
    if spark is not None:
        return HadoopFiles(text, spark)
    if not SCHEME.match(text):
        return LocalFiles(Path(location))
    if text.lower().startswith("file:"):
        return LocalFiles(Path(url2pathname(urlsplit(text).path)))
    raise ConfigurationError(
        f"{text.partition(':')[0]}: is no file system of this machine; pass spark=, a SparkSession "
        "that can read it"
    )
