"""Targets: URLs, connection strings, configurations and messages, which users and drivers write."""

import os
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from eventhub_checkpoints import open_store
from eventhub_checkpoints._shared.secrets import holds_secret, masked, quoted
from eventhub_checkpoints.cli.target import CONFIGURATION, read_profile
from eventhub_checkpoints.cli.target import Target as CommandTarget
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.processing.start_position import refused_position
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.credentials import credential_of
from eventhub_checkpoints.records import Checkpoint, Proposal, Scope
from eventhub_checkpoints.stores.azure_storage.account import parse_connection_string
from eventhub_checkpoints.stores.blob.options import container_url
from eventhub_checkpoints.stores.blob.protocol import SERVICE
from eventhub_checkpoints.stores.cassandra.url import Address as CassandraAddress
from eventhub_checkpoints.stores.configuration import read_configuration
from eventhub_checkpoints.stores.redis.url import RedisUrl, object_id
from eventhub_checkpoints.stores.sql.url import driver_url, parsed, shown, tables_of
from eventhub_checkpoints.stores.table.options import table_url
from fuzzing.target import NotJsonError, Target, json_of, samples, text_of

PASSWORD = "pa55word-of-this-URL"


def store_url(data: bytes) -> None:
    """Open a store by a URL, and show it; nothing connects."""
    text = text_of(data)
    refusals = 0
    for read in PARSERS:
        try:
            read(text)
        except CheckpointStoreError as error:
            str(error).encode("utf-8", "surrogatepass")
            refusals += 1
    if refusals == len(PARSERS):
        raise NotJsonError


def redis_address(url: str) -> None:
    """Parse a URL of Redis, and take it apart again."""
    found = RedisUrl.parse(url)
    repr((found.has_password, found.without_user()))


def sql_address(url: str) -> None:
    """Parse a URL of a SQL database for both kinds of drivers."""
    found = parsed(url)
    for variant in ("sync", "async"):
        _, dialect = driver_url(found, variant)
        shown(found, tables_of(found, dialect, None, None))


BUILT_IN = (
    "memory",
    "http",
    "table",
    "sqlite",
    "postgresql",
    "mysql",
    "mariadb",
    "redis",
    "cassandra",
)


def opened(url: str) -> None:
    """Open a store of this package; any other URL would import what it names."""
    if url.lower().startswith(BUILT_IN):
        open_store(url).close()


PARSERS: tuple[Callable[[str], object], ...] = (
    container_url,
    table_url,
    CassandraAddress.parse,
    redis_address,
    sql_address,
    opened,
)


def connection_string(data: bytes) -> None:
    """Parse connection strings of hubs and of storage accounts, and credentials."""
    text = text_of(data)
    reads: list[Callable[[], object]] = [
        lambda: HubAddress.from_connection_string(text).scope(),
        lambda: HubAddress.from_credential(text, text, "DefaultAzureCredential").scope(),
        lambda: parse_connection_string(text, SERVICE),
        lambda: credential_of(text),
        lambda: CommandTarget(hub=text).scope,
        lambda: object_id(text),
    ]
    for read in reads:
        with suppress(CheckpointStoreError):
            read()


def messages(data: bytes) -> None:
    """Mask secrets in a message of a server or driver."""
    text = text_of(data)
    quoted(text)
    masked(text)
    holds_secret(text)
    refused_position(ValueError(text))


def configuration(data: bytes) -> None:
    """Read a configuration of a store, and open what it names."""
    mapping = toml_of(data)
    store = read_configuration(mapping, None, {})
    if not store.class_path:
        open_store(mapping).close()


def toml_of(data: bytes) -> dict[str, Any]:
    """Return an input as TOML.

    Raises:
        NotJsonError: it is not.
    """
    try:
        return tomllib.loads(text_of(data))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        raise NotJsonError from None


def profile(data: bytes) -> None:
    """Read a file of profiles."""
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        os.environ[CONFIGURATION] = str(Path(file.name))
        CommandTarget(**read_profile("orders"))


def sdk_rows(data: bytes) -> None:
    """Read dicts as the SDK, or a program in its place, passes them."""
    row = json_of(data)
    for read in (
        lambda: Scope.from_dict(row),
        lambda: Proposal.from_dict(row, "etag"),
        lambda: Checkpoint.from_dict(row, "version"),
    ):
        with suppress(CheckpointStoreError):
            read()


KEY = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0"
TABLE = """backendType = "AzureBlob"
namespace = "checkpoints"
rwTimeout = "5s"
create = false
[azureblob]
account = "account"
key = "c2VjcmV0"
[settings]
max_concurrency = 8
"""
PROFILES = """[profiles.orders]
hub = "ns.servicebus.windows.net/orders"
group = "billing"
timeout = 5
expires_after = 30.5
[profiles.orders.store]
backendType = "Memory"
"""
TARGETS = [
    Target(
        "store-url",
        store_url,
        samples(
            "memory:name",
            "https://account.blob.core.windows.net/container?sv=2019&sig=c2lnbmF0dXJl",
            "http://127.0.0.1:10000/devstoreaccount1/container",
            "sqlite:////tmp/never/opened.db?namespace=a",
            "postgresql://user:password@host:5432/database?schema=a&connect_timeout=5",
            "table+https://account.table.core.windows.net/table?sig=a%2Bb",
            "mysql+pymysql://user:password@host:3306/database",
            "redis://user:password@[::1]:6379/0?namespace=a&socket_timeout=5",
            "rediss://host?ssl_cert_reqs=none",
            "cassandra://user:password@host:9042,[::1]:9043/keyspace?datacenter=a",
        ),
    ),
    Target(
        "connection-string",
        connection_string,
        samples(
            f"Endpoint=sb://ns.servicebus.windows.net/;{KEY};EntityPath=orders",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0;"
            "EndpointSuffix=core.windows.net",
            "SharedAccessSignature sr=sb%3A%2F%2Fns&sig=c2ln&se=1795514400&skn=name",
            "ns.servicebus.windows.net/orders",
            "e30.eyJvaWQiOiJ1c2VyIn0.c2ln",
        ),
    ),
    Target(
        "messages",
        messages,
        samples(
            f"cannot reach redis://user:{PASSWORD}@host:6379 (Bearer eyJhbGciOiJ.abc)",
            "The supplied offset '4711' is invalid. The last offset in the system is '966'",
            "key=" + "ab+/" * 12 + "==",
        ),
    ),
    Target(
        "configuration",
        configuration,
        samples(
            TABLE,
            'backendType = "Sql"\n[sql]\nurl = "sqlite:////tmp/never/opened.db"\n',
            'backendType = "Cassandra"\nnamespace = "a"\n[cassandra]\ncluster = "h:9042, [::1]:1"\n'
            'replicationFactor = 3\nusername = "u"\npassword = "p"\n',
            'backendType = "Redis"\n[redis]\nurl = "redis://host:6379"\n',
        ),
    ),
    Target("profile", profile, samples(PROFILES)),
    Target(
        "sdk-rows",
        sdk_rows,
        samples(
            {
                "fully_qualified_namespace": "ns.servicebus.windows.net",
                "eventhub_name": "orders",
                "consumer_group": "$Default",
                "partition_id": "0",
                "owner_id": "a",
                "etag": None,
                "offset": "4711",
                "sequence_number": 7,
            }
        ),
    ),
]
