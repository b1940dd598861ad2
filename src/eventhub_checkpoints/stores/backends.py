"""The table of this package's backends: their names, URLs and extras.

A row is all that code outside of a backend's folder knows of it: the suggestions of `open_store`,
the keys of a configuration and the URLs of tables of dead letters follow it, and
`tests/stores/test_backends.py` compares entry points, extras and documentation with it. Nothing of
a backend is imported here: the registry reaches its class by entry point.

A scheme names the service; a driver or a transport may follow a `+`, as in `postgresql+asyncpg:`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from eventhub_checkpoints.errors import MissingDriverError


class Scheme(NamedTuple):
    """A scheme of URLs.

    Attributes:
        name: without driver or transport.
        form: what a URL looks like, with placeholders.
        aliases: schemes under which other programs know the service.
        port: the default port of its servers; None if it says nothing about a URL without scheme.
    """

    name: str
    form: str
    aliases: tuple[str, ...] = ()
    port: int | None = None


class Service(NamedTuple):
    """A server or library that keeps rows.

    Attributes:
        title: its name in messages and documentation.
        extra: the extra that installs its driver; `""` if it needs none.
        schemes: of its URLs.
        emulator_port: on which the emulator of a storage account serves it; None for any other.
        other_drivers: that a URL may name after a `+`, and that the extra does not install.
    """

    title: str
    extra: str
    schemes: tuple[Scheme, ...]
    emulator_port: int | None = None
    other_drivers: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """Return what its usual URL looks like."""
        return self.schemes[0].form


class Backend(NamedTuple):
    """A class of stores.

    Attributes:
        name: of its folder in `stores`, and of the public module with the class.
        store: name of the class.
        services: that its stores can use.
        type_name: value of `backendType` in a configuration; in lower case, the name of the
            backend's table there.
        keys: of that table, besides `url` and `password`, with the types of their values; they are
            keyword arguments of the store.
        settings: keyword arguments of the store that `settings` in a configuration may have,
            besides those of every store.
    """

    name: str
    store: str
    services: tuple[Service, ...]
    type_name: str
    keys: Mapping[str, type] = MappingProxyType({})
    settings: tuple[str, ...] = ()

    @property
    def schemes(self) -> dict[str, Scheme]:
        """Return the schemes of all services, by name."""
        return {scheme.name: scheme for service in self.services for scheme in service.schemes}

    def service(self, scheme: str) -> Service:
        """Return the service of a scheme."""
        return next(each for each in self.services if self.schemes[scheme] in each.schemes)


MEMORY = Backend(
    "memory",
    "MemoryCheckpointStore",
    (Service("memory", "", (Scheme("memory", "memory:NAME"),)),),
    "Memory",
)
BLOB = Backend(
    "blob",
    "BlobCheckpointStore",
    (
        Service(
            "Blob Storage",
            "blob",
            (
                Scheme(
                    "https",
                    "https://ACCOUNT.blob.core.windows.net/CONTAINER",
                    ("abfs", "abfss", "wasb", "wasbs", "azure", "az", "blob"),
                ),
                Scheme("http", "http://127.0.0.1:PORT/devstoreaccount1/CONTAINER"),
            ),
            10000,
        ),
    ),
    "AzureBlob",
    settings=("api_version", "secondary_hostname", "name_case", "prefix"),
)
TABLE = Backend(
    "table",
    "TableCheckpointStore",
    (
        Service(
            "Table Storage",
            "table",
            (Scheme("table", "table+https://ACCOUNT.table.core.windows.net/TABLE", ("tables",)),),
            10002,
        ),
    ),
    "AzureTable",
    settings=("api_version", "name_case", "keep_history"),
)
SQL = Backend(
    "sql",
    "SqlCheckpointStore",
    (
        Service("SQLite", "sql", (Scheme("sqlite", "sqlite:///FILE"),)),
        Service(
            "PostgreSQL",
            "postgres",
            (
                Scheme(
                    "postgresql",
                    "postgresql://USER:PASSWORD@HOST/DATABASE",
                    ("postgres", "pg", "pgsql", "psql"),
                    5432,
                ),
            ),
            other_drivers=("asyncpg",),
        ),
        Service(
            "MySQL",
            "mysql",
            (
                Scheme("mysql", "mysql://USER:PASSWORD@HOST/DATABASE", port=3306),
                Scheme("mariadb", "mariadb://USER:PASSWORD@HOST/DATABASE"),
            ),
        ),
    ),
    "Sql",
    keys={"schema": str, "entra": bool, "audience": str},
)
REDIS = Backend(
    "redis",
    "RedisCheckpointStore",
    (
        Service(
            "Redis",
            "redis",
            (
                Scheme("redis", "redis://HOST:6379/0", ("valkey", "keydb"), 6379),
                Scheme(
                    "rediss", "rediss://HOST:6380/0", ("valkeys", "redis+ssl", "redis+tls"), 6380
                ),
            ),
        ),
    ),
    "Redis",
    keys={"entra": bool, "audience": str},
    settings=("allow_eviction",),
)
CASSANDRA = Backend(
    "cassandra",
    "CassandraCheckpointStore",
    (
        Service(
            "Cassandra",
            "cassandra",
            (
                Scheme(
                    "cassandra", "cassandra://HOST/KEYSPACE", ("scylla", "scylladb", "cql"), 9042
                ),
            ),
        ),
    ),
    "Cassandra",
    settings=("replication", "connect_timeout"),
)
BACKENDS = (MEMORY, BLOB, TABLE, SQL, REDIS, CASSANDRA)
SCHEMES = {name: scheme for backend in BACKENDS for name, scheme in backend.schemes.items()}
UNSUPPORTED = {"mssql": "SQL Server", "sqlserver": "SQL Server", "oracle": "Oracle Database"}
"""Databases for which no backend exists, by the schemes of other programs."""


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case and without a driver; `""` if there is none."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower().partition("+")[0] if colon else ""


@contextmanager
def missing_driver_of(url: str) -> Iterator[None]:
    """Name the extra of a URL's service if this block imports a backend without its driver.

    The backend's own error does not know the URL: of several extras it names the smallest.
    """
    try:
        yield
    except MissingDriverError as error:
        scheme, beginning = scheme_of(url), url.partition(":")[0]
        if error.extra is None or scheme not in SCHEMES:
            raise
        service = next(each for each in BACKENDS if scheme in each.schemes).service(scheme)
        driver = beginning.partition("+")[2]
        others = [driver] if driver in service.other_drivers else []
        raise MissingDriverError.of_extra(f"{beginning}://", service.extra, *others) from None
