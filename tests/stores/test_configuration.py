"""A configuration as a mapping: what it opens."""

from datetime import timedelta
from typing import Any

import pytest

from eventhub_checkpoints.stores.configuration import LEASE_NOTE, Opening, read_configuration

SECRET = "c2VjcmV0"
BLOB = {"backendType": "AzureBlob", "namespace": "positions"}
ACCOUNT = {"account": "orders", "key": SECRET}
CASSANDRA = {"backendType": "Cassandra", "cassandra": {"cluster": "localhost:9042"}}
SQL = {"backendType": "Sql", "sql": {"url": "sqlite:///positions.db"}}
REDIS = {"backendType": "Redis", "redis": {"url": "redis://localhost"}}
MEMORY = {"backendType": "Memory"}
CUSTOM = {"backendType": "my_stores.consul.ConsulStore"}


def read(mapping: Any, credential: Any = None, **keywords: Any) -> Opening:
    return read_configuration(mapping, credential, keywords)


def with_(base: dict[str, Any], table: str, **values: Any) -> dict[str, Any]:
    return {**base, table: {**base.get(table, {}), **values}}


@pytest.mark.parametrize(
    ("mapping", "url"),
    [
        (MEMORY, "memory:"),
        ({**MEMORY, "namespace": "mine"}, "memory:mine"),
        (with_(BLOB, "azureblob", **ACCOUNT), "https://orders.blob.core.windows.net/positions"),
        (
            with_(BLOB, "azureblob", **ACCOUNT, protocol="http"),
            "http://orders.blob.core.windows.net/positions",
        ),
        (
            with_(BLOB, "azureblob", endpoint="https://orders.blob.core.chinacloudapi.cn/"),
            "https://orders.blob.core.chinacloudapi.cn/positions",
        ),
        (
            with_(BLOB, "azureblob", useEmulator=True),
            "http://127.0.0.1:10000/devstoreaccount1/positions",
        ),
        (
            with_(
                BLOB, "azureblob", useEmulator=True, endpoint="http://azurite:1/devstoreaccount1"
            ),
            "http://azurite:1/devstoreaccount1/positions",
        ),
        (
            with_({**BLOB, "namespace": "a?sig=b"}, "azureblob", **ACCOUNT),
            "https://orders.blob.core.windows.net/a%3Fsig%3Db",
        ),
        (CASSANDRA, "cassandra://localhost:9042/"),
        (
            with_(CASSANDRA, "cassandra", cluster="db-1:9042 , db_2,[::1]:9043"),
            "cassandra://db-1:9042,db_2,[::1]:9043/",
        ),
        (
            with_({**CASSANDRA, "namespace": "My-Job"}, "cassandra", datacenter="west europe"),
            "cassandra://localhost:9042/my_job?datacenter=west%20europe",
        ),
        (SQL, "sqlite:///positions.db"),
        (with_(SQL, "sql", url="postgresql+psycopg://db/x"), "postgresql+psycopg://db/x"),
        (with_(SQL, "sql", url="mysql://db/x"), "mysql://db/x"),
        (with_(SQL, "sql", url="mariadb+aiomysql://db/x"), "mariadb+aiomysql://db/x"),
        (REDIS, "redis://localhost"),
    ],
)
def test_a_mapping_names_a_url(mapping: Any, url: str) -> None:
    assert read(mapping).url == url


@pytest.mark.parametrize("spelled", ["AZUREBLOB", "azureblob", "AzureBlob"])
def test_the_type_is_the_same_in_every_case(spelled: str) -> None:
    mapping = with_({**BLOB, "backendType": spelled}, "azureblob", useEmulator=True)
    assert read(mapping).url.endswith("/positions")


@pytest.mark.parametrize(
    ("mapping", "credential"),
    [
        (
            with_(BLOB, "azureblob", **ACCOUNT),
            {"account_name": "orders", "account_key": SECRET},
        ),
        (with_(BLOB, "azureblob", account="orders"), None),
        (with_(BLOB, "azureblob", **ACCOUNT, useEmulator=True), None),
        (with_(CASSANDRA, "cassandra", username="app", password=SECRET), ("app", SECRET)),
        (with_(CASSANDRA, "cassandra", username="", password=""), None),
        (with_(SQL, "sql", password=SECRET), SECRET),
        (with_(REDIS, "redis", password=SECRET), SECRET),
    ],
)
def test_the_secret_is_the_credential(mapping: Any, credential: Any) -> None:
    opening = read(mapping)
    assert opening.credential == credential
    assert SECRET not in repr(opening)


def test_a_credential_may_come_from_the_caller() -> None:
    assert read(with_(BLOB, "azureblob", account="orders"), "token").credential == "token"


@pytest.mark.parametrize(
    ("mapping", "settings"),
    [
        (MEMORY, {}),
        ({**SQL, "namespace": "orders"}, {"namespace": "orders"}),
        (with_(SQL, "sql", schema="app", entra=True), {"schema": "app", "entra": True}),
        (
            {**with_(REDIS, "redis", entra=True), "namespace": "x"},
            {"entra": True, "namespace": "x"},
        ),
        ({**MEMORY, "rwTimeout": "5s"}, {"operation_timeout": 5.0, "write_timeout": 5.0}),
        (
            {**MEMORY, "rwTimeout": timedelta(seconds=6)},
            {"operation_timeout": 6.0, "write_timeout": 6.0},
        ),
        ({**MEMORY, "settings": {"max_concurrency": 4}}, {"max_concurrency": 4}),
        (
            {**MEMORY, "settings": {"write_timeout": "PT5S", "keep_unconfirmed": "0.5m"}},
            {"write_timeout": 5.0, "keep_unconfirmed": 30.0},
        ),
        (
            {**MEMORY, "settings": {"write_timeout": timedelta(seconds=5)}},
            {"write_timeout": 5.0},
        ),
        (with_(BLOB, "azureblob", useEmulator=True), {}),
        (
            {**with_(BLOB, "azureblob", useEmulator=True), "settings": {"name_case": "as-typed"}},
            {"name_case": "as-typed"},
        ),
        (CUSTOM, {}),
        ({**CUSTOM, "namespace": "orders"}, {"namespace": "orders"}),
        ({**CUSTOM, "settings": {"anything": 5}}, {"anything": 5}),
    ],
)
def test_settings_are_the_stores_keyword_arguments(mapping: Any, settings: Any) -> None:
    assert read(mapping).settings == settings


def test_the_callers_keyword_arguments_are_added() -> None:
    opening = read({**MEMORY, "rwTimeout": "5s"}, write_timeout=5, on_stale="raise")
    assert opening.settings == {"operation_timeout": 5, "write_timeout": 5, "on_stale": "raise"}


def test_create_is_off_unless_it_is_on() -> None:
    assert not read(MEMORY).creates
    assert not read({**MEMORY, "create": False}).creates
    assert read({**MEMORY, "create": True}).creates


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_value_is_as_if_it_were_not_there(empty: Any) -> None:
    assert read({**MEMORY, "namespace": empty, "rwTimeout": empty, "sql": empty}).url == "memory:"


def test_tables_of_other_backends_may_stay() -> None:
    mapping = {**CASSANDRA, "azureblob": {"lease": "15s", **ACCOUNT}}
    assert read(mapping).url == "cassandra://localhost:9042/"
    assert read(mapping).notes == ()


@pytest.mark.parametrize("lease", ["15s", 15])
def test_a_lease_is_named_as_ignored(lease: Any) -> None:
    assert read(with_(BLOB, "azureblob", **ACCOUNT, lease=lease)).notes == (LEASE_NOTE,)
    assert read(with_(BLOB, "azureblob", useEmulator=True, lease=lease)).notes == (LEASE_NOTE,)
    assert "leases are not needed" in LEASE_NOTE


def test_a_mapping_is_not_edited() -> None:
    inner = {"url": "sqlite:///x.db"}
    mapping = {"backendType": "Sql", "settings": {"write_timeout": 5}, "sql": inner}
    opening = read(mapping, on_stale="raise")
    opening.settings["on_stale"] = "log"
    assert mapping == {"backendType": "Sql", "settings": {"write_timeout": 5}, "sql": inner}
    assert inner == {"url": "sqlite:///x.db"}
