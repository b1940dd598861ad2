"""A store's configuration as a mapping, in the words of iothub-react: which store it names.

Rule 1: all of it is checked, also the tables of backends that are not used. Rule 2: what
iothub-react could say and means nothing here is refused, or named in a note; nothing is dropped in
silence. Rule 3: nothing is said twice in two ways.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventhub_checkpoints._shared.configuration_tables import (
    Keys,
    any_table,
    check_names,
    checked_table,
    duration,
    flag,
    missing,
    table_of,
    text,
)
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints._shared.suggestions import nearest_first
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.configuration_backends import (
    AZUREBLOB,
    BACKENDS,
    CASSANDRA,
    REDIS,
    SQL,
    Backend,
    Opening,
    Table,
    custom,
)

TOP: Keys = {
    "backendType": text,
    "namespace": text,
    "rwTimeout": duration(1, 60),
    "create": flag,
    "settings": any_table,
    "azureblob": table_of(AZUREBLOB),
    "cassandra": table_of(CASSANDRA),
    "sql": table_of(SQL),
    "redis": table_of(REDIS),
}
BOTH_TIMEOUTS = ("operation_timeout", "write_timeout")
SECTIONS = ("iothub-react", "checkpointing", "storage")
"""The tables of iothub-react around the store's, and the store's own, which is the last."""
POLICY = ("frequency", "countThreshold", "timeThreshold")


def read_configuration(
    mapping: Mapping[str, Any], credential: Any, keywords: Mapping[str, Any]
) -> Opening:
    """The store that a mapping names, with what its caller gave besides.

    Raises:
        ConfigurationError: a key is not known, a value cannot be, or something is said twice.
    """
    refuse_what_is_not_the_stores(mapping)
    table = checked_table("", mapping, TOP)
    backend = backend_of(table)
    opening = backend.opening(table)
    if credential is not None and opening.credential is not None:
        raise ConfigurationError("there are two credentials: in the mapping, and credential=")
    settings = united(
        opening.settings, settings_of(table, backend), "in settings and by a key of its own"
    )
    return replace(
        opening,
        credential=opening.credential if credential is None else credential,
        settings=united(settings, keywords, "in the mapping and as a keyword argument"),
        creates=table.get("create", False),
    )


def refuse_what_is_not_the_stores(mapping: Mapping[str, Any]) -> None:
    """Say which table to pass, and where the parts of iothub-react's around it belong.

    Raises:
        ConfigurationError: there is one.
    """
    for depth, name in enumerate(SECTIONS):
        if name in mapping:
            raise too_much(SECTIONS[depth:])
    for name in POLICY:
        if name in mapping:
            raise ConfigurationError(f"{name} belongs to the saving policy, not to the store")
    if "backendType" not in mapping and (path := path_of_a_store(mapping)):
        raise too_much(path)


def too_much(path: Sequence[str]) -> ConfigurationError:
    """Says which table is the store's, by the keys that lead to it."""
    steps = "".join(f"[{quoted(step)}]" for step in path)
    return ConfigurationError(f"{path[0]} is around the store's table: pass mapping{steps}")


def path_of_a_store(mapping: Mapping[str, Any]) -> list[str]:
    """The keys down to the first table within that names a backend; none where there is none."""
    for name, value in mapping.items():
        if isinstance(value, Mapping) and "backendType" in value:
            return [name]
        if isinstance(value, Mapping) and (below := path_of_a_store(value)):
            return [name, *below]
    return []


def backend_of(table: Table) -> Backend:
    """The kind of store that `backendType` names, in letters of either case.

    Raises:
        ConfigurationError: it is not there, or neither one of ours nor the path of a class.
    """
    if "backendType" not in table:
        raise missing("backendType", expected_types(""))
    named = table["backendType"]
    for name, backend in BACKENDS.items():
        if name.lower() == named.lower():
            return backend
    parts = named.split(".")
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        return custom(named)
    raise ConfigurationError(f"backendType is {quoted(named)}; expected {expected_types(named)}")


def expected_types(named: str) -> str:
    """What `backendType` may be, the nearest first."""
    return f"{', '.join(nearest_first(named, BACKENDS))} or the path package.module.Class"


def settings_of(table: Table, backend: Backend) -> dict[str, Any]:
    """The keyword arguments that `rwTimeout` and the table `settings` stand for.

    Raises:
        ConfigurationError: the backend has no such setting, or one is given twice.
    """
    given = table.get("settings", {})
    if backend.settings is not None:
        check_names("settings", given, [*StoreSettings.__annotations__, *backend.settings])
    seconds = table.get("rwTimeout")
    timeouts = {} if seconds is None else dict.fromkeys(BOTH_TIMEOUTS, seconds)
    return united(timeouts, given, "by rwTimeout and in settings")


def united(first: Mapping[str, Any], second: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keyword arguments of both.

    Raises:
        ConfigurationError: one is in both, and not the same.
    """
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            raise ConfigurationError(f"{name} is given twice: {where}")
    return {**first, **second}
