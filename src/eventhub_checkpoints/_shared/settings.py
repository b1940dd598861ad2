"""Settings that all stores share, their validation, and suggestions for misspelt ones and URLs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import PurePath
from typing import Literal, TypedDict

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints.errors import ConfigurationError

LONGEST_TIME = 1e9
"""Seconds, which are 32 years. Beyond some larger number, clocks and timers overflow."""
SHORTEST_TIME = 0.001
"""Seconds; a float clock does not resolve shorter intervals well."""
SECONDS = f"a number of seconds, above 0 and at most {LONGEST_TIME:g}"
SECONDS_OR_ZERO = f"a number of seconds, from 0 to {LONGEST_TIME:g}"

MOST_CONCURRENT = 1000
"""Pools of connections reserve memory for each request that may run at the same time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one store, validated; `StoreSettings` describes them."""

    operation_timeout: float = 30.0
    write_timeout: float = 10.0
    keep_unconfirmed: float = 30.0
    max_concurrency: int = 32
    on_stale: Literal["log", "raise"] = "log"
    unreachable_timeout: float | None = None

    def __post_init__(self) -> None:
        require_seconds("operation_timeout", self.operation_timeout)
        require_seconds("write_timeout", self.write_timeout)
        require_seconds("keep_unconfirmed", self.keep_unconfirmed, or_zero=True)
        if self.unreachable_timeout is not None:
            require_seconds("unreachable_timeout", self.unreachable_timeout)
        limit, on_stale = self.max_concurrency, self.on_stale
        is_limit = is_count(limit) and limit <= MOST_CONCURRENT
        require("max_concurrency", limit, is_limit, f"a whole number, 1 to {MOST_CONCURRENT}")
        require("on_stale", on_stale, on_stale in ("log", "raise"), "'log' or 'raise'")


def is_number(value: object) -> bool:
    """Return whether the value is a finite number; timeouts cannot be anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def is_seconds(value: object, *, or_zero: bool = False) -> bool:
    """Return whether a timer can wait for so many seconds.

    Args:
        value: of any type.
        or_zero: whether 0 is accepted.
    """
    if not isinstance(value, int | float) or not is_number(value):
        return False
    return 0 < value <= LONGEST_TIME or (or_zero and value == 0)


def is_count(value: object, least: int = 1) -> bool:
    """Return whether the value is an integer of at least `least`."""
    return isinstance(value, int) and is_number(value) and value >= least


def kind_of(value: object) -> str:
    """Return the public import path of a value's type."""
    return name_of(type(value))


def name_of(kind: type) -> str:
    """Return the public import path of a type."""
    module = kind.__module__.partition("._")[0]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def require(name: str, value: object, holds: bool, expected: str) -> None:
    """Refuse an invalid setting."""
    if not holds:
        raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")


def require_seconds(name: str, value: object, *, or_zero: bool = False) -> None:
    """Refuse a value for which `is_seconds` is false."""
    expected = SECONDS_OR_ZERO if or_zero else SECONDS
    require(name, value, is_seconds(value, or_zero=or_zero), expected)


class StoreSettings(TypedDict, total=False):
    """Settings that the constructor of every store accepts as keyword arguments.

    Attributes:
        operation_timeout: time limit of a list, or of one call of `claim_ownership` however many
            claims it has, in seconds. Default: 30.
        write_timeout: time limit of one checkpoint or one release, in seconds. Default: 10.
        keep_unconfirmed: how long an ownership is kept if its renewals have no response, in seconds
            since the server last confirmed it. Must be less than the client's
            `partition_ownership_expiration_interval`. Default: 30.
        max_concurrency: maximum number of concurrent claims of one batch, at most 1000. Default:
            32.
        on_stale: `"log"` a checkpoint that would go back, or `"raise"` `StaleCheckpointError`.
            Default: `"log"`.
        unreachable_timeout: seconds for which a call tries to connect to a server that refuses the
            connection or whose name cannot be resolved, counted from the first time. Default: 5
            for `create` and `verify`; the other calls have their own time limits only.
    """

    operation_timeout: float
    write_timeout: float
    keep_unconfirmed: float
    max_concurrency: int
    on_stale: Literal["log", "raise"]
    unreachable_timeout: float


LONGEST_OPTION = 40
"""A longer name in a URL's query is part of a key or a password, and is not shown."""
ALIKE = 0.5
"""Minimum similarity, from 0 to 1, at which a name counts as a misspelling of another."""
MISSPELT = 0.85
"""The same for arguments of this package; no argument of a driver scores above 0.8."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; None if none is similar."""
    names = {each.lower(): each for each in known}
    matches = get_close_matches(name.lower(), names, 1, ALIKE)
    return names[matches[0]] if matches else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names, starting with the one that was probably meant."""
    names = list(known)
    meant = nearest(name, names)
    return names if meant is None else [meant, *(each for each in names if each != meant)]


def refuse_misspelt(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse misspelled keyword arguments where unknown ones are passed on or ignored.

    Args:
        names: arguments that are not known.
        known: arguments of this package.
        what: the kind of argument for the message, such as `a setting`.

    Raises:
        ConfigurationError: a name is a misspelling of a known one.
    """
    for name in names:
        for meant in get_close_matches(name.lower(), known, 1, MISSPELT):
            raise ConfigurationError(f"{name} is not {what}; did you mean {meant}?")


MYSQL = "mysql://USER:PASSWORD@HOST/DATABASE"
POSTGRESQL = "postgresql://USER:PASSWORD@HOST/DATABASE"
CONTAINER = "https://ACCOUNT.blob.core.windows.net/CONTAINER"
URLS = {
    **dict.fromkeys(("postgres", "pg", "pgsql", "psql"), POSTGRESQL),
    **dict.fromkeys(("mysql", "mariadb"), MYSQL),
    **dict.fromkeys(("mssql", "sqlserver", "oracle"), POSTGRESQL),
    **dict.fromkeys(("valkey", "keydb"), "redis://HOST:6379/0"),
    **dict.fromkeys(("valkeys", "redis+ssl", "redis+tls"), "rediss://HOST:6379/0"),
    **dict.fromkeys(("scylla", "scylladb", "cql"), "cassandra://HOST/KEYSPACE"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "azure", "az", "blob"), CONTAINER),
}
"""Suggestion by URL scheme, for schemes of other programs and of unsupported databases."""
PORTS = {
    "3306": MYSQL,
    "5432": POSTGRESQL,
    "6379": "redis://HOST:6379/0",
    "6380": "rediss://HOST:6380/0",
    "9042": "cassandra://HOST/KEYSPACE",
}
SQLITE = r"(?i)sqlite3:///(?P<path>.+)|(?:sqlite3?|file):/{0,2}(?P<file>.+)"
PATH = r"(?i)[^=;]*[/\\][^=;]*|[^=;:]+\.(?:db|sqlite3?)"
CONNECTION_STRING = r"(?i)\b(?:(?P<account>AccountName|AccountKey|BlobEndpoint)=|Endpoint=sb:)"
STORAGE_ACCOUNT = (
    "; the connection string of a storage account goes to "
    "BlobCheckpointStore.from_connection_string"
)
EVENT_HUB = "; this is the connection string of an event hub, not the URL of a store"
HOST = r"[\w.-]+:(?P<port>\d+)(?:/\d*)?"


def did_you_mean(url: object, own: tuple[str, ...] = ()) -> str:
    """Return the suggestion to append to a message about an unsupported URL; `""` if unclear.

    Args:
        url: the string or path that was passed; only a path without a secret is repeated.
        own: URL prefixes of the store that was called; empty for any store.
    """
    if isinstance(url, str) and (match := re.search(CONNECTION_STRING, url)):
        return STORAGE_ACCOUNT if match["account"] else EVENT_HUB
    if isinstance(url, PurePath):
        meant: str | None = sqlite_url(str(url))
    else:
        meant = meant_url(url.strip()) if isinstance(url, str) else None
    if meant is None:
        return ""
    is_own = not own or meant.startswith(own)
    return f"; did you mean {meant}?" if is_own else f"; did you mean open_store with {meant}?"


def meant_url(url: str) -> str | None:
    """Return the store URL, with placeholders, that most resembles what was passed."""
    scheme, slashes, _ = url.removeprefix("jdbc:").partition("://")
    if slashes and scheme.lower() in URLS:
        return URLS[scheme.lower()]
    if slashes and url.startswith("jdbc:postgresql"):
        return POSTGRESQL
    if ",password=" in url:
        return "rediss://:PASSWORD@HOST:6380/0"  # format of StackExchange.Redis and the portal
    if match := re.fullmatch(HOST, url):
        return PORTS.get(match["port"])
    if match := re.fullmatch(SQLITE, url):
        return sqlite_url(match["path"] or match["file"])
    return sqlite_url(url) if not slashes and re.fullmatch(PATH, url) else None


def sqlite_url(path: str) -> str:
    """Return the SQLite URL of a file."""
    return "sqlite:///FILE" if holds_secret(path) or "@" in path else f"sqlite:///{path}"
