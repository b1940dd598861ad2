"""The configuration table of each backend, and the store that it names.

The keys of `azureblob` and `cassandra` are those of iothub-react, where it had one.
Source: Azure/toketi-iothubreact 0.9, `reference.conf` and `CPConfiguration.scala`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from eventhub_checkpoints._shared.configuration_tables import (
    Keys,
    anything,
    count,
    flag,
    matching,
    missing,
    text,
)
from eventhub_checkpoints.stores.legacy.iothub_react import keyspace_of

EMULATOR = "http://127.0.0.1:10000/devstoreaccount1"
LEASE_NOTE = "azureblob.lease is ignored: writes are conditional here, leases are not needed"
HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
HOSTS = "'host:9042', or several with commas between"
SQL_URL = "postgresql://... or sqlite:///..."
REDIS_URL = "redis://... or rediss://..."

AZUREBLOB: Keys = {
    "account": matching(re.compile("[a-z0-9]{3,24}"), "the name of a storage account"),
    "key": text,
    "protocol": matching(re.compile("https?"), "'https' or 'http'"),
    "endpoint": matching(re.compile(r"https?://[^@?#\s]+"), "https://HOST, without container"),
    "useEmulator": flag,
    "lease": anything,
}
CASSANDRA: Keys = {
    "cluster": matching(re.compile(rf"{HOST}(?:\s*,\s*{HOST})*"), HOSTS),
    "replicationFactor": count,
    "username": text,
    "password": text,
    "datacenter": text,
}
SQL: Keys = {
    "url": matching(re.compile(r"(?:postgresql|sqlite)(?:\+\w+)?:.+"), SQL_URL),
    "password": text,
    "schema": text,
    "entra": flag,
}
REDIS: Keys = {
    "url": matching(re.compile("rediss?:.+"), REDIS_URL),
    "password": text,
    "entra": flag,
}

Table = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Opening:
    """What to open, and how; without a `repr`, for it holds secrets.

    Attributes:
        url: of one of our stores; `""` for a custom one.
        class_path: `package.module.Class` of a custom store; `""` for one of ours.
        credential: for the backend.
        settings: keyword arguments of the store.
        creates: whether it creates what is missing.
        notes: what to tell the user.
    """

    url: str = ""
    class_path: str = ""
    credential: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    creates: bool = False
    notes: tuple[str, ...] = ()


class Backend(NamedTuple):
    """A kind of store.

    Attributes:
        opening: the store that a whole checked configuration names.
        settings: what it can be told besides what every store can; None: anything.
    """

    opening: Callable[[Table], Opening]
    settings: tuple[str, ...] | None = ()


def memory(table: Table) -> Opening:
    """Rows of its own, or those of a name."""
    return Opening(f"memory:{table.get('namespace', '')}")


def azureblob(table: Table) -> Opening:
    """A container."""
    part = table.get("azureblob", {})
    if "namespace" not in table:
        raise missing("namespace", "the name of the container")
    notes = (LEASE_NOTE,) if "lease" in part else ()
    container = quote(table["namespace"], safe="$")
    if part.get("useEmulator"):
        return Opening(f"{part.get('endpoint', EMULATOR).rstrip('/')}/{container}", notes=notes)
    if "account" not in part and ("key" in part or "endpoint" not in part):
        raise missing("azureblob.account", "the name of a storage account")
    account = part.get("account")
    named = f"{part.get('protocol', 'https')}://{account}.blob.core.windows.net"
    credential = {"account_name": account, "account_key": part["key"]} if "key" in part else None
    url = f"{part.get('endpoint', named).rstrip('/')}/{container}"
    return Opening(url, credential=credential, notes=notes)


def cassandra(table: Table) -> Opening:
    """A keyspace."""
    part = table.get("cassandra", {})
    if "cluster" not in part:
        raise missing("cassandra.cluster", HOSTS)
    for name, other in (("username", "password"), ("password", "username")):
        if name in part and other not in part:
            raise missing(f"cassandra.{other}", f"a text, for there is a {name}")
    hosts = ",".join(host.strip() for host in part["cluster"].split(","))
    keyspace = keyspace_of(table.get("namespace", ""))
    query = f"?datacenter={quote(part['datacenter'])}" if "datacenter" in part else ""
    credential = (part["username"], part["password"]) if "username" in part else None
    settings = {"replication": part["replicationFactor"]} if "replicationFactor" in part else {}
    return Opening(
        f"cassandra://{hosts}/{keyspace}{query}", credential=credential, settings=settings
    )


def sql(table: Table) -> Opening:
    """Tables in a database."""
    return by_url(table, "sql", SQL_URL, ("schema", "entra"))


def redis(table: Table) -> Opening:
    """Keys on a server."""
    return by_url(table, "redis", REDIS_URL, ("entra",))


def by_url(table: Table, name: str, expected: str, settings: tuple[str, ...]) -> Opening:
    """A store that its table names by URL."""
    part = table.get(name, {})
    if "url" not in part:
        raise missing(f"{name}.url", expected)
    given = {key: part[key] for key in settings if key in part}
    if "namespace" in table:
        given["namespace"] = table["namespace"]
    return Opening(part["url"], credential=part.get("password"), settings=given)


def custom(class_path: str) -> Backend:
    """A store of somebody else's, by the path of its class."""

    def opening(table: Table) -> Opening:
        given = {"namespace": table["namespace"]} if "namespace" in table else {}
        return Opening(class_path=class_path, settings=given)

    return Backend(opening, None)


BACKENDS = {
    "Memory": Backend(memory),
    "AzureBlob": Backend(azureblob, ("api_version", "secondary_hostname", "name_case")),
    "Sql": Backend(sql),
    "Redis": Backend(redis, ("allow_eviction",)),
    "Cassandra": Backend(cassandra, ("replication", "connect_timeout")),
}
