"""Journal in a folder of this machine: a file for each command and group.

A record is a file of positions as `ehcp export` writes it, with the positions before the command;
it also has what the command stored.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.cli.output import read_file, shown_path
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, InvalidRecordError
from eventhub_checkpoints.operations.journal import Record
from eventhub_checkpoints.operations.positions import (
    GroupPositions,
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


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        ConfigurationError: the file cannot be read, or is not a record.
    """
    expected = f"one of the records that {as_typed('undo --list')} shows"
    value = read_json_object(read_file(path), shown_path(path), expected)
    groups = groups_of(value, shown_path(path), expected)
    texts = {key: value.get(key) for key in ("time", "command", "store", "state", "owner")}
    rows = value.get("written")
    untouched = value.get("untouched", [])  # records of earlier versions have none
    if (
        len(groups) != 1
        or not isinstance(rows, list)
        or not isinstance(untouched, list)
        or not all(isinstance(each, str) for each in texts.values())
    ):
        raise ConfigurationError(
            f"{shown_path(path)} is not a record of a change; use {as_typed('import')} for a file "
            f"of {as_typed('export')}"
        )
    try:
        written = unique(position_row(row) for row in rows)
        left = unique(position_row(row) for row in untouched)
    except InvalidRecordError as error:
        raise ConfigurationError(f"{shown_path(path)}: {error}") from None
    return Record(
        path,
        groups[0].scope,
        former=groups[0].positions,
        written=written,
        untouched=left,
        **{key: str(each) for key, each in texts.items()},
    )


class RecordFiles:
    """Journal in the folder of the records; see `operations.journal`."""

    def path_of(self, scope: Scope, began: datetime) -> Path:
        """Return the file of the record of a command on a group that began at a time."""
        return folder() / f"{file_name(scope)}-{began:%Y%m%dT%H%M%S.%fZ}.json"

    def records(self, scope: Scope | None = None) -> Iterator[Record]:
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

    def save(self, record: Record) -> None:
        """Write a record, all or nothing.

        Raises:
            ConfigurationError: it cannot be written.
        """
        text = to_json(
            [GroupPositions(record.scope, record.former)],
            time=record.time,
            command=record.command,
            store=record.store,
            state=record.state,
            owner=record.owner,
            written=json_rows(record.written),
            untouched=json_rows(record.untouched),
        )
        partial = record.path.with_suffix(".partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                # Positions are changed next, and a power cut must not leave an empty record.
                os.fsync(file.fileno())
            partial.replace(record.path)
        except OSError as error:
            raise ConfigurationError(
                f"{record.path} cannot be written ({error.strerror}), so the change could not be "
                f"undone; name another folder in {STATE_DIR}"
            ) from None

    @contextmanager
    def locked(self, scope: Scope) -> Iterator[None]:
        """Prevent two commands of this machine from changing a group at the same time.

        The lock ends with the process.

        Raises:
            CheckpointStoreError: another command changes the group.
        """
        lock = FileLock(folder() / f"{file_name(scope)}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise CheckpointStoreError(
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
