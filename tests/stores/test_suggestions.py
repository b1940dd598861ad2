"""What was probably meant by a URL that no store takes."""

from pathlib import PurePosixPath

import pytest

from eventhub_checkpoints.stores.suggestions import CUSTOM, did_you_mean

SECRET = "c2VjcmV0"
POSTGRESQL = "postgresql://USER:PASSWORD@HOST/DATABASE"
MYSQL = "mysql://USER:PASSWORD@HOST/DATABASE"
MEANT = {
    f"postgres://me:{SECRET}@host/db": POSTGRESQL,
    f"postgres+asyncpg://me:{SECRET}@host/db": POSTGRESQL,
    f"redis+tls://:{SECRET}@host": "rediss://HOST:6380/0",
    f"jdbc:postgresql://host/db?password={SECRET}": POSTGRESQL,
    "JDBC:mysql://host/db": MYSQL,
    "jdbc:sqlite:rows.db": "sqlite:///rows.db",
    "checkpoints.db": "sqlite:///checkpoints.db",
    "/var/lib/checkpoints.db": "sqlite:////var/lib/checkpoints.db",
    "./data/checkpoints": "sqlite:///./data/checkpoints",
    "C:\\data\\checkpoints.db": "sqlite:///C:\\data\\checkpoints.db",
    "sqlite://checkpoints.db": "sqlite:///checkpoints.db",
    "sqlite:checkpoints.db": "sqlite:///checkpoints.db",
    "sqlite3:///checkpoints.db": "sqlite:///checkpoints.db",
    "file:///var/lib/checkpoints.db": "sqlite:////var/lib/checkpoints.db",
    "valkey://host": "redis://HOST:6379/0",
    "cache.example.org:6380": "rediss://HOST:6380/0",
    f"cache.example.org:6380,password={SECRET},ssl=True": "rediss://:PASSWORD@HOST:6380/0",
    "localhost:5432": POSTGRESQL,
    "redis:6379": "redis://HOST:6379/0",
    "redis:/host": "redis://HOST:6379/0",
    "postgresql:database": POSTGRESQL,
    "Sqlite://": "sqlite:///FILE",
    "postgres": POSTGRESQL,
    "Memory": "memory:NAME",
    "account.blob.core.windows.net/container": "https://ACCOUNT.blob.core.windows.net/CONTAINER",
    "account.Blob.core.UsGovCloudAPI.net/c": "https://ACCOUNT.blob.core.usgovcloudapi.net/CONTAINER",
    "account.z01.blob.storage.azure.net": "https://ACCOUNT.blob.core.windows.net/CONTAINER",
    "abfss://container@account.dfs.core.windows.net/x": (
        "https://ACCOUNT.blob.core.windows.net/CONTAINER"
    ),
}
NOTHING = [
    "",
    ":",
    "gopher://host/x",
    "no-module:factory",
    "host",
    "h:1",
    "mysql://host/db",
    "/",
    "//",
    ".",
]


@pytest.mark.parametrize("url", MEANT)
def test_what_was_meant_is_shown_without_a_secret(url: str) -> None:
    assert did_you_mean(url) == f"; did you mean {MEANT[url]}?"


@pytest.mark.parametrize("url", NOTHING)
def test_nothing_is_said_where_it_is_unclear(url: str) -> None:
    assert did_you_mean(url) == ""


@pytest.mark.parametrize("own", [None, ("redis",)])
def test_a_connection_string_is_told_from_a_url(own: tuple[str, ...] | None) -> None:
    said = did_you_mean(f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}", own)
    assert said.endswith(
        "goes to BlobCheckpointStore.from_connection_string or "
        "TableCheckpointStore.from_connection_string"
    )
    assert did_you_mean(f"TableEndpoint=https://a;SharedAccessSignature={SECRET}", own) == said
    assert SECRET not in said
    said = did_you_mean(f"Endpoint=sb://ns/;SharedAccessKey={SECRET}", own)
    assert said.endswith("is the connection string of an event hub, not the URL of a store")
    assert SECRET not in said


def test_a_path_is_the_file_of_a_url() -> None:
    assert did_you_mean(PurePosixPath("/x/rows")) == "; did you mean sqlite:////x/rows?"
    assert did_you_mean(5) == did_you_mean(None) == ""


def test_a_path_with_a_secret_is_not_repeated() -> None:
    assert did_you_mean(f"/tmp/token:{SECRET}") == "; did you mean sqlite:///FILE?"


@pytest.mark.parametrize(
    ("scheme", "title"),
    [
        ("mssql", "SQL Server"),
        ("mssql+pyodbc", "SQL Server"),
        ("jdbc:sqlserver", "SQL Server"),
        ("oracle", "Oracle Database"),
    ],
)
def test_a_database_without_a_store_is_told_and_no_other_is_suggested(
    scheme: str, title: str
) -> None:
    said = did_you_mean(f"{scheme}://me:{SECRET}@host/db")
    assert said == f"; there is no store for {title}, but {CUSTOM}"


def test_a_url_of_another_store_is_opened_by_url_and_one_of_the_same_needs_no_hint() -> None:
    sql = ("sqlite", "postgresql", "mysql", "mariadb")
    for url in ("postgresql://host/db", "postgresql+asyncpg://host/db"):
        assert did_you_mean(url, ["redis"]) == f"; did you mean open_store with {POSTGRESQL}?"
        assert did_you_mean(url, sql) == ""
    assert did_you_mean("redis+tls://host", ["redis", "rediss"]) == (
        "; did you mean rediss://HOST:6380/0?"
    )


def test_another_store_is_opened_by_url() -> None:
    said = did_you_mean("checkpoints.db", ("redis",))
    assert said == "; did you mean open_store with sqlite:///checkpoints.db?"
    assert did_you_mean("valkey://host", ("redis",)) == "; did you mean redis://HOST:6379/0?"
