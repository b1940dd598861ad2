"""URLs of SQL stores: database, driver, and options of the query."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import LONGEST_OPTION, nearest_first
from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError
from eventhub_checkpoints.stores.backends import SQL
from eventhub_checkpoints.stores.connections import given_once
from eventhub_checkpoints.stores.sql.dialect import Dialect
from eventhub_checkpoints.stores.sql.mysql import Mysql
from eventhub_checkpoints.stores.sql.postgresql import Postgresql
from eventhub_checkpoints.stores.sql.sqlite import Sqlite
from eventhub_checkpoints.stores.sql.tables import Tables
from eventhub_checkpoints.stores.suggestions import did_you_mean

DIALECTS: dict[str, Dialect] = {
    scheme.name: dialect
    for dialect in (Sqlite(), Postgresql(), Mysql())
    for scheme in dialect.service.schemes
}
"""By the name that SQLAlchemy has for them."""
OURS = ("namespace", "schema", "audience")
NAMESPACE = "eventhub_checkpoints"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
"""Short enough that PostgreSQL truncates no table name (63 bytes)."""
FORMS = (
    f"expected {' or '.join(service.form for service in SQL.services)}, "
    "special characters percent-encoded"
)
UNREADABLE = f"the store URL cannot be read; {FORMS}"
OTHER_URL = re.compile("://[^/]*:")
"""A URL with a password or port, inside a part of another URL."""
NO_PORT = (
    "the port in the store URL is not a number from 1 to 65535; expected "
    "postgresql://USER:PASSWORD@HOST:5432/DATABASE, special characters percent-encoded"
)


def parsed(url: str | URL) -> URL:
    """Parse a URL.

    Raises:
        ConfigurationError: it is invalid; the message does not repeat it, because it may hold a
            password.
    """
    if isinstance(url, str) and url != url.strip():
        raise ConfigurationError(
            "the store URL begins or ends with white space, such as the line break of the file "
            "that it was read from: strip it"
        )
    try:
        store_url = make_url(url)
    except ArgumentError:
        raise ConfigurationError(f"{UNREADABLE}{did_you_mean(str(url), SQL.schemes)}") from None
    except ValueError:
        # The error repeats the port, which is part of a password that contains an @.
        raise ConfigurationError(NO_PORT) from None
    if store_url.port is not None and not 0 < store_url.port < 65536:
        raise ConfigurationError(NO_PORT)
    if store_url.get_backend_name() != "sqlite" and "@" in f"{store_url.host}{store_url.database}":
        # A slash in the password ended the host; the rest of the password would be shown.
        raise ConfigurationError(UNREADABLE)
    parts = (store_url.host, store_url.database, *store_url.query)
    if any(holds_secret(part) or OTHER_URL.search(part) for part in parts if part):
        raise ConfigurationError(
            f"a part of the store URL is a secret that does not belong there; {FORMS}"
        )
    if store_url.get_backend_name() == "sqlite":
        if store_url.username or store_url.password:
            raise ConfigurationError("a SQLite file has no user; expected sqlite:///FILE")
        if store_url.host:
            meant = did_you_mean(str(url), SQL.schemes)
            raise ConfigurationError(f"a SQLite file has no host; expected sqlite:///FILE{meant}")
    return store_url


def driver_url(url: URL, variant: str) -> tuple[URL, Dialect]:
    """Return the URL with a sync or async driver and without the store's own options.

    Raises:
        ConfigurationError: the database or driver is not supported, or not shared.
        MissingDriverError: the driver is not installed.
    """
    backend, _, driver = url.drivername.partition("+")
    dialect = DIALECTS.get(backend)
    if dialect is None:
        known = ", ".join(f"{name}://" for name in DIALECTS)
        raise ConfigurationError(
            f"{backend}:// is not supported; the SQL store takes {known}"
            f"{did_you_mean(f'{backend}://', SQL.schemes)}"
        )
    drivers = dialect.drivers[variant]
    driver = driver or drivers[0]
    if driver not in drivers:
        known = " or ".join(f"{backend}+{name}://" for name in drivers)
        raise ConfigurationError(
            f"{url.drivername}:// cannot be used by the {variant} store; it takes {known}, "
            f"or {backend}:// for the first of these"
        )
    dialect.check_url(url)
    if driver != "pysqlite" and find_spec(driver) is None:
        if driver in dialect.service.other_drivers:
            raise MissingDriverError(f"{backend}+{driver}:// needs: python -m pip install {driver}")
        raise MissingDriverError.of_extra(f"{backend}+{driver}://", dialect.service.extra)
    return url.set(drivername=f"{backend}+{driver}").difference_update_query(OURS), dialect


def check_options(query: Mapping[str, Any], dialect: Dialect, driver: str) -> None:
    """Refuse options that the driver would refuse at the first use, or ignore.

    Raises:
        ConfigurationError: there is one; the message lists the known options, closest first.
    """
    known = [*OURS, *dialect.options(driver, query)]
    unknown = [name for name in query if name not in known]
    if not unknown:
        return
    if "@" in str(query) or not all(
        name.isidentifier() and len(name) <= LONGEST_OPTION for name in unknown
    ):
        # An @ and a ? in the password began host and query; the rest of it would be shown.
        raise ConfigurationError(
            "the query of the store URL cannot be read; expected names and values, and in the "
            "password special characters percent-encoded"
        )
    name, listed = unknown[0], ", ".join(nearest_first(unknown[0], known))
    raise ConfigurationError(
        f"{name} in the store URL is not an option of the store or of {driver}; expected one of "
        f"{listed}"
    )


def tables_of(url: URL, dialect: Dialect, namespace: str | None, schema: str | None) -> Tables:
    """Return the tables' names, from arguments or the URL's query.

    Raises:
        ConfigurationError: the two differ, or a name is invalid.
    """
    namespace = chosen_name(url, "namespace", namespace) or NAMESPACE
    schema = chosen_name(url, "schema", schema)
    if schema and not dialect.has_schemas:
        raise ConfigurationError(
            f"{dialect.service.title} has no schemas; leave schema out, or use namespace"
        )
    return Tables(namespace, schema, dialect.quote)


def chosen_name(url: URL, name: str, argument: str | None) -> str | None:
    """Return a name from its argument or the URL's query; None if it is in neither."""
    value = given_once(name, argument, url.query.get(name))
    if value is not None and not (isinstance(value, str) and NAME.fullmatch(value)):
        raise ConfigurationError(
            f"{name} is {quoted(value)}; expected letters, digits and _, at most 48, no digit first"
        )
    return value


def host_of(url: URL) -> str:
    """Return the first server of a URL, with its port; `""` if it is a socket or a file.

    libpq accepts several: as options `host`, or as one with commas.
    """
    listed = url.query.get("host", "")
    first = url.host or (listed if isinstance(listed, str) else listed[0])
    return first.partition(",")[0]


def shown(url: URL, tables: Tables) -> str:
    """Return the database and the tables' namespace, for messages; no password, no query."""
    database = url.set(query={}).render_as_string()
    schema = f"{tables.schema}." if tables.schema else ""
    return f"{database} ({schema}{tables.namespace}_*)"
