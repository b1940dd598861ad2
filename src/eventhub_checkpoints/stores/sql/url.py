"""URLs of SQL stores: database, driver, and options of the query."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import LONGEST_OPTION, did_you_mean, nearest_first
from eventhub_checkpoints.errors import (
    ConfigurationError,
    MissingDriverError,
    StoreNotReadyError,
)
from eventhub_checkpoints.stores.sql.errors import NO_FILE
from eventhub_checkpoints.stores.sql.tables import Tables

OURS = ("namespace", "schema")
OF_THE_DIALECT = {
    "asyncpg": ("prepared_statement_cache_size",),
    "sqlite": (
        *("uri", "timeout", "isolation_level", "detect_types"),
        *("check_same_thread", "cached_statements"),
    ),
}
"""Options that SQLAlchemy reads from the query. Source: SQLAlchemy 2.0, `pysqlite.py` and
`asyncpg.py`, `create_connect_args`.
"""
OF_A_FILE_URI = ("cache", "immutable", "mode", "nolock", "psow", "vfs")
"""Source: SQLite, "Uniform Resource Identifiers", section 3.3."""
NO_TEXTS = {"dsn", "loop", "connection_class", "record_class", "server_settings"}
"""Arguments of asyncpg that are not strings, and cannot be options of a URL."""


def check_options(query: Mapping[str, Any], driver: str) -> None:
    """Refuse options that the driver would refuse at the first use, or ignore.

    Raises:
        ConfigurationError: there is one; the message lists the known options, closest first.
    """
    known = [*OURS, *KNOWN[driver](query)]
    unknown = [name for name in query if name not in known]
    if not unknown:
        return
    if "@" in str(query) or not all(is_name(name) for name in unknown):
        # An @ and a ? in the password began host and query; the rest of it would be shown.
        raise ConfigurationError(
            "the query of the store URL cannot be read; expected names and values, and in the "
            "password special characters percent-encoded"
        )
    name, listed = unknown[0], ", ".join(nearest_first(unknown[0], known))
    raise ConfigurationError(
        f"{name} in the store URL is no option of the store or of {driver}; known are {listed}"
    )


def is_name(text: str) -> bool:
    """Return whether the string can be an option's name, rather than part of a key or password."""
    return text.isidentifier() and len(text) <= LONGEST_OPTION


def of_psycopg(query: Mapping[str, Any]) -> list[str]:
    """Return the keywords of the installed libpq."""
    defaults = import_module("psycopg").pq.Conninfo.get_defaults()
    return [option.keyword.decode() for option in defaults]


def of_asyncpg(query: Mapping[str, Any]) -> list[str]:
    """Return the parameters of asyncpg's `connect`."""
    arguments = inspect.signature(import_module("asyncpg").connect).parameters
    return [*OF_THE_DIALECT["asyncpg"], *(name for name in arguments if name not in NO_TEXTS)]


def of_sqlite(query: Mapping[str, Any]) -> list[str]:
    """Return SQLite's options; those of a file URI count only with `uri=true`."""
    return [*OF_THE_DIALECT["sqlite"], *(OF_A_FILE_URI if "uri" in query else ())]


KNOWN: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "psycopg": of_psycopg,
    "asyncpg": of_asyncpg,
    "pysqlite": of_sqlite,
    "aiosqlite": of_sqlite,
}


try:
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError
except ImportError as error:
    raise MissingDriverError.of_extra("the SQL store", "sql") from error

NAMESPACE = "eventhub_checkpoints"
OWN = ("postgresql", "sqlite")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
"""Short enough that PostgreSQL truncates no table name (63 bytes)."""
FORMS = (
    "expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, special characters "
    "percent-encoded"
)
UNSTRIPPED = (
    "the store URL begins or ends with white space, such as the line break of the file that it was "
    "read from: strip it"
)
UNREADABLE = f"the store URL cannot be read; {FORMS}"
OTHER_URL = re.compile("://[^/]*:")
"""A URL with a password or port, inside a part of another URL."""
NO_PORT = (
    "the port in the store URL is no number from 1 to 65535; expected "
    "postgresql://USER:PASSWORD@HOST:5432/DATABASE, special characters percent-encoded"
)
EXTRAS = {"aiosqlite": "sql", "psycopg": "postgres"}


def parsed(url: str | URL) -> URL:
    """Parse a URL.

    Raises:
        ConfigurationError: it is invalid; the message does not repeat it, because it may hold a
            password.
    """
    if isinstance(url, str) and url != url.strip():
        raise ConfigurationError(UNSTRIPPED)
    try:
        found = make_url(url)
    except ArgumentError:
        raise ConfigurationError(f"{UNREADABLE}{did_you_mean(str(url), OWN)}") from None
    except ValueError:
        # The error repeats the port, which is part of a password that contains an @.
        raise ConfigurationError(NO_PORT) from None
    if found.port is not None and not 0 < found.port < 65536:
        raise ConfigurationError(NO_PORT)
    if found.get_backend_name() != "sqlite" and "@" in f"{found.host}{found.database}":
        # A slash in the password ended the host; the rest of the password would be shown.
        raise ConfigurationError(UNREADABLE)
    parts = (found.host, found.database, *found.query)
    if any(holds_secret(part) or OTHER_URL.search(part) for part in parts if part):
        raise ConfigurationError(f"a part of the store URL is a secret of something else; {FORMS}")
    if found.get_backend_name() == "sqlite" and found.host:
        raise ConfigurationError(
            f"a SQLite file has no host; expected sqlite:///FILE{did_you_mean(str(url), OWN)}"
        )
    return found


def tables_of(url: URL, namespace: str | None, schema: str | None) -> Tables:
    """Return the tables' names, from arguments or the URL's query.

    Raises:
        ConfigurationError: the two differ, or a name is invalid.
    """
    chosen = {
        "namespace": chosen_name(url, "namespace", namespace) or NAMESPACE,
        "schema": chosen_name(url, "schema", schema),
    }
    if chosen["schema"] and url.get_backend_name() == "sqlite":
        raise ConfigurationError("SQLite has no schemas; leave schema out, or use namespace")
    return Tables(**chosen)  # type: ignore[arg-type]  # the namespace is never None


def chosen_name(url: URL, name: str, given: str | None) -> str | None:
    """Return a name from its argument or the URL's query; None if it is in neither."""
    written = url.query.get(name)
    if given is not None and written is not None and given != written:
        raise ConfigurationError(
            f"{name} is {quoted(given)}, and {quoted(written)} in the URL; give it once"
        )
    value = given if given is not None else written
    if value is not None and not (isinstance(value, str) and NAME.fullmatch(value)):
        raise ConfigurationError(
            f"{name} is {quoted(value)}; expected letters, digits and _, at most 48, no digit first"
        )
    return value


def driver_url(url: URL, drivers: Mapping[str, Sequence[str]], colour: str) -> URL:
    """Return the URL with a sync or async driver, and without the store's own options.

    Raises:
        ConfigurationError: the database or driver is not supported here, or the rows would be in
            one connection's memory.
        MissingDriverError: the driver is not installed.
    """
    dialect, _, driver = url.drivername.partition("+")
    if dialect not in drivers:
        known = " and ".join(f"{name}://" for name in drivers)
        raise ConfigurationError(
            f"{dialect}:// is not supported; the SQL store takes {known}"
            f"{did_you_mean(f'{dialect}://', OWN)}"
        )
    driver = driver or drivers[dialect][0]
    if driver not in drivers[dialect]:
        known = " or ".join(f"{dialect}+{name}://" for name in drivers[dialect])
        raise ConfigurationError(
            f"{url.drivername}:// cannot be used by the {colour} store; it takes {known}, "
            f"or {dialect}:// for the first of these"
        )
    check_file(url)
    if driver != "pysqlite" and find_spec(driver) is None:
        if driver in EXTRAS:
            raise MissingDriverError.of_extra(f"{dialect}+{driver}://", EXTRAS[driver])
        raise MissingDriverError(f"{dialect}+{driver}:// needs: python -m pip install {driver}")
    return url.set(drivername=f"{dialect}+{driver}").difference_update_query(OURS)


def check_file(url: URL) -> None:
    """Refuse an in-memory database.

    Each connection would have its own rows, which would end with it.

    Raises:
        ConfigurationError: the URL names an in-memory database.
    """
    in_memory = not url.database or ":memory:" in url.database or url.query.get("mode") == "memory"
    if url.get_backend_name() == "sqlite" and in_memory:
        raise ConfigurationError(
            "the SQL store keeps rows in a file, sqlite:///FILE; memory: is the store for memory"
        )


def require_file(url: URL, shown: str) -> None:
    """Refuse a missing SQLite file, so that a misspelt name does not create a new store.

    Args:
        url: of the database.
        shown: the same, for messages.

    Raises:
        StoreNotReadyError: the file does not exist.
    """
    file = Path(str(url.database))
    # If the folder is missing too, SQLite creates nothing, and reports that.
    if "uri" not in url.query and file.parent.is_dir() and not file.exists():
        raise StoreNotReadyError(f"{shown}: {NO_FILE}")


def shown(url: URL, tables: Tables) -> str:
    """Return the database and the tables' namespace, for messages; no password, no query."""
    place = url.set(query={}).render_as_string()
    schema = f"{tables.schema}." if tables.schema else ""
    return f"{place} ({schema}{tables.namespace}_*)"


WAYS_TO_A_TOKEN = (
    "entra=True takes the default credential of azure-identity, which is not installed: "
    "python -m pip install azure-identity, or pass a credential"
)
TLS = {"psycopg": "sslmode", "asyncpg": "ssl"}


def safe_for_tokens(url: URL) -> URL:
    """Return the URL with encryption required, because a token is sent to the server in clear."""
    name = TLS[url.get_driver_name()]
    return url if name in url.query else url.update_query_dict({name: "require"})
