"""URLs and connection strings of accounts, and what is no such address."""

from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import ContainerClient
from azure.storage.blob._shared.base_client import parse_connection_str

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.azure_storage.account import (
    EMULATOR_KEY,
    Endpoint,
    checked_account,
    parse_connection_string,
    with_account_name,
)
from eventhub_checkpoints.stores.azure_storage.authorization import Sas, SharedKey, Token
from eventhub_checkpoints.stores.blob.options import container_url
from eventhub_checkpoints.stores.blob.protocol import SERVICE

ACCOUNT = "https://orders.blob.core.windows.net"
EMULATOR = "http://127.0.0.1:10000/devstoreaccount1"
SAS = "sv=2020&sig=c2VjcmV0"


@pytest.mark.parametrize(
    ("url", "account_url", "container", "sas", "is_emulator"),
    [
        (
            "https://acc.blob.core.windows.net/positions",
            "https://acc.blob.core.windows.net", "positions", "", False,
        ),
        (
            f"https://acc.blob.core.windows.net/positions?{SAS}",
            "https://acc.blob.core.windows.net", "positions", SAS, False,
        ),
        (
            "https://acc.blob.core.windows.net/positions/",
            "https://acc.blob.core.windows.net", "positions", "", False,
        ),
        (
            "http://127.0.0.1:10000/devstoreaccount1/positions",
            "http://127.0.0.1:10000/devstoreaccount1", "positions", "", True,
        ),
        (
            "http://azurite:10000/devstoreaccount1/positions",
            "http://azurite:10000/devstoreaccount1", "positions", "", True,
        ),
        (
            f"http://[::1]:10000/acc/positions?{SAS}",
            "http://[::1]:10000/acc", "positions", SAS, False,
        ),
        ("http://10.0.0.4/acc/positions", "http://10.0.0.4/acc", "positions", "", False),
        ("https://acc.z1.blob.example/$root", "https://acc.z1.blob.example", "$root", "", False),
    ],
)  # fmt: skip
def test_a_url_is_taken_apart(
    url: str, account_url: str, container: str, sas: str, is_emulator: bool
) -> None:
    address, _ = container_url(url)
    assert (address.account_url, address.name, address.sas) == (account_url, container, sas)
    assert address.is_emulator is is_emulator


@pytest.mark.parametrize(
    "url",
    [
        "https://acc.blob.core.windows.net",
        "https://acc.blob.core.windows.net/",
        "https://acc.blob.core.windows.net/positions/blob",
        "http://127.0.0.1:10000/devstoreaccount1",
        "http://azurite:10000/acc/positions",
        "ftp://acc.blob.core.windows.net/positions",
        "acc.blob.core.windows.net/positions",
        "https:///positions",
        "https://user:s3cret@acc.blob.core.windows.net/positions",
        "https://user:s3/cret@acc.blob.core.windows.net/positions",
        "http://[::1/positions",
        "https://acc.\ufffdblob.example/positions",
        "https://acc..blob.example/positions",
        "https://acc\0.blob.example/positions",
        "https://acc blob.example/positions",
        "https://acc%/positions",
        "https://acc.blob.example:99999/positions",
        "user:s3cret@acc.blob.core.windows.net/positions",
        "",
    ],
)
def test_what_is_no_container_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        container_url(url)
    assert "s3" not in str(refused.value)


NOT_ASCII = "the URL's host has characters that are not ASCII; write it in Punycode"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:10000/devstoreaccount1", "the URL names no container: expected https"),
        ("https://acc.blob.core.windows.net/", "the URL names no container: expected https"),
        (
            "https://user:s3cret@acc.blob.core.windows.net/c",
            "the URL must not have a user or password",
        ),
        ("https://b\u00fccher.example/positions", NOT_ASCII),
        ("http://\u0664:10000/devstoreaccount1/positions", NOT_ASCII),
        (
            "https://acc.blob.core.usgovcloudapi.net",
            "the URL names no container: expected https://ACCOUNT.blob.core.usgovcloudapi.net/",
        ),
        (
            "https://acc.blob.core.windows.net/positions#2",
            "the URL has a #, and what follows it is in no container's name and no SAS; expected",
        ),
    ],
)
def test_what_is_wrong_with_a_url_is_said(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        container_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://acc.blob.core.windows.net",
        f"https://acc.blob.core.windows.net/?{SAS}",
        "HTTP://127.0.0.1:10000/devstoreaccount1",
        "http://[::1]:10000/acc",
        "https://localhost",
        "acc.blob.core.windows.net",
        "localhost:10000/acc",
    ],
)
def test_an_account_is_taken_as_the_driver_takes_it(url: str) -> None:
    assert checked_account(url, SERVICE) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rubbish",
        "ftp://acc.blob.core.windows.net",
        "https://",
        "https://user:s3cret@acc.blob.core.windows.net",
        "AccountName=acc;AccountKey=s3cret;EndpointSuffix=core.windows.net",
        "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;AccountKey=s3cret",
    ],
)
def test_what_is_no_account_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the account URL is not an address") as refused:
        checked_account(url, SERVICE)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["abc", "a-b-c", "012", "$root", "a" * 63])
def test_a_name_of_the_service_is_taken(name: str) -> None:
    assert SERVICE.checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ab",
        "a" * 64,
        "Abc",
        "a_b",
        "a--b",
        "-ab",
        "ab-",
        "a/b",
        "äbc",
        "a b",
        "$logs2",
        "abc\n",
    ],
)
def test_a_name_that_the_service_refuses_is_refused_here(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a container name"):
        SERVICE.checked_name(name)


@pytest.mark.parametrize("shown", [repr, str], ids=["repr", "str"])
def test_no_signature_is_shown(shown: object) -> None:
    address, _ = container_url(f"https://acc.blob.core.windows.net/positions?{SAS}")
    text = shown(address)
    assert text == "ResourceUrl(https://acc.blob.core.windows.net/positions)"


def test_an_account_beyond_ascii_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=f"^{NOT_ASCII}"):
        checked_account("http://\u0664:10000/devstoreaccount1", SERVICE)


def test_the_path_of_an_account_is_no_host() -> None:
    url = "http://127.0.0.1:10000/b\u00fccher"
    assert checked_account(url, SERVICE) == url


@pytest.mark.parametrize(
    "text",
    [
        f"DefaultEndpointsProtocol=https;AccountName=orders;AccountKey={EMULATOR_KEY}",
        f"AccountName=orders;AccountKey={EMULATOR_KEY};EndpointSuffix=core.chinacloudapi.cn;",
        f"BlobEndpoint=http://127.0.0.1:1/orders;AccountName=orders;AccountKey={EMULATOR_KEY}",
        f"BlobEndpoint={ACCOUNT};SharedAccessSignature={SAS}",
        "accountname=orders;defaultendpointsprotocol=http;endpointsuffix=a.b",
    ],
)
def test_a_connection_string_is_read_as_the_driver_reads_it(text: str) -> None:
    url, credential = parse_connection_string(text, SERVICE)
    driver_url, _, driver_credential = parse_connection_str(text, None, "blob")
    assert url == (driver_url if "://" in driver_url else f"http://{driver_url}")
    assert credential == driver_credential


def test_the_short_connection_string_is_that_of_the_emulator() -> None:
    # Old versions of azure-storage-blob do not know it.
    assert parse_connection_string("UseDevelopmentStorage=true", SERVICE) == (
        EMULATOR,
        EMULATOR_KEY,
    )


@pytest.mark.parametrize("text", ["AccountName=orders;AccountKey", "DefaultEndpointsProtocol=x"])
def test_a_connection_string_of_no_account_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        parse_connection_string(text, SERVICE)


class Tokens:
    """A credential that issues tokens."""

    def get_token(self, *scopes: str, **_: Any) -> Any:
        raise AssertionError("nothing is sent")


KNOWN: list[tuple[str, Any, type]] = [
    (ACCOUNT, None, type(None)),
    ("https://orders.z01.blob.storage.azure.net", EMULATOR_KEY, SharedKey),
    ("https://orders.blob.core.usgovcloudapi.net", EMULATOR_KEY, SharedKey),
    (ACCOUNT, EMULATOR_KEY, SharedKey),
    ("orders.blob.core.windows.net", EMULATOR_KEY, SharedKey),
    (EMULATOR, EMULATOR_KEY, SharedKey),
    ("https://blobs.example.com", AzureNamedKeyCredential("a", EMULATOR_KEY), SharedKey),
    (ACCOUNT, {"account_name": "a", "account_key": EMULATOR_KEY}, SharedKey),
    (ACCOUNT, f"?{SAS}", Sas),
    (f"{ACCOUNT}?{SAS}", None, Sas),
    (ACCOUNT, AzureSasCredential(SAS), Sas),
    (ACCOUNT, Tokens(), Token),
]
UNKNOWN: list[tuple[str, Any]] = [
    ("https://blobs.example.com", EMULATOR_KEY),  # of which account?
    ("http://127.0.0.1:10000/devstoreaccount1", Tokens()),  # a token needs TLS
    (f"{ACCOUNT}?{SAS}", EMULATOR_KEY),
    (f"{ACCOUNT}?{SAS}", AzureSasCredential(SAS)),
    (f"{ACCOUNT}?snapshot=1", None),
    (f"{ACCOUNT}/path", EMULATOR_KEY),
    ("https://orders-ipv6.blob.core.windows.net", EMULATOR_KEY),
    (ACCOUNT, {"account_name": "a"}),
    (ACCOUNT, 5),
]


@pytest.mark.parametrize(("url", "credential", "kind"), KNOWN)
def test_a_credential_is_known(url: str, credential: Any, kind: type) -> None:
    endpoint = Endpoint.of(url, credential, SERVICE)
    assert endpoint is not None
    assert type(endpoint.authorization) is kind


@pytest.mark.parametrize(("url", "credential"), UNKNOWN)
def test_what_only_the_driver_knows_or_refuses_is_left_to_it(url: str, credential: Any) -> None:
    assert Endpoint.of(url, credential, SERVICE) is None


@pytest.mark.parametrize(
    "url", ["https://orders.z01.blob.storage.azure.net", "orders.z01.blob.storage.azure.net/"]
)
def test_the_driver_is_told_the_account_of_a_dns_zone(url: str) -> None:
    named = {"account_name": "orders", "account_key": EMULATOR_KEY}
    assert with_account_name(url, EMULATOR_KEY, SERVICE) == named
    client = ContainerClient(url, "positions", with_account_name(url, EMULATOR_KEY, SERVICE))
    assert client.account_name == "orders"
    with pytest.raises(ValueError, match="Unable to determine account name"):
        ContainerClient(url, "positions", EMULATOR_KEY)
    for credential in (None, f"?{SAS}", SAS, named):
        assert with_account_name(url, credential, SERVICE) is credential
    assert with_account_name(ACCOUNT, EMULATOR_KEY, SERVICE) == EMULATOR_KEY


SAS_NAMES = (
    *("sv", "ss", "srt", "sr", "sp", "st", "se", "sip", "spr", "si", "sig", "ses", "sdd"),
    *("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "sduoid"),
    *("snapshot", "rscc", "rscd", "rsce", "rscl", "rsct", "srh", "srq", "restype", "comp"),
)


@pytest.mark.parametrize("name", SAS_NAMES)
def test_no_part_of_a_signature_is_taken_for_a_misspelt_prefix(name: str) -> None:
    address, prefix = container_url(f"{ACCOUNT}/positions?{name}=a%2Fb&prefix=team-a&x=1")
    assert (address.sas, prefix) == (f"{name}=a%2Fb&x=1", "team-a")
