"""Reader of the checkpoint folder of a streaming query."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.paths import is_folder
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import is_digits
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.spark import offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VOID = "-"
"""Spark's placeholder for a source without an offset."""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""At least two letters: a single letter is a Windows drive."""


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise a `ConfigurationError` where a file or folder exists that cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror})") from None


@dataclass(frozen=True, slots=True)
class _LocalFiles:
    """Local folder; names of files are relative to it."""

    location: Path

    def names(self, folder: str) -> list[str] | None:
        """Return the names in a folder; None if it does not exist."""
        path = self.location / folder
        if not is_folder(path):
            return None
        with readable(path):
            return [child.name for child in path.iterdir()]

    def text(self, name: str) -> str | None:
        """Return the content of a file; None if it does not exist."""
        path = self.location / name
        try:
            with readable(path):
                return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None


class _HadoopFiles:
    """The same on any file system that Spark is configured for, through the driver's Java.

    Raises:
        ConfigurationError: the session is of Spark Connect, or not configured for it.
    """

    def __init__(self, location: str, spark: "SparkSession") -> None:
        # Java objects are untyped; Spark Connect's session has neither attribute.
        jvm: Any = getattr(spark, "_jvm", None)
        session: Any = getattr(spark, "_jsparkSession", None)
        if jvm is None or session is None:
            raise ConfigurationError(
                f"{location} is read through the driver's Java, which a session of Spark Connect "
                "does not have; pass a classic SparkSession, or copy the folder to a local path "
                "and leave spark out"
            )
        self._jvm = jvm
        self._location = jvm.org.apache.hadoop.fs.Path(location)
        try:
            # As in a query, the session's settings override Spark's.
            self._files = self._location.getFileSystem(session.sessionState().newHadoopConf())
        except Exception as error:
            raise ConfigurationError(
                f"Spark cannot open the file system of {location}: "
                f"{getattr(error, 'java_exception', error)}"
            ) from error

    def names(self, folder: str) -> list[str] | None:
        path = self._path(folder)
        if not self._files.exists(path):
            return None
        return [str(status.getPath().getName()) for status in self._files.listStatus(path)]

    def text(self, name: str) -> str | None:
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


CheckpointFiles = _LocalFiles | _HadoopFiles


def checkpoint_files(
    location: "str | Path", spark: "SparkSession | None" = None
) -> CheckpointFiles:
    """Return the files of a folder, read through Spark if a session is passed, else locally.

    Raises:
        ConfigurationError: the folder is not local and `spark` is None, or the session cannot read
            it.
    """
    require_type("the checkpoint location", location, isinstance(location, str | Path), "a path")
    text = str(location)
    if spark is not None:
        return _HadoopFiles(text, spark)
    if not SCHEME.match(text):
        return _LocalFiles(Path(location))
    if text.lower().startswith("file:"):
        return _LocalFiles(Path(url2pathname(urlsplit(text).path)))
    raise ConfigurationError(
        f"a location that begins with {text.partition(':')[0]}: is not in a local file system; "
        "pass spark=, a SparkSession that can read it"
    )


@dataclass(frozen=True, slots=True)
class SparkCheckpoint:
    """Progress of a query on one hub.

    Attributes:
        batch_id: of the last committed batch; None if there is none.
        positions: the sequence number of the last committed event by partition id, as
            `parse_progress` returns it.
        ranges: the range of every partition in that batch, including empty ones. Empty if Spark no
            longer has the start of the batch.
        pending: the same for a batch that was logged and not committed; Spark runs it again.
        namespace: of the hub, in the last batch; "" if the source does not record it.
    """

    batch_id: int | None
    positions: Mapping[str, int]
    ranges: list[OffsetRange]
    pending: list[OffsetRange]
    namespace: str = ""


@with_checked_arguments
def read_spark_checkpoint(
    location: str | Path,
    hub: str | None = None,
    spark: "SparkSession | None" = None,
    *,
    source: int | None = None,
) -> SparkCheckpoint:
    """Read the progress of a streaming query, which may be running or stopped.

    Args:
        location: its `checkpointLocation`: a local path, or any URL if `spark` is passed.
        hub: the name of the hub or topic; None selects the only one that the query reads.
        spark: a classic session, to read what Spark's Hadoop client can read.
        source: index of the query's source, if several read this hub.

    Raises:
        ConfigurationError: this is not a checkpoint of a query, not of one that reads this hub, or
            an incomplete copy of one.
    """
    return _Reader(checkpoint_files(location, spark), str(location), hub, source).read()


class _Reader:
    """Single read of the folder."""

    def __init__(
        self, files: CheckpointFiles, location: str, hub: str | None, source: int | None
    ) -> None:
        self._files, self._location, self._hub, self._source = files, location, hub, source
        # The start and the end of a batch need the same file, which may be remote.
        self._offset = cache(self._read_offset)

    def read(self) -> SparkCheckpoint:
        # Commits first: a batch that commits in between is reported as pending, not lost.
        commits = self._batches("commits")
        logged = self._batches("offsets")
        if logged is None:
            raise ConfigurationError(
                f"{self._location} is not a checkpoint of a streaming query: it has no folder "
                "offsets"
            )
        if logged and commits is None:
            # Spark creates both folders before the first batch; copies may lose an empty one.
            raise ConfigurationError(
                f"{self._location} has offsets up to batch {max(logged)} and no folder named "
                "commits, so it is an incomplete copy of a checkpoint, and what was committed is "
                "unknown; copy the whole folder, or create that folder if no batch was committed"
            )
        committed = max(commits or [], default=None)
        latest = max(logged, default=committed)
        pending = self._ranges(committed, latest) if latest not in (None, committed) else []
        namespace = "" if latest is None else offsets.namespace_of(self._offset(latest)[1])
        if committed is None:
            return SparkCheckpoint(None, {}, [], pending, namespace)
        before = max((batch for batch in logged if batch < committed), default=None)
        positions = offsets.last_events(self._end(committed))
        ranges = self._ranges(before, committed)
        return SparkCheckpoint(committed, positions, ranges, pending, namespace)

    def _batches(self, folder: str) -> list[int] | None:
        names = self._files.names(folder)
        # The folder also contains checksums (.5.crc) and files that are being written.
        return None if names is None else [int(name) for name in names if is_digits(name)]

    def _ranges(self, before: int | None, batch: int) -> list[OffsetRange]:
        begin = self._begin(before, batch)
        if begin is None:
            return []
        # A new partition starts at 0; this package's source would have noted an earlier start.
        is_ours = offsets.is_numbers(self._offset(batch)[1])
        # The end is before the start if the hub was deleted and created again.
        return [
            OffsetRange(partition, min(begin.get(partition, end if is_ours else 0), end), end)
            for partition, end in self._end(batch).items()
        ]

    def _begin(self, before: int | None, batch: int) -> dict[str, int] | None:
        """Return where partitions start in a batch; None if Spark no longer has it."""
        name, offset = self._offset(batch)
        noted = offset.get(offsets.FROM) if isinstance(offset, Mapping) else None
        starts: dict[str, int] = {}
        if isinstance(noted, Mapping) and offsets.is_numbers(noted):
            starts = offsets.in_order(noted)
        if before is not None:
            return self._end(before) | starts
        text = self._text(f"sources/{name}/0") if batch == 0 else None
        if text is None:
            return starts or None
        # A zero byte (Kafka's source only), the version, and in the next line the offset.
        initial = offsets.decoded(text.removeprefix("\0").partition("\n")[2])
        return offsets.of_hub(initial, self._hub)

    def _end(self, batch: int) -> dict[str, int]:
        return offsets.of_hub(self._offset(batch)[1], self._hub)

    def _text(self, name: str) -> str | None:
        try:
            return self._files.text(name)
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{name} in {self._location} is damaged, or no file of Spark: it is not text in "
                f"UTF-8 ({error.reason} at byte {error.start})"
            ) from error

    def _read_offset(self, batch: int) -> tuple[str, object]:
        """Return the name of the source's folder, and its offset at the end of a batch."""
        text = self._text(f"offsets/{batch}")
        if text is None:
            raise ConfigurationError(f"{self._location} has no offsets of batch {batch}")
        by_source = _parse_offsets(text, f"offsets/{batch} in {self._location}")
        values = [offset for _, offset in by_source]
        index = offsets.source_of_hub(values, self._hub, self._source)
        return ("", None) if index is None else by_source[index]


def _parse_offsets(text: str, what: str) -> list[tuple[str, object]]:
    """Parse a file of `offsets/` into the folder name and the offset of each source.

    Version 1 has a line per source, in the order of the plan; version 2 a line `NAME:OFFSET`, in
    which an unnamed source is named by its number in the plan.

    Raises:
        ConfigurationError: it is in neither format.
    """
    version, *lines = text.rstrip("\n").split("\n")
    if version == "v1":
        pairs = [(str(index), line) for index, line in enumerate(lines[1:])]
    elif version == "v2":
        named = [line.partition(":") for line in lines[1:]]
        named.sort(key=lambda parts: (int(parts[0]) if is_digits(parts[0]) else -1, parts[0]))
        pairs = [(name, line) for name, _, line in named]
    else:
        raise ConfigurationError(f"{what} begins with {quoted(version)}; expected v1 or v2")
    return [(name, None if line == VOID else offsets.decoded(line)) for name, line in pairs]
