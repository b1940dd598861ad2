"""State file of `ehcp check`: the last samples of a group's lag, kept between calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args, get_type_hints

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.records import Scope


def read_samples(path: Path, name: str, scope: Scope) -> list[GroupLag]:
    """Read the samples of a group from a state file; none if it does not exist.

    Args:
        path: the file.
        name: its name for errors, without secrets.
        scope: the group.

    Raises:
        ConfigurationError: it is not a state file, or that of another group.
    """
    try:
        stored = parse_json(path.read_text("utf-8"))
        samples = [
            GroupLag(
                Scope.checked(*each["scope"]),
                float(each["time"]),
                [partition_lag_of(partition) for partition in each["partitions"]],
                [str(partition_id) for partition_id in each["foreign"]],
            )
            for each in stored
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigurationError(
            f"{name} is not a state file of {as_typed('check')} ({type(error).__name__}); delete "
            "it, or name another one"
        ) from None
    if any(sample.scope.folded != scope.folded for sample in samples):
        raise ConfigurationError(f"{name} is the state file of {samples[0].scope}; use another one")
    return samples


def partition_lag_of(row: Mapping[str, object]) -> PartitionLag:
    """Return the lag of a partition in a state file.

    Raises:
        TypeError: it is something else.
    """
    for name, kind in get_type_hints(PartitionLag).items():
        kinds = get_args(kind) or (kind,)
        number = (int,) if float in kinds else ()
        is_kind = isinstance(row.get(name), (*kinds, *number))
        # A boolean is an integer for Python.
        if not is_kind or isinstance(row.get(name), bool) != (kind is bool):
            raise TypeError(f"{name} must not be of type {type(row.get(name)).__name__}")
    return PartitionLag(**row)  # type: ignore[arg-type]  # each was checked


def write_samples(path: Path, name: str, samples: Sequence[GroupLag]) -> None:
    """Write the samples of a group to a state file, all or nothing.

    Args:
        path: the file.
        name: its name for errors, without secrets.
        samples: oldest first.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(json.dumps([asdict(sample) for sample in samples]), "utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be written ({error.strerror})") from None
