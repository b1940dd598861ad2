"""Every way to make a Blob store: the official package's, and ours."""

import math
import traceback
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from requests.certs import where

from eventhub_checkpoints import open_store
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StaleCheckpointError,
    StoreAccessError,
    StoreNotReadyError,
)
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from eventhub_checkpoints.stores.blob.options import separated

KEY = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
DRIVERS_NAMES = """
    audience connection_cert connection_timeout connection_verify connection_data_block_size
    decompress enable_cae encryption_version headers key_encryption_key
    key_resolver_function logging_body logging_enable location_mode max_block_size
    max_chunk_get_size max_page_size max_single_get_size max_single_put_size
    min_large_block_upload_threshold network_span_namer permit_redirects proxies
    raw_request_hook raw_response_hook read_timeout redirect_max request_id
    require_encryption retry_backoff_factor retry_connect retry_mode retry_policy retry_read
    retry_status retry_to_secondary retry_total session timeout transport use_byte_buffer
    use_env_settings user_agent user_agent_overwrite initial_backoff increment_base
    random_jitter_range
"""


class Headers:
    """A `raw_response_hook` that keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def __call__(self, response: Any) -> None:
        self.sent.append(dict(response.http_request.headers))

    @property
    def versions(self) -> set[str]:
        return {headers["x-ms-version"] for headers in self.sent}


def works(client: Any) -> None:
    """Every kind of request is answered."""
    row = client.take("0", "owner-1")
    client.claim_ownership([row])
    client.save("0", 1)
    client.save("0", 2)
    assert (client.owner("0"), client.position("0")) == ("owner-1", 2)


@pytest.mark.parametrize("class_name", ["store", "official"])
def test_the_official_positional_arguments(variant, blob_container, class_name) -> None:
    if (variant.name, class_name) == ("aio", "official"):  # there the credential has a name
        store = variant.official(blob_container.endpoint, blob_container.name, credential=KEY)
    else:
        store = getattr(variant, class_name)(blob_container.endpoint, blob_container.name, KEY)
    works(variant.client(store))


@pytest.mark.parametrize("class_name", ["store", "official"])
def test_the_official_arguments_by_name(variant, blob_container, class_name) -> None:
    store = getattr(variant, class_name)(
        blob_account_url=blob_container.endpoint,
        container_name=blob_container.name,
        credential=KEY,
        api_version="2019-07-07",
        secondary_hostname="127.0.0.1:1",
    )
    works(variant.client(store))


@pytest.mark.parametrize("class_name", ["store", "official"])
def test_a_connection_string(variant, blob_container, class_name) -> None:
    store = getattr(variant, class_name).from_connection_string(
        blob_container.connection_string, blob_container.name
    )
    works(variant.client(store))


def test_a_credential_beats_the_one_in_the_connection_string(variant, blob_container) -> None:
    text = blob_container.connection_string.replace(EMULATOR_KEY, "d3Jvbmc=")
    store = variant.store.from_connection_string(text, blob_container.name, KEY)
    works(variant.client(store))


def test_an_account_url_with_a_sas(variant, blob_container, sas) -> None:
    account = f"{blob_container.endpoint}?{sas('rcwl')}"
    works(variant.client(variant.store(account, blob_container.name)))


def test_a_sas_as_credential(variant, blob_container, sas) -> None:
    credential = AzureSasCredential(sas("rcwl"))
    store = variant.store(blob_container.endpoint, blob_container.name, credential)
    works(variant.client(store))


def test_a_container_url_with_a_sas(variant, blob_container, sas) -> None:
    store = variant.store.from_container_url(f"{blob_container.url}?{sas('rcwl')}")
    works(variant.client(store))


def test_a_container_url_with_a_credential(variant, blob_container) -> None:
    works(variant.client(variant.store.from_container_url(blob_container.url, KEY)))


def test_a_ready_container_client(variant, blob_container) -> None:
    ready = variant.driver.from_connection_string(
        blob_container.connection_string, blob_container.name
    )
    works(variant.client(variant.store(container_client=ready)))
    variant.finished(ready.close())


def test_a_client_that_a_function_makes(variant, blob_container) -> None:
    arguments: list[dict[str, Any]] = []

    def connect(**kwargs: Any) -> Any:
        arguments.append(kwargs)
        return variant.driver.from_connection_string(
            blob_container.connection_string, blob_container.name, **kwargs
        )

    works(variant.client(variant.store(connect=connect, user_agent="orders")))
    (given,) = arguments
    assert given["user_agent"] == "orders"
    assert given["headers"] == {"x-ms-version": "2019-07-07"}


def test_settings_of_the_connection_reach_the_transport(variant, blob_container) -> None:
    transports = []

    def connect(**kwargs: Any) -> Any:
        transports.append(kwargs["transport"])
        return variant.driver.from_connection_string(
            blob_container.connection_string, blob_container.name, **kwargs
        )

    works(variant.client(variant.store(connect=connect, connection_verify=where())))
    assert transports[0].connection_config.verify == where()


def test_a_store_url(variant, blob_container) -> None:
    store = variant.open_store(blob_container.url)
    assert issubclass(variant.store, type(store))
    works(variant.client(store))


def test_a_store_url_takes_the_settings(variant, blob_container) -> None:
    store = variant.open_store(
        blob_container.url, name_case="as-typed", on_stale="raise", max_concurrency=4
    )
    assert store.settings.max_concurrency == 4
    works(variant.client(store))


@pytest.mark.parametrize("version", ["2017-11-09", "2019-07-07", "2021-12-02", "2026-10-06"])
def test_every_request_carries_the_version(variant, blob_container, version) -> None:
    hook = Headers()
    client = variant.open(blob_container, api_version=version, raw_response_hook=hook)
    works(client)
    assert hook.versions == {version}
    assert len(hook.sent) == 6


def test_the_version_is_the_official_packages_by_default(variant, blob_container) -> None:
    hook = Headers()
    works(variant.open(blob_container, raw_response_hook=hook))
    assert hook.versions == {"2019-07-07"}


def test_headers_of_the_caller_are_sent_and_not_edited(variant, blob_container) -> None:
    hook, headers = Headers(), {"x-caller": "mine"}
    works(variant.open(blob_container, headers=headers, raw_response_hook=hook))
    assert {sent["x-caller"] for sent in hook.sent} == {"mine"}
    assert headers == {"x-caller": "mine"}


def test_a_missing_container_is_said_with_its_name_and_the_way_out(
    client, raw, blob_container
) -> None:
    raw.delete_container()
    calls = [
        client.list_ownership,
        client.list_checkpoints,
        lambda: client.take("0", "owner-1"),
        lambda: client.save("0", 1),
        lambda: client.save("0", 1, force=True),
        lambda: client.call("verify"),
    ]
    for call in calls:
        with pytest.raises(StoreNotReadyError) as error:
            call()
        where = f"container '{blob_container.name}' of {blob_container.endpoint}"
        assert f"{where} does not exist" in str(error.value)
        ways = "store.create(), create_container=True or create = true in a configuration"
        assert f"create it with {ways}" in str(error.value)


def test_a_missing_container_is_created_on_request(variant, blob_container, raw) -> None:
    raw.delete_container()
    works(variant.open(blob_container, create_container=True))


def test_a_container_that_is_deleted_later_is_not_silently_made_again(
    variant, blob_container, raw
) -> None:
    client = variant.open(blob_container, create_container=True)
    row = client.take("0", "owner-1")
    raw.delete_container()
    with pytest.raises(StoreNotReadyError):
        client.claim_ownership([row])
    with pytest.raises(StoreNotReadyError):
        client.list_ownership()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("operation_timeout", 0),
        ("operation_timeout", math.nan),
        ("write_timeout", -1),
        ("keep_unconfirmed", -0.1),
        ("max_concurrency", 0),
        ("on_stale", "ignore"),
        ("name_case", "UPPER"),
    ],
)
def test_an_unusable_setting_is_refused_at_once(variant, blob_container, setting, value) -> None:
    with pytest.raises(ConfigurationError, match=setting):
        variant.open(blob_container, **{setting: value})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("operation_timout", "operation_timeout"),
        ("nam_case", "name_case"),
        ("create_containers", "create_container"),
    ],
)
def test_a_misspelt_setting_is_refused(variant, blob_container, name, meant) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is not a setting; did you mean {meant}"):
        variant.open(blob_container, **{name: 5})


def test_arguments_of_the_driver_are_no_misspelt_settings() -> None:
    arguments = dict.fromkeys(DRIVERS_NAMES.split(), 1)
    assert separated(arguments) == ({}, arguments)


def test_what_is_not_given_asks_for_the_variable(variant, blob_container) -> None:
    for make in (
        lambda: variant.store(None, blob_container.name, KEY),
        lambda: variant.store(blob_container.endpoint, None, KEY),
        lambda: variant.store.from_connection_string(None, blob_container.name),
        lambda: variant.store.from_container_url(None),
    ):
        with pytest.raises(ConfigurationError, match=r"is None; .* environment variable set"):
            make()


def test_an_account_that_is_no_address_is_said_at_once(variant, blob_container) -> None:
    with pytest.raises(ConfigurationError, match="the account URL is not an address"):
        variant.store("rubbish", blob_container.name, KEY)


@pytest.mark.parametrize("name", ["connect", "container_client"])
def test_what_cannot_connect_is_said_at_once(variant, name) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is .*; expected a "):
        variant.store(**{name: 3})


def test_a_row_that_is_no_dict_is_said(client) -> None:
    for row in (None, "x"):
        with pytest.raises(InvalidRecordError, match="expected a dict"):
            client.claim_ownership([row])
        with pytest.raises(InvalidRecordError, match="expected a dict"):
            client.call("update_checkpoint", row)


def test_a_row_that_is_no_dict_spares_the_other_claims(client) -> None:
    with pytest.raises(InvalidRecordError):
        client.claim_ownership([None, client.proposal("0", "owner-1")])
    assert client.owner("0") == "owner-1"


@pytest.mark.parametrize("name", ["", "Orders", "a/b", "ab"])
def test_a_container_that_cannot_be_is_said_at_once(variant, blob_container, name) -> None:
    with pytest.raises(ConfigurationError, match="is not a container name"):
        variant.store(blob_container.endpoint, name, KEY)
    with pytest.raises(ConfigurationError, match="is not a container name"):
        variant.store.from_connection_string(blob_container.connection_string, name)


def test_a_checkpoint_that_would_go_back_is_raised_on_request(variant, blob_container) -> None:
    client = variant.open(blob_container, on_stale="raise")
    other = variant.open(blob_container)
    other.save("0", 9)
    with pytest.raises(StaleCheckpointError) as stale:
        client.save("0", 3)
    assert (stale.value.sequence_number, stale.value.newest) == (3, 9)


def test_a_checkpoint_that_would_go_back_is_logged_and_counted_otherwise(
    variant, blob_container, caplog
) -> None:
    client, other = variant.open(blob_container), variant.open(blob_container)
    other.save("0", 9)
    client.save("0", 3)
    assert "checkpoint 3 of partition '0' was not stored" in caplog.text
    assert client.store.counters["stale_checkpoints"] == 1
    assert other.position("0") == 9


def test_a_store_is_true_and_says_where_it_is(variant, blob_container) -> None:
    store = variant.store.from_connection_string(
        blob_container.connection_string, blob_container.name
    )
    variant.client(store)
    assert store
    assert repr(store) == f"BlobCheckpointStore({blob_container.url})"


SECRET = "c2VjcmV0c2VjcmV0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("garbage", "cannot be read; expected DefaultEndpointsProtocol=https;AccountName="),
        (";", "cannot be read; expected DefaultEndpointsProtocol"),
        ("AccountName", "cannot be read; expected DefaultEndpointsProtocol"),
        (f"AccountKey={SECRET}", "cannot be read; expected DefaultEndpointsProtocol"),
        (f"AccountName=a;AccountKey={SECRET};x", "cannot be read; expected DefaultEndpoints"),
        (
            f"Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;"
            f"SharedAccessKey={SECRET}",
            "is that of an event hub; expected that of a storage account",
        ),
        (f"BlobEndpoint=;SharedAccessSignature={SECRET}", "cannot be made: "),
    ],
)
def test_a_connection_string_that_cannot_be_read_is_refused_unseen(variant, text, said) -> None:
    with pytest.raises(ConfigurationError) as refused:
        variant.store.from_connection_string(text, "container")
    assert said in str(refused.value)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_connection_string_of_the_environment_that_cannot_be_read_is_named(
    variant, monkeypatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountKey={SECRET}")
    with pytest.raises(ConfigurationError) as refused:
        variant.store.from_url("https://account.blob.core.windows.net/container")
    assert str(refused.value).startswith("AZURE_STORAGE_CONNECTION_STRING: the connection string")
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_credential_of_a_wrong_kind_is_refused_where_it_is_passed(variant) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be made: Unsupported credential"):
        variant.store("https://account.blob.core.windows.net", "container", 5)


def test_a_key_that_cannot_sign_is_named_unseen(variant) -> None:
    store = variant.store("https://account.blob.core.windows.net", "container", SECRET + "a")
    with pytest.raises(StoreAccessError) as refused:
        variant.client(store).list_ownership()
    assert (
        "container 'container' of https://account.blob.core.windows.net: the account key is "
        in (str(refused.value))
    )
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_an_error_of_the_callers_own_connect_is_left_as_it_is(variant) -> None:
    def connect(**kwargs: Any) -> Any:
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        variant.store(connect=connect)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("acct.dfs.core.windows.net", "Data Lake Storage"),
        ("acct.queue.core.windows.net", "queues"),
        ("acct.z01.file.storage.azure.net", "file shares"),
        ("ns.servicebus.windows.net", "an Event Hubs namespace"),
        ("acct.file.core.usgovcloudapi.net", "file shares"),
        ("acct.queue.core.an-air-gapped.cloud", "queues"),
        ("ns.servicebus.chinacloudapi.cn", "an Event Hubs namespace"),
    ],
)
def test_the_address_of_another_service_is_refused(variant, host, said) -> None:
    expected = rf"the URL is that of .*{said}; expected .*https://ACCOUNT\.blob"
    with pytest.raises(ConfigurationError, match=expected):
        variant.store(f"https://{host}", "checkpoints", KEY)
    with pytest.raises(ConfigurationError, match=expected):
        variant.open_store(f"https://{host}/checkpoints", credential=KEY)


def test_a_credential_that_the_driver_refuses_is_told_with_what_it_takes(variant) -> None:
    with pytest.raises(ConfigurationError, match="credential takes an account key, a SAS"):
        variant.store("https://acct.blob.core.windows.net", "checkpoints", {"account_key": "a2V5"})


class AioCredential:
    async def get_token(self, *scopes: str, **_: Any) -> Any:
        raise AssertionError("it was asked")


def test_a_sync_store_refuses_an_asynchronous_credential() -> None:
    url = "https://acct.blob.core.windows.net"
    string = "DefaultEndpointsProtocol=https;AccountName=acct;EndpointSuffix=core.windows.net"
    with pytest.raises(ConfigurationError, match=r"asynchronous; expected one of azure.identity,"):
        BlobCheckpointStore(url, "checkpoints", AioCredential())
    with pytest.raises(ConfigurationError, match="AioCredential, which is asynchronous"):
        BlobCheckpointStore.from_connection_string(string, "checkpoints", AioCredential())
    with pytest.raises(ConfigurationError, match="AioCredential, which is asynchronous"):
        open_store(f"{url}/checkpoints", credential=AioCredential())
