"""Which credential is used, what a refusal says, and that no secret is ever shown."""

import logging
import sys
import traceback
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from azure.core.credentials import AzureNamedKeyCredential

from eventhub_checkpoints.errors import (
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT

VARIABLE = "AZURE_STORAGE_CONNECTION_STRING"
WRONG_KEY = "d3JvbmcgYnV0IHdlbGwgZm9ybWVk"
IDENTITY = {"sync": "azure.identity", "aio": "azure.identity.aio"}


@pytest.fixture(autouse=True)
def no_connection_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


class Signers:
    """A `raw_response_hook` that keeps how requests were signed."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, response: Any) -> None:
        request = response.http_request
        scheme, _, rest = request.headers.get("Authorization", "SAS in the URL").partition(" ")
        self.seen.add(f"{scheme} {rest.partition(':')[0]}")


def connection_string(endpoint: str, account: str, key: str) -> str:
    return f"AccountName={account};AccountKey={key};BlobEndpoint={endpoint}"


def test_a_credential_that_is_given_is_the_first(variant, blob_container, sas) -> None:
    wrong = AzureNamedKeyCredential(EMULATOR_ACCOUNT, WRONG_KEY)
    for url in (blob_container.url, f"{blob_container.url}?{sas('rcwl')}"):
        signers = Signers()
        client = variant.client(
            variant.open_store(url, credential=wrong, raw_response_hook=signers)
        )
        with pytest.raises(StoreAccessError):
            client.list_ownership()
        assert signers.seen == {f"SharedKey {EMULATOR_ACCOUNT}"}


def test_a_sas_in_the_url_comes_before_key_and_environment(
    variant, blob_container, sas, monkeypatch
) -> None:
    monkeypatch.setenv(
        VARIABLE, connection_string(blob_container.endpoint, EMULATOR_ACCOUNT, WRONG_KEY)
    )
    signers = Signers()
    url = f"{blob_container.url}?{sas('rcwl')}"
    variant.client(variant.open_store(url, raw_response_hook=signers)).take("0", "owner-1")
    assert signers.seen == {"SAS in the URL"}


def test_the_emulators_key_comes_before_the_environment(
    variant, blob_container, monkeypatch
) -> None:
    monkeypatch.setenv(
        VARIABLE, connection_string(blob_container.endpoint, EMULATOR_ACCOUNT, WRONG_KEY)
    )
    variant.client(variant.open_store(blob_container.url)).take("0", "owner-1")


def test_the_environment_is_used_where_it_is_of_the_same_account(
    variant, azurite, monkeypatch
) -> None:
    endpoint = azurite.endpoint.replace(EMULATOR_ACCOUNT, "otheraccount")
    monkeypatch.setenv(VARIABLE, connection_string(endpoint, "otheraccount", WRONG_KEY))
    signers = Signers()
    store = variant.open_store(f"{endpoint}/positions", raw_response_hook=signers)
    with pytest.raises(StoreError) as refused:  # Azurite has no such account
        variant.client(store).list_ownership()
    assert signers.seen == {"SharedKey otheraccount"}
    assert WRONG_KEY not in shown(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        connection_string("https://elsewhere.blob.core.windows.net", "elsewhere", WRONG_KEY),
        "",
        None,
    ],
    ids=["another account's", "empty", "not set"],
)
def test_without_any_credential_all_ways_are_named(variant, monkeypatch, text) -> None:
    monkeypatch.setitem(sys.modules, IDENTITY[variant.name], None)  # as where it is not installed
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigurationError) as error:
        variant.open_store("https://orders.blob.core.windows.net/positions")
    for way in ("credential=", "SAS", VARIABLE, "install azure-identity"):
        assert way in str(error.value)
    assert "https://orders.blob.core.windows.net" in str(error.value)
    assert WRONG_KEY not in shown(error.value)


def test_azure_identity_is_the_last_and_is_closed_with_the_store(variant, monkeypatch) -> None:
    closed = []

    class Credential:
        def get_token(self, *scopes: str, **kwargs: Any) -> Any:
            raise AssertionError("nothing is sent before the first use")

        def close(self) -> Any:
            closed.append(self)
            return done() if variant.name == "aio" else None

    async def done() -> None: ...

    module = ModuleType(IDENTITY[variant.name])
    module.DefaultAzureCredential = Credential
    monkeypatch.setitem(sys.modules, module.__name__, module)
    store = variant.open_store("https://orders.blob.core.windows.net/positions")
    variant.finished(store.close())
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("rights", "call", "right"),
    [
        ("rw", lambda client: client.list_ownership(), "lacks List on the container"),
        ("rw", lambda client: client.list_checkpoints(), "lacks List on the container"),
        ("rl", lambda client: client.take("new", "o"), "lacks Create or Write on its blobs"),
        ("rl", lambda client: client.save("new", 1), "lacks Create or Write on its blobs"),
        ("rl", lambda client: renewed(client), "lacks Write on its blobs"),
        ("rl", lambda client: client.save("0", 2, force=True), "lacks Write on its blobs"),
        ("cw", lambda client: client.save("0", 2), "lacks Read on its blobs"),
        ("rl", lambda client: client.call("verify"), "lacks Create or Write on its blobs"),
    ],
)
def test_a_refusal_names_the_right_that_the_sas_lacks(
    variant, client, blob_container, sas, rights, call, right
) -> None:
    client.take("0", "o")
    client.save("0", 1)
    url = f"{blob_container.url}?{sas(rights)}"
    limited = variant.client(variant.store.from_container_url(url))
    with pytest.raises(StoreAccessError) as refused:
        call(limited)
    assert right in str(refused.value)
    assert "403 AuthorizationPermissionMismatch" in str(refused.value)
    assert f"'{blob_container.name}'" in str(refused.value)


def renewed(client: Any) -> Any:
    return client.claim_ownership(client.list_ownership())


def test_a_container_that_may_not_be_created_names_that_right(
    variant, blob_container, raw, sas
) -> None:
    raw.delete_container()
    url = f"{blob_container.url}?{sas('racwdl')}"
    limited = variant.client(variant.store.from_container_url(url, create_container=True))
    with pytest.raises(StoreAccessError) as refused:
        limited.list_ownership()
    assert "the credential lacks Create on containers" in str(refused.value)


def test_a_wrong_key_is_said_as_such(variant, blob_container) -> None:
    wrong = AzureNamedKeyCredential(EMULATOR_ACCOUNT, WRONG_KEY)
    client = variant.client(variant.store(blob_container.endpoint, blob_container.name, wrong))
    for call in (client.list_ownership, lambda: client.take("0", "o"), lambda: client.save("0", 1)):
        with pytest.raises(StoreAccessError, match="container 'test-"):
            call()


def test_a_refused_release_is_calm(variant, client, blob_container, sas, caplog) -> None:
    row = client.take("0", "o")
    url = f"{blob_container.url}?{sas('rl')}"
    limited = variant.client(variant.store.from_container_url(url))
    assert limited.release(row) == []
    assert "partition 0 was not released" in caplog.text


def shown(error: BaseException) -> str:
    """All that a log of this error would show."""
    return "".join(traceback.format_exception(error))


def secrets_of(signature: str) -> set[str]:
    (secret,) = parse_qs(signature)["sig"]
    return {secret, quote(secret), quote(secret, safe="")}


@pytest.mark.parametrize("trouble", ["down", "hang", "refuse", "drop"])
def test_no_signature_is_in_an_error_a_log_or_a_repr(
    variant, proxied, proxy, sas, caplog, trouble
) -> None:
    caplog.set_level(logging.DEBUG, logger="eventhub_checkpoints")
    signature = sas("rcwl")
    store = variant.store.from_container_url(f"{proxied.url}?{signature}")
    client = variant.client(store)
    row = client.take("0", "owner-1")
    client.set(operation_timeout=0.2, write_timeout=0.2)
    if trouble == "down":
        proxy.down()
    else:
        fault = proxy.on()
        fault.refuse(403, "AuthenticationFailed") if trouble == "refuse" else getattr(
            fault, trouble
        )()
    texts = [repr(store), str(store)]
    for call in (
        client.list_ownership,
        lambda: client.claim_ownership([row]),
        lambda: client.save("0", 1),
        lambda: client.release(row),
        lambda: client.call("verify"),
    ):
        try:
            call()
        except (StoreUnavailableError, StoreAccessError) as error:
            texts.append(shown(error))
    assert len(texts) >= 5
    texts += [f"{record.getMessage()} {record.args}" for record in ours(caplog)]
    for secret in secrets_of(signature):
        assert not [text for text in texts if secret in text]


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.startswith("eventhub_checkpoints")]


def test_no_account_key_is_in_an_error_or_a_repr(variant, azurite, monkeypatch) -> None:
    endpoint = azurite.endpoint.replace(EMULATOR_ACCOUNT, "otheraccount")
    text = connection_string(endpoint, "otheraccount", WRONG_KEY)
    store = variant.store.from_connection_string(text, "positions")
    with pytest.raises(StoreError) as refused:  # Azurite has no such account
        variant.client(store).list_ownership()
    assert WRONG_KEY not in shown(refused.value) + repr(store) + repr(vars(store))


@pytest.mark.parametrize(
    "url",
    [
        "https://acc.blob.core.windows.net/a/b?sv=2020&sig=c2VjcmV0",
        "https://user:c2VjcmV0@acc.blob.core.windows.net/positions",
        "nosuch://user:c2VjcmV0@host/path?sig=c2VjcmV0",
        "https://acc.blob.core.windows.net/?sig=c2VjcmV0",
    ],
)
def test_a_url_that_cannot_be_opened_keeps_its_secret(variant, url) -> None:
    with pytest.raises(ConfigurationError) as error:
        variant.open_store(url)
    assert "c2VjcmV0" not in shown(error.value)
