"""Configuration of stores by a mapping with the keys of iothub-react.

Everything invalid raises `ConfigurationError`: an unknown key, a value, a setting that is repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from eventhub_checkpoints._shared import configuration_tables as tables
from eventhub_checkpoints._shared.clouds import PUBLIC
from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import StoreSettings, nearest_first
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.backends import (
    BACKENDS,
    BLOB,
    CASSANDRA,
    MEMORY,
    TABLE,
    Backend,
)
from eventhub_checkpoints.stores.legacy.iothub_react import keyspace_of

EMULATOR = "http://127.0.0.1:{port}/devstoreaccount1"
LEASE_NOTE = "azureblob.lease is ignored: writes are conditional here, leases are not needed"
HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
HOSTS = "'host:9042', or several with commas between"

ACCOUNT: tables.Keys = {
    "account": tables.matching("[a-z0-9]{3,24}", "the name of a storage account"),
    "key": tables.text,
    "protocol": tables.matching("https?", "'https' or 'http'"),
    "endpoint": tables.matching(r"https?://[^@?#\s]+", "https://HOST, without container or table"),
    "useEmulator": tables.flag,
}
CLUSTER: tables.Keys = {
    "cluster": tables.matching(rf"{HOST}(?:\s*,\s*{HOST})*", HOSTS),
    "replicationFactor": tables.count,
    "username": tables.text,
    "password": tables.text,
    "datacenter": tables.text,
}
Table = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Opening:
    """Store to open, with its arguments; without a `repr`, because it holds secrets.

    Attributes:
        url: URL of a built-in store; `""` for a custom one.
        class_path: `package.module.Class` of a custom store; `""` for a built-in one.
        credential: credential for the backend.
        settings: keyword arguments of the store.
        creates: whether the store creates what is missing.
        notes: messages for the user.
    """

    url: str = ""
    class_path: str = ""
    credential: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    creates: bool = False
    notes: tuple[str, ...] = ()


def memory(table: Table) -> Opening:
    """Return a memory store, with private rows or those of a name."""
    return Opening(f"memory:{table.get('namespace', '')}")


def azureblob(table: Table) -> Opening:
    """Return a store in a blob container."""
    notes = (LEASE_NOTE,) if "lease" in table.get("azureblob", {}) else ()
    return replace(of_account(table, BLOB, "container"), notes=notes)


def azuretable(table: Table) -> Opening:
    """Return a store in a table of a storage account."""
    opening = of_account(table, TABLE, "table")
    return replace(opening, url=f"table+{opening.url}")


def of_account(table: Table, backend: Backend, resource: str) -> Opening:
    """Return a store in a resource of a storage account.

    Args:
        table: the store's.
        backend: whose name is that of the service.
        resource: what `namespace` names.
    """
    name = backend.type_name.lower()
    part = table.get(name, {})
    if "namespace" not in table:
        raise tables.missing("namespace", f"the name of the {resource}")
    path = quote(table["namespace"], safe="$")
    if part.get("useEmulator"):
        emulator = EMULATOR.format(port=backend.services[0].emulator_port)
        return Opening(f"{part.get('endpoint', emulator).rstrip('/')}/{path}")
    if "account" not in part and ("key" in part or "endpoint" not in part):
        raise tables.missing(f"{name}.account", "the name of a storage account")
    account = part.get("account")
    named = f"{part.get('protocol', 'https')}://{account}.{backend.name}.core.{PUBLIC.domain}"
    credential = {"account_name": account, "account_key": part["key"]} if "key" in part else None
    return Opening(f"{part.get('endpoint', named).rstrip('/')}/{path}", credential=credential)


def cassandra(table: Table) -> Opening:
    """Return a store in a Cassandra keyspace."""
    part = table.get("cassandra", {})
    if "cluster" not in part:
        raise tables.missing("cassandra.cluster", HOSTS)
    for name, other in (("username", "password"), ("password", "username")):
        if name in part and other not in part:
            raise tables.missing(f"cassandra.{other}", f"a string, because {name} is set")
    hosts = ",".join(host.strip() for host in part["cluster"].split(","))
    keyspace = keyspace_of(table.get("namespace", ""))
    query = f"?datacenter={quote(part['datacenter'])}" if "datacenter" in part else ""
    credential = (part["username"], part["password"]) if "username" in part else None
    settings = {"replication": part["replicationFactor"]} if "replicationFactor" in part else {}
    return Opening(
        f"cassandra://{hosts}/{keyspace}{query}", credential=credential, settings=settings
    )


TYPES = {str: tables.text, bool: tables.flag}


def url_keys(backend: Backend) -> tables.Keys:
    """Return the keys of the table of a backend whose table has its URL."""
    schemes = "|".join(backend.schemes)
    url = tables.matching(rf"(?:{schemes})(?:\+\w+)?:.+", forms(backend))
    own = {name: TYPES[kind] for name, kind in backend.keys.items()}
    return {"url": url, "password": tables.text, **own}


def forms(backend: Backend) -> str:
    """Return what the URLs of a backend look like, as words."""
    *others, last = (scheme.form for scheme in backend.schemes.values())
    return f"{', '.join(others)} or {last}" if others else last


def by_url(backend: Backend, table: Table) -> Opening:
    """Return a store whose table has its URL."""
    name = backend.type_name.lower()
    part = table.get(name, {})
    if "url" not in part:
        raise tables.missing(f"{name}.url", forms(backend))
    keywords = {key: part[key] for key in backend.keys if key in part}
    if "namespace" in table:
        keywords["namespace"] = table["namespace"]
    return Opening(part["url"], credential=part.get("password"), settings=keywords)


def custom(class_path: str, table: Table) -> Opening:
    """Return a custom store, by the path of its class."""
    keywords = {"namespace": table["namespace"]} if "namespace" in table else {}
    return Opening(class_path=class_path, settings=keywords)


OPENINGS = {
    MEMORY.name: memory,
    BLOB.name: azureblob,
    TABLE.name: azuretable,
    CASSANDRA.name: cassandra,
}
"""What opens a store without a URL in its table: in memory, in a storage account, in Cassandra."""
PARTS: dict[str, tables.Keys] = {
    BLOB.type_name.lower(): {**ACCOUNT, "lease": tables.anything},
    TABLE.type_name.lower(): ACCOUNT,
    CASSANDRA.type_name.lower(): CLUSTER,
    **{
        backend.type_name.lower(): url_keys(backend)
        for backend in BACKENDS
        if backend.name not in OPENINGS
    },
}
"""The tables of backends."""
TOP: tables.Keys = {
    "backendType": tables.text,
    "namespace": tables.text,
    "rwTimeout": tables.duration(1, 60),
    "create": tables.flag,
    "settings": tables.any_table,
    **{name: tables.table_of(keys) for name, keys in PARTS.items()},
}
BOTH_TIMEOUTS = ("operation_timeout", "write_timeout")
TIMES = (*BOTH_TIMEOUTS, "keep_unconfirmed", "unreachable_timeout", "connect_timeout")
"""Settings that are durations, of every store and of single backends."""
SECTIONS = ("iothub-react", "checkpointing", "storage")
"""Tables of iothub-react that enclose the store's; the last is the store's own."""
MOST_LEVELS = 20
"""Levels of tables in which a store's table is looked for, to suggest its path."""
POLICY = ("frequency", "countThreshold", "timeThreshold")


def read_configuration(
    mapping: Mapping[str, Any], credential: Any, keywords: Mapping[str, Any]
) -> Opening:
    """Return the store that a mapping names, with the caller's additional arguments."""
    refuse_what_is_not_the_stores(mapping)
    table = tables.checked_table("", mapping, TOP)
    backend = backend_of(table)
    opening = opened(backend, table)
    if credential is not None and opening.credential is not None:
        raise ConfigurationError(
            "the mapping has a credential, and so has credential=; pass one of them"
        )
    settings = united(
        opening.settings, settings_of(table, backend), "in settings and also as a key"
    )
    return replace(
        opening,
        credential=opening.credential if credential is None else credential,
        settings=united(settings, keywords, "in the mapping and as a keyword argument"),
        creates=table.get("create", False),
    )


def refuse_what_is_not_the_stores(mapping: Mapping[str, Any]) -> None:
    """Refuse keys of other parts of iothub-react's configuration, and tables around the store's."""
    for depth, name in enumerate(SECTIONS):
        if name in mapping:
            raise too_much(SECTIONS[depth:])
    for name in POLICY:
        if name in mapping:
            raise ConfigurationError(
                f"{name} is a setting of the saving policy, not of the store; leave it out"
            )
    if "backendType" not in mapping and (path := path_of_a_store(mapping)):
        raise too_much(path)


def too_much(path: Sequence[str]) -> ConfigurationError:
    """Return the error that names the store's table by the keys that lead to it."""
    steps = "".join(f"[{quoted(step)}]" for step in path)
    return ConfigurationError(f"{path[0]} is around the store's table: pass mapping{steps}")


def path_of_a_store(mapping: Mapping[str, Any], levels: int = MOST_LEVELS) -> list[str]:
    """Return the keys to the first nested table that names a backend; empty if there is none."""
    for name, value in mapping.items():
        if isinstance(value, Mapping) and "backendType" in value:
            return [name]
        if isinstance(value, Mapping) and levels and (below := path_of_a_store(value, levels - 1)):
            return [name, *below]
    return []


def backend_of(table: Table) -> Backend | None:
    """Return the backend that `backendType` names, regardless of case; None for a custom store."""
    if "backendType" not in table:
        raise tables.missing("backendType", expected_types(""))
    kind = table["backendType"]
    for backend in BACKENDS:
        if backend.type_name.lower() == kind.lower():
            return backend
    parts = kind.split(".")
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        return None
    raise ConfigurationError(f"backendType is {quoted(kind)}; expected {expected_types(kind)}")


def opened(backend: Backend | None, table: Table) -> Opening:
    """Return the store of a backend, or a custom one."""
    if backend is None:
        return custom(table["backendType"], table)
    opening = OPENINGS.get(backend.name)
    return opening(table) if opening else by_url(backend, table)


def expected_types(named: str) -> str:
    """Return the accepted values of `backendType`, closest first."""
    names = nearest_first(named, [backend.type_name for backend in BACKENDS])
    return f"{', '.join(names)} or the path package.module.Class"


def settings_of(table: Table, backend: Backend | None) -> dict[str, Any]:
    """Return the keyword arguments from `rwTimeout` and the table `settings`."""
    settings = table.get("settings", {})
    if backend is not None:
        known = [*StoreSettings.__annotations__, *backend.settings]
        tables.check_names("settings", settings, known)
    settings = {
        name: parse_duration(value, f"settings.{name}", least=0)
        if name in TIMES and not isinstance(value, int | float | None)
        else value
        for name, value in settings.items()
    }
    seconds = table.get("rwTimeout")
    timeouts = {} if seconds is None else dict.fromkeys(BOTH_TIMEOUTS, seconds)
    return united(timeouts, settings, "by rwTimeout and in settings")


def united(first: Mapping[str, Any], second: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Merge two sets of keyword arguments."""
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            raise ConfigurationError(f"{name} is given twice, {where}; give it once")
    return {**first, **second}
