"""Configurations that are refused, and what is said of each; never a secret."""

from datetime import timedelta
from typing import Any

import pytest

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.backends import BACKENDS
from eventhub_checkpoints.stores.configuration import read_configuration

SECRET = "c2VjcmV0"
BLOB = {"backendType": "AzureBlob", "namespace": "positions"}
CASSANDRA = {"backendType": "Cassandra", "cassandra": {"cluster": "localhost:9042"}}
SQL = {"backendType": "Sql", "sql": {"url": "sqlite:///positions.db"}}
MEMORY = {"backendType": "Memory"}
CUSTOM = {"backendType": "my_stores.consul.ConsulStore"}


def refused(mapping: Any, credential: Any = None, **keywords: Any) -> str:
    with pytest.raises(ConfigurationError) as failure:
        read_configuration(mapping, credential, keywords)
    assert SECRET not in str(failure.value)
    return str(failure.value)


def with_(base: dict[str, Any], table: str, **values: Any) -> dict[str, Any]:
    return {**base, table: {**base.get(table, {}), **values}}


def test_two_credentials_are_refused() -> None:
    said = refused(with_(SQL, "sql", password=SECRET), "another")
    assert said == "the mapping has a credential, and so has credential=; pass one of them"


@pytest.mark.parametrize(
    ("mapping", "keywords", "said"),
    [
        (
            {**MEMORY, "rwTimeout": "5s"},
            {"write_timeout": 6},
            "write_timeout is given twice, in the mapping and as a keyword argument; give it once",
        ),
        (
            {**MEMORY, "rwTimeout": "5s", "settings": {"operation_timeout": 6}},
            {},
            "operation_timeout is given twice, by rwTimeout and in settings; give it once",
        ),
        (
            {**CUSTOM, "namespace": "a", "settings": {"namespace": "b"}},
            {},
            "namespace is given twice, in settings and also as a key; give it once",
        ),
    ],
)
def test_what_is_said_in_two_ways_is_refused(mapping: Any, keywords: Any, said: str) -> None:
    assert refused(mapping, **keywords) == said


@pytest.mark.parametrize("name", ["frequency", "countThreshold", "timeThreshold"])
def test_a_setting_of_the_policy_is_refused_with_its_place(name: str) -> None:
    said = refused({**MEMORY, name: "15s"})
    assert said == f"{name} is a setting of the saving policy, not of the store; leave it out"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (
            {"iothub-react": {"checkpointing": {"storage": BLOB}}},
            "iothub-react is around the store's table: "
            "pass mapping['iothub-react']['checkpointing']['storage']",
        ),
        (
            {"checkpointing": {"frequency": "15s", "storage": BLOB}},
            "checkpointing is around the store's table: pass mapping['checkpointing']['storage']",
        ),
        (
            {"frequency": "15s", "storage": BLOB},
            "storage is around the store's table: pass mapping['storage']",
        ),
        (
            {"title": "orders", "hub": {"name": "orders"}, "checkpoints": BLOB},
            "checkpoints is around the store's table: pass mapping['checkpoints']",
        ),
        (
            {"tool": {"consumer": {"key": SECRET}, "my-app": {"store": {"backendType": ""}}}},
            "tool is around the store's table: pass mapping['tool']['my-app']['store']",
        ),
    ],
)
def test_a_table_around_the_stores_says_which_to_pass(mapping: Any, said: str) -> None:
    assert refused(mapping) == said


def test_a_table_beside_the_stores_keys_is_an_unknown_key() -> None:
    said = refused({**MEMORY, "checkpoints": BLOB})
    assert said.startswith("checkpoints is not a setting; expected one of ")


NAMES = [backend.type_name for backend in BACKENDS]
TYPES = f"{', '.join(NAMES)} or the path package.module.Class"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({}, f"backendType is missing; expected {TYPES}"),
        ({"backendType": ""}, f"backendType is missing; expected {TYPES}"),
        (
            {"backendType": "Casandra"},
            "backendType is 'Casandra'; expected Cassandra, Memory, AzureBlob, AzureTable, Sql, ",
        ),
        ({"backendType": "CosmosDbSql"}, "backendType is 'CosmosDbSql'; expected Memory, "),
        ({"backendType": "my store.Class"}, "backendType is 'my store.Class'; expected "),
        ({"backendType": ".Class"}, "backendType is '.Class'; expected "),
        ({"backendType": 5}, "backendType is of type int; expected a string"),
    ],
)
def test_a_type_that_is_none_lists_those_that_are(mapping: Any, said: str) -> None:
    assert refused(mapping).startswith(said)


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (
            {**MEMORY, "namspace": "x"},
            "namspace is not a setting; expected one of namespace, backendType, rwTimeout, create, "
            "settings, azureblob, azuretable, cassandra, sql, redis",
        ),
        (
            {**MEMORY, "BACKENDTYPE": "x"},
            "BACKENDTYPE is not a setting; expected one of backendType, namespace, ",
        ),
        ({**MEMORY, 5: "x"}, "5 is not a setting; expected one of backendType, "),
        (
            with_(CASSANDRA, "cassandra", clustr="x"),
            "cassandra.clustr is not a setting; expected one of cluster, replicationFactor, "
            "username, "
            "password, datacenter",
        ),
        (
            with_(MEMORY, "azureblob", accountKey=SECRET),
            "azureblob.accountKey is not a setting; expected one of account, key, ",
        ),
        (with_(MEMORY, "redis", ulr=SECRET), "redis.ulr is not a setting; expected one of url, "),
        (
            {**MEMORY, "settings": {"write_timout": 5}},
            "settings.write_timout is not a setting; expected one of write_timeout, "
            "operation_timeout, "
            "keep_unconfirmed, max_concurrency, on_stale",
        ),
        (
            {**MEMORY, "settings": {"name_case": "lower"}},
            "settings.name_case is not a setting; expected one of ",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_first(mapping: Any, said: str) -> None:
    assert refused(mapping).startswith(said)


RW = "expected a duration with its unit, such as 30s, 0.5m or PT30S, from 1s to 60s"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({**MEMORY, "rwTimeout": 5}, f"rwTimeout is 5; {RW}"),
        ({**MEMORY, "rwTimeout": 0.5}, f"rwTimeout is 0.5; {RW}"),
        ({**MEMORY, "rwTimeout": "5"}, f"rwTimeout is '5'; {RW}"),
        ({**MEMORY, "rwTimeout": "999ms"}, f"rwTimeout is '999ms'; {RW}"),
        ({**MEMORY, "rwTimeout": "61s"}, f"rwTimeout is '61s'; {RW}"),
        ({**MEMORY, "rwTimeout": "9" * 400 + "s"}, "rwTimeout is '999"),
        ({**MEMORY, "rwTimeout": timedelta(seconds=61)}, f"rwTimeout is of type timedelta; {RW}"),
        ({**MEMORY, "rwTimeout": ["5s"]}, f"rwTimeout is of type list; {RW}"),
        ({**MEMORY, "namespace": 5}, "namespace is of type int; expected a string"),
        ({**MEMORY, "create": "true"}, "create is of type str; expected true or false"),
        ({**MEMORY, "create": 1}, "create is of type int; expected true or false"),
        ({**MEMORY, "settings": "x"}, "settings is of type str; expected a table"),
        ({**MEMORY, "redis": SECRET}, "redis is of type str; expected a table with url, password"),
        (with_(MEMORY, "azureblob", key=5), "azureblob.key is of type int; expected a string"),
        (with_(MEMORY, "azureblob", key=[SECRET]), "azureblob.key is of type list; "),
        (
            with_(MEMORY, "azureblob", account=SECRET),
            "azureblob.account cannot be used as it is; expected the name of a storage account",
        ),
        (
            with_(MEMORY, "azureblob", account="evil.example/"),
            "azureblob.account cannot be used as it is",
        ),
        (with_(MEMORY, "azureblob", protocol="ftp"), "azureblob.protocol cannot be used as it is"),
        (
            with_(MEMORY, "azureblob", endpoint=f"https://u:{SECRET}@host"),
            "azureblob.endpoint cannot be used as it is; expected https://HOST, without container",
        ),
        (with_(MEMORY, "azureblob", useEmulator="no"), "azureblob.useEmulator is of type str; "),
        (
            with_(MEMORY, "cassandra", replicationFactor=0),
            "cassandra.replicationFactor is 0; expected a whole number, 1 or more",
        ),
        (
            with_(MEMORY, "cassandra", replicationFactor=True),
            "cassandra.replicationFactor is of type bool; expected a whole number, 1 or more",
        ),
        (
            with_(MEMORY, "cassandra", cluster=f"cassandra:{SECRET}@db"),
            "cassandra.cluster cannot be used as it is; expected 'host:9042', or several",
        ),
        (with_(MEMORY, "cassandra", cluster="a,,b"), "cassandra.cluster cannot be used"),
        (with_(MEMORY, "cassandra", cluster=["a", "b"]), "cassandra.cluster is of type list; "),
        (
            with_(MEMORY, "sql", url=f"redis://:{SECRET}@db"),
            "sql.url cannot be used as it is; expected sqlite:///FILE, postgresql://USER:",
        ),
        (
            with_(MEMORY, "redis", url=f"postgresql://u:{SECRET}@db"),
            "redis.url cannot be used as it is; expected redis://HOST:6379/0 or rediss://HOST:",
        ),
        (with_(MEMORY, "sql", entra="yes"), "sql.entra is of type str; expected true or false"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_path(mapping: Any, said: str) -> None:
    assert refused(mapping).startswith(said)


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (
            {"backendType": "AzureBlob", "azureblob": {"useEmulator": True}},
            "namespace is missing; expected the name of the container",
        ),
        (BLOB, "azureblob.account is missing; expected the name of a storage account"),
        (
            with_(BLOB, "azureblob", endpoint="https://host", key=SECRET),
            "azureblob.account is missing",
        ),
        ({"backendType": "Cassandra"}, "cassandra.cluster is missing; expected 'host:9042'"),
        (
            with_(CASSANDRA, "cassandra", username="app"),
            "cassandra.password is missing; expected a string, because username is set",
        ),
        (with_(CASSANDRA, "cassandra", password=SECRET), "cassandra.username is missing"),
        ({"backendType": "Sql"}, "sql.url is missing; expected sqlite:///FILE, postgresql://USER:"),
        (
            {"backendType": "Redis", "redis": {}},
            "redis.url is missing; expected redis://HOST:6379/0 or ",
        ),
    ],
)
def test_what_a_backend_needs_is_named(mapping: Any, said: str) -> None:
    assert refused(mapping).startswith(said)


def test_tables_that_are_nested_without_end_are_refused() -> None:
    table: dict[str, Any] = {"backendType": "Memory"}
    for _ in range(5000):
        table = {"a": table}
    assert "a is not a setting" in refused(table)
