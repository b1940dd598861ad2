"""Records of changed positions, for `ehcp undo`: a file for each command and group.

A record is a file of positions as `ehcp export` writes it, with the positions before the command;
it also has what the command stored. It is written before the first change, so that a command that
was killed can be undone, or repeated.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from eventhub_checkpoints.cli.output import read_file, shown_path
from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError
from eventhub_checkpoints.operations.fence import new_owner
from eventhub_checkpoints.operations.positions import (
    GroupPositions,
    Position,
    groups_of,
    json_rows,
    position_row,
    read_json_object,
    to_json,
    unique,
)
from eventhub_checkpoints.records import Scope

STATE_DIR = "EHCP_STATE_DIR"
"""Variable with the folder of the records."""
STARTED, DONE, UNDONE = "started", "done", "undone"


@dataclass(frozen=True, slots=True)
class Record:
    """Positions of a group before a command, and what it stored.

    Attributes:
        path: the file.
        time: when the command began, in ISO 8601.
        command: the command with its options, without store and hub.
        store: the store, as shown to people.
        state: `started`, `done`, or `undone` if its positions were restored.
        owner: beginning of the owner ids with which the command took partitions.
        former: positions before it; a partition that is missing had none.
        written: positions that it stored; the row of a partition that is missing was deleted.
    """

    path: Path
    scope: Scope
    time: str
    command: str
    store: str
    state: str = STARTED
    owner: str = ""
    former: Mapping[str, Position] = field(default_factory=dict)
    written: Mapping[str, Position] = field(default_factory=dict)

    @property
    def partition_ids(self) -> set[str]:
        """Return the partitions that the command changes."""
        return {*self.former, *self.written}

    @property
    def is_undo(self) -> bool:
        """Return whether the command is itself an undo."""
        return self.command.split(" ", 1)[0] == "undo"

    def save(self) -> None:
        """Write the file, all or nothing.

        Raises:
            ConfigurationError: it cannot be written.
        """
        text = to_json(
            [GroupPositions(self.scope, self.former)],
            time=self.time,
            command=self.command,
            store=self.store,
            state=self.state,
            owner=self.owner,
            written=json_rows(self.written),
        )
        partial = self.path.with_suffix(".partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                # Positions are changed next, and a power cut must not leave an empty record.
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be written ({error.strerror}), so the change could not be "
                f"undone; name another folder in {STATE_DIR}"
            ) from None

    def as_json(self) -> dict[str, Any]:
        """Return what `ehcp undo --list` shows."""
        return {
            "file": str(self.path),
            **self.scope.as_dict(),
            "time": self.time,
            "command": self.command,
            "store": self.store,
            "state": self.state,
            "partitions": len(self.partition_ids),
        }


def folder() -> Path:
    """Return the folder of the records.

    Raises:
        ConfigurationError: it cannot be created.
    """
    path = Path(
        os.environ.get(STATE_DIR) or user_state_path("eventhub-checkpoints", appauthor=False)
    )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the folder {shown_path(path)} cannot be created ({error.strerror}); name another one "
            f"in {STATE_DIR}"
        ) from None
    return path


def file_name(scope: Scope) -> str:
    """Return the beginning of the names of a group's files."""
    return re.sub(r"[^a-z0-9._-]", "_", "-".join(scope.folded))


def new_record(scope: Scope, command: str, store: str) -> Record:
    """Return a record that is not written yet."""
    now = datetime.now(UTC)
    path = folder() / f"{file_name(scope)}-{now:%Y%m%dT%H%M%S.%fZ}.json"
    time = now.isoformat(timespec="seconds")
    return Record(path, scope, time, command, store, owner=new_owner())


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        ConfigurationError: the file cannot be read, or is not a record.
    """
    value = read_json_object(read_file(path), shown_path(path))
    groups = groups_of(value, shown_path(path))
    texts = {key: value.get(key) for key in ("time", "command", "store", "state", "owner")}
    rows = value.get("written")
    if (
        len(groups) != 1
        or not isinstance(rows, list)
        or not all(isinstance(each, str) for each in texts.values())
    ):
        raise ConfigurationError(
            f"{shown_path(path)} is not a record of a change; use ehcp import for a file of ehcp "
            "export"
        )
    try:
        written = unique(position_row(row) for row in rows)
    except InvalidRecordError as error:
        raise ConfigurationError(f"{shown_path(path)}: {error}") from None
    return Record(
        path,
        groups[0].scope,
        former=groups[0].positions,
        written=written,
        **{key: str(each) for key, each in texts.items()},
    )


def records(scope: Scope | None = None) -> Iterator[Record]:
    """Yield the records of a group, or of all groups, the newest first.

    A file that is damaged is left out.
    """
    names = sorted(folder().glob("*.json"), key=lambda path: path.stem[-23:], reverse=True)
    for path in names:
        try:
            record = read_record(path)
        except ConfigurationError:
            continue
        if scope is None or record.scope.folded == scope.folded:
            yield record


def interrupted(scope: Scope, command: str, store: str) -> Record | None:
    """Return the record of the same command, if the newest one of the group did not finish."""
    newest = next(records(scope), None)
    if newest is None or newest.state != STARTED:
        return None
    return newest if (newest.command, newest.store) == (command, store) else None


def newest_change(scope: Scope, store: str) -> Record | None:
    """Return the newest record that can be undone; an undo is undone by naming its file."""
    return next(
        (
            record
            for record in records(scope)
            if record.store == store and record.state != UNDONE and not record.is_undo
        ),
        None,
    )


def finished(record: Record, state: str = DONE) -> Record:
    """Write and return a record with another state."""
    record = replace(record, state=state)
    record.save()
    return record


@contextmanager
def locked(scope: Scope) -> Iterator[None]:
    """Prevent two commands of this machine from changing a group at the same time.

    The lock ends with the process.

    Raises:
        ConfigurationError: another command changes the group.
    """
    lock = FileLock(folder() / f"{file_name(scope)}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigurationError(
            f"another ehcp changes the positions of {scope} now; wait until it has finished"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"{lock.lock_file} cannot be locked ({error.strerror}); name another folder in "
            f"{STATE_DIR}"
        ) from None
    try:
        yield
    finally:
        lock.release()
