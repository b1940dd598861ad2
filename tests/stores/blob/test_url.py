"""Addresses of containers, and what is no such address."""

import pytest

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.blob.options import (
    ContainerUrl,
    checked_account,
    checked_container,
)

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
    address = ContainerUrl.parse(url)
    assert (address.account_url, address.container, address.sas) == (account_url, container, sas)
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
        ContainerUrl.parse(url)
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
    ],
)
def test_what_is_wrong_with_a_url_is_said(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        ContainerUrl.parse(url)


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
    assert checked_account(url) == url


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
        checked_account(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["abc", "a-b-c", "012", "$root", "a" * 63])
def test_a_name_of_the_service_is_taken(name: str) -> None:
    assert checked_container(name) == name


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
        checked_container(name)


@pytest.mark.parametrize("shown", [repr, str], ids=["repr", "str"])
def test_no_signature_is_shown(shown: object) -> None:
    address = ContainerUrl.parse(f"https://acc.blob.core.windows.net/positions?{SAS}")
    text = shown(address)
    assert text == "ContainerUrl(https://acc.blob.core.windows.net/positions)"


def test_an_account_beyond_ascii_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=f"^{NOT_ASCII}"):
        checked_account("http://\u0664:10000/devstoreaccount1")


def test_the_path_of_an_account_is_no_host() -> None:
    url = "http://127.0.0.1:10000/b\u00fccher"
    assert checked_account(url) == url
