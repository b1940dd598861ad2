"""Which known name, or URL of a store, was probably meant by one that is not known."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePath

from eventhub_checkpoints._shared.secrets import holds_secret
from eventhub_checkpoints.errors import ConfigurationError

LONGEST_OPTION = 40
"""A longer name in a URL's query is part of a key or a password, and not shown."""
ALIKE = 0.5
"""From 0 to 1: how much of a name must be another's for it to be a typing error."""
MISSPELT = 0.85
"""The same for an argument of ours; of a driver's own, none is above 0.8."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None where none is alike."""
    names = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), names, 1, ALIKE)
    return names[found[0]] if found else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """The names that are known, and before all others the one that was probably meant."""
    names = list(known)
    meant = nearest(name, names)
    return names if meant is None else [meant, *(each for each in names if each != meant)]


def refuse_misspelt(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse keyword arguments that are almost ours, where all others are handed on or ignored.

    Args:
        names: of the arguments that are not ours.
        known: of ours.
        what: they are, such as `setting`.

    Raises:
        ConfigurationError: there is one.
    """
    for name in names:
        for meant in get_close_matches(name.lower(), known, 1, MISSPELT):
            raise ConfigurationError(f"{name} is no {what}; did you mean {meant}?")


POSTGRESQL = "postgresql://USER:PASSWORD@HOST/DATABASE"
CONTAINER = "https://ACCOUNT.blob.core.windows.net/CONTAINER"
URLS = {
    **dict.fromkeys(("postgres", "pg", "pgsql", "psql"), POSTGRESQL),
    **dict.fromkeys(("mysql", "mariadb", "mssql", "sqlserver", "oracle"), POSTGRESQL),
    **dict.fromkeys(("valkey", "keydb"), "redis://HOST:6379/0"),
    **dict.fromkeys(("valkeys", "redis+ssl", "redis+tls"), "rediss://HOST:6379/0"),
    **dict.fromkeys(("scylla", "scylladb", "cql"), "cassandra://HOST/KEYSPACE"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "azure", "az", "blob"), CONTAINER),
}
"""What is meant by the scheme of another program, or of a database that no store is for."""
PORTS = {
    "5432": POSTGRESQL,
    "6379": "redis://HOST:6379/0",
    "6380": "rediss://HOST:6380/0",
    "9042": "cassandra://HOST/KEYSPACE",
}
SQLITE = re.compile(r"sqlite3:///(?P<path>.+)|(?:sqlite3?|file):/{0,2}(?P<file>.+)", re.IGNORECASE)
PATH = re.compile(r"[^=;]*[/\\][^=;]*|[^=;:]+\.(?:db|sqlite3?)", re.IGNORECASE)
CONNECTION_STRING = re.compile(
    r"\b(?:(?P<account>AccountName|AccountKey|BlobEndpoint)=|Endpoint=sb:)", re.IGNORECASE
)
STORAGE_ACCOUNT = (
    "; the connection string of a storage account goes to "
    "BlobCheckpointStore.from_connection_string"
)
EVENT_HUB = "; this is the connection string of an event hub, not the URL of a store"
HOST = re.compile(r"[\w.-]+:(?P<port>\d+)(?:/\d*)?")


def did_you_mean(url: object, own: tuple[str, ...] = ()) -> str:
    """Return what to add to a message about a URL that no store takes; `""` where that is unclear.

    Args:
        url: what was passed, a string or a path; only a path without a secret is repeated.
        own: what the URLs of the store begin with that was called; none: any store's.
    """
    if isinstance(url, str) and (found := CONNECTION_STRING.search(url)):
        return STORAGE_ACCOUNT if found["account"] else EVENT_HUB
    if isinstance(url, PurePath):
        meant: str | None = sqlite_url(str(url))
    else:
        meant = meant_url(url.strip()) if isinstance(url, str) else None
    if meant is None:
        return ""
    is_own = not own or meant.startswith(own)
    return f"; did you mean {meant}?" if is_own else f"; did you mean open_store with {meant}?"


def meant_url(url: str) -> str | None:
    """Return the URL of a store, with words for its parts, that is most like what was passed."""
    scheme, slashes, _ = url.removeprefix("jdbc:").partition("://")
    if slashes and scheme.lower() in URLS:
        return URLS[scheme.lower()]
    if slashes and url.startswith("jdbc:postgresql"):
        return POSTGRESQL
    if ",password=" in url:
        return "rediss://:PASSWORD@HOST:6380/0"  # as StackExchange.Redis and the portal write it
    if found := HOST.fullmatch(url):
        return PORTS.get(found["port"])
    if found := SQLITE.fullmatch(url):
        return sqlite_url(found["path"] or found["file"])
    return sqlite_url(url) if not slashes and PATH.fullmatch(url) else None


def sqlite_url(path: str) -> str:
    """Return the URL of a file."""
    return "sqlite:///FILE" if holds_secret(path) or "@" in path else f"sqlite:///{path}"
