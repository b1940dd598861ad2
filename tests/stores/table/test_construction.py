"""How a store is opened, and what it is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.rest import HttpRequest
from azure.data.tables import TableSasPermissions, generate_table_sas
from azure.data.tables._authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st

from backends import Variant
from backends.table import TablePlace
from eventhub_checkpoints import ConfigurationError, aio, open_store
from eventhub_checkpoints.aio.table import TableCheckpointStore as AioTableCheckpointStore
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreAccessError, StoreNotReadyError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from eventhub_checkpoints.stores.azure_storage.authorization import (
    SharedKey,
    authorized,
    text_to_sign_of_tables,
)
from eventhub_checkpoints.stores.azure_storage.messages import Request
from eventhub_checkpoints.stores.table import rest, transactions
from eventhub_checkpoints.stores.table.rest import Key, Update
from eventhub_checkpoints.table import TableCheckpointStore

KINDS = {"sync": TableCheckpointStore, "aio": AioTableCheckpointStore}
OPEN = {"sync": open_store, "aio": aio.open_store}
URL = "https://account.table.core.windows.net"
ETAG = "W/\"datetime'2026-11-27T23%3A33%3A08.8948674Z'\""
KEY = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)


@pytest.fixture
def parts(table: TablePlace) -> tuple[str, str]:
    """The URL of the account, and the name of the table."""
    account, _, name = table.url.removeprefix("table+").rpartition("/")
    return account, name


@pytest.fixture
def works(loop: Loop, scope: Scope) -> Callable[[Any], None]:
    """Shows that a store can write and read, and closes it."""

    def show(store: Any) -> None:
        client = Client(store, scope, loop)
        client.call("verify")
        client.close()

    return show


def sas(name: str, *, rights: str = "raud", hours: int = 1) -> str:
    return generate_table_sas(
        KEY,
        name,
        permission=TableSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + timedelta(hours=hours),
    )


def test_every_credential_opens_a_table(variant: Variant, parts, works) -> None:
    account, name = parts
    kind = KINDS[variant]
    works(kind(account, name, EMULATOR_KEY))
    works(kind(account, name, KEY))
    works(kind(account, name, {"account_name": EMULATOR_ACCOUNT, "account_key": EMULATOR_KEY}))
    works(kind(account, name, AzureSasCredential(sas(name))))
    works(kind(account, name, sas(name)))
    works(kind(f"{account}?{sas(name)}", name))


def test_a_connection_string_opens_a_table(variant: Variant, parts, works) -> None:
    account, name = parts
    text = (
        f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};"
        f"BlobEndpoint=http://127.0.0.1:1/{EMULATOR_ACCOUNT};TableEndpoint={account};"
    )
    works(KINDS[variant].from_connection_string(text, name))


def test_a_url_opens_a_table_with_the_first_credential(
    variant: Variant, parts, works, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, name = parts
    open_it = OPEN[variant]
    works(open_it(f"table+{account}/{name}"))
    works(open_it(f"table+{account}/{name}?{sas(name)}"))
    works(open_it(f"TABLE+{account}/{name}", credential=KEY))
    local = account.replace("127.0.0.1", "localhost")
    text = f"AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};TableEndpoint={local};"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    works(open_it(f"table+{local}/{name}"))


def test_a_mapping_opens_a_table(variant: Variant, parts, works) -> None:
    account, name = parts
    mapping: dict[str, Any] = {
        "backendType": "AzureTable",
        "namespace": name,
        "azuretable": {"useEmulator": True, "endpoint": account},
        "settings": {"name_case": "lower"},
    }
    works(OPEN[variant](mapping))
    mapping["azuretable"] = {
        "account": EMULATOR_ACCOUNT,
        "key": EMULATOR_KEY,
        "endpoint": account,
    }
    works(OPEN[variant](mapping))


def test_the_table_is_created_on_request(variant: Variant, server, loop: Loop, scope) -> None:
    place = server.place()
    client = Client(place.open(variant), scope, loop)
    with pytest.raises(StoreNotReadyError, match="create_table=True"):
        client.list_ownership()
    with pytest.raises(StoreNotReadyError, match="does not exist"):
        client.take("0", "a")
    client.call("create")
    client.call("create")
    client.call("verify")
    client.close()
    place.vanish()
    other = Client(place.open(variant, create_table=True), scope, loop)
    assert other.list_ownership() == []
    other.close()
    place.drop()


@pytest.mark.parametrize(("rights", "lacks"), [("a", "lacks Query on"), ("r", "lacks Add on")])
def test_a_right_that_is_missing_is_an_access_error(
    variant: Variant, parts, loop: Loop, scope: Scope, rights: str, lacks: str
) -> None:
    account, name = parts
    client = Client(KINDS[variant](account, name, sas(name, rights=rights)), scope, loop)
    with pytest.raises(StoreAccessError, match=lacks):
        client.call("verify")
    client.close()


def test_renewals_with_a_sas_that_allows_no_transaction_are_sent_singly(
    variant: Variant, parts, loop: Loop, scope: Scope
) -> None:
    """Azurite 3.35 refuses a transaction with the SAS of a table, whoever sends it."""
    account, name = parts
    client = Client(KINDS[variant](account, name, sas(name)), scope, loop)
    rows = client.claim_ownership([client.proposal(str(number), "a") for number in range(4)])
    assert len(client.claim_ownership(rows)) == 4
    client.close()


def test_an_expired_sas_is_an_access_error_and_may_be_replaced(
    variant: Variant, parts, loop: Loop, scope: Scope
) -> None:
    account, name = parts
    credential = AzureSasCredential(sas(name, hours=-1))
    client = Client(KINDS[variant](account, name, credential), scope, loop)
    with pytest.raises(StoreAccessError):
        client.list_ownership()
    credential.update(sas(name))
    assert client.list_ownership() == []
    client.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((URL, "positions", object()), "the account URL and the credential do not fit together"),
        ((f"{URL}/path", "positions", "a2V5"), "do not fit together"),
        (("http://host/x", "positions", "a2V5"), "do not fit together"),
        ((URL, "positions-1", "a2V5"), "'positions-1' is not a table name"),
        ((URL, None, "a2V5"), "the table name is None; expected a string"),
        ((None, "positions", "a2V5"), "the account URL is None; expected a string"),
        (("https://account.blob.core.windows.net", "positions", "a2V5"), "the account's blobs"),
        ((f"table+{URL}", "positions", "a2V5"), "begins with table+, as a URL for open_store"),
        ((f"{URL}?prefix=a", "positions"), "; the query has 'prefix', which no SAS has: settings"),
        ((f"{URL}?sv=2019-02-02", "positions"), "; the SAS in the URL is not complete: it has no"),
        ((URL,), "TableCheckpointStore needs table_name="),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(
    variant: Variant, arguments: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KINDS[variant](*arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            {"create_tabel": True},
            "create_tabel is not a setting of TableCheckpointStore; expected ",
        ),
        ({"transport": None}, "transport is not a setting of TableCheckpointStore; expected "),
        ({"name_case": "upper"}, "name_case is 'upper'; expected 'lower' or 'as-typed'"),
        ({"proxies": {"ftp": "http://x"}}, "proxies has a key besides http and https"),
        ({"operation_timeout": 0}, "operation_timeout is 0; expected "),
        ({"create_table": "false"}, "create_table is 'false'; expected True or False"),
        ({"keep_history": "false"}, "keep_history is 'false'; expected True or False"),
        ({"api_version": None}, "api_version is None; expected a version such as '2019-02-02'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    variant: Variant, setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KINDS[variant](URL, "positions", "a2V5", **setting)
    assert str(refused.value).startswith(said)


def test_a_connection_string_needs_the_name_of_a_table(variant: Variant) -> None:
    with pytest.raises(ConfigurationError, match="from_connection_string needs table_name="):
        KINDS[variant].from_connection_string("AccountName=account;AccountKey=a2V5")


def test_a_store_shows_its_table_and_no_secret(variant: Variant) -> None:
    store = KINDS[variant](f"{URL}?sv=2019-02-02&sig=hush", "positions")
    assert repr(store) == f"TableCheckpointStore({URL}/positions)"


TABLE = rest.Table(URL, "positions", "2019-02-02")
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)


def requests_of(table: rest.Table, key: Key, value: str) -> list[Request]:
    fields = {"ownerid": value}
    return [
        table.create_table(),
        table.insert(key, fields),
        table.update(key, fields, None),
        table.update(key, fields, ETAG),
        table.read(key),
        table.delete(key),
        table.query(rest.equals("PartitionKey", key.partition), {}, keys_only=False),
        table.query("", {"NextPartitionKey": value}, keys_only=True),
        transactions.request_of(table, [Update(key, fields, ETAG)]),
    ]


@given(partition=names, row=names, value=names)
def test_a_signature_is_that_of_the_driver(partition: str, row: str, value: str) -> None:
    key = SharedKey(lambda: ("account", EMULATOR_KEY), text_to_sign_of_tables)
    policy = SharedKeyCredentialPolicy(AzureNamedKeyCredential("account", EMULATOR_KEY))
    for request in requests_of(TABLE, Key(partition, row), value):
        sent = HttpRequest(request.method, request.url, headers=dict(request.headers))
        policy.on_request(PipelineRequest(sent, PipelineContext(None)))
        assert authorized(request, key) == request.url
        assert request.headers["Authorization"] == sent.headers["Authorization"]
