"""What the sync store's connections take from the environment, and when they look."""

import certifi
import pytest

from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.stores.azure_storage._sync.http import tls_arguments
from eventhub_checkpoints.stores.azure_storage.connection_options import ConnectionOptions
from eventhub_checkpoints.stores.blob._sync.driver_pool import pooled
from refusals import says

NOBODY = "http://127.0.0.1:1"
NAMES = ("orders.servicebus.windows.net", "orders", "$Default")


@pytest.fixture
def environment(blob_container, monkeypatch):
    """Without proxies; put back before the container is deleted by a client that looks at it."""
    for name in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture(params=[True, False], ids=["lean", "driver"])
def open_store(blob_container, request):
    opened = []

    def open_store(**settings):
        arguments = (blob_container.connection_string, blob_container.name)
        settings = {"lean": request.param, **settings}
        opened.append(BlobCheckpointStore.from_connection_string(*arguments, **settings))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


def test_a_proxy_that_the_environment_names_is_used(environment, open_store) -> None:
    environment.setenv("HTTP_PROXY", NOBODY)
    store = open_store(operation_timeout=0.5)
    says(lambda: store.list_ownership(*NAMES), StoreUnavailableError, r"ProxyError|proxy")


def test_a_server_that_needs_no_proxy_is_asked_itself(environment, open_store) -> None:
    environment.setenv("HTTP_PROXY", NOBODY)
    environment.setenv("NO_PROXY", "127.0.0.1")
    assert open_store().list_ownership(*NAMES) == []


def test_the_environment_is_left_out_where_that_was_asked_for(environment, open_store) -> None:
    environment.setenv("HTTP_PROXY", NOBODY)
    assert open_store(use_env_settings=False).list_ownership(*NAMES) == []


def test_the_environment_is_looked_at_once(environment, open_store) -> None:
    store = open_store()
    store.list_ownership(*NAMES)
    environment.setenv("HTTP_PROXY", NOBODY)
    assert store.list_ownership(*NAMES) == []


def test_a_password_for_the_server_does_not_replace_the_signature(
    environment, open_store, tmp_path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    environment.setenv("NETRC", str(netrc))
    assert open_store().list_ownership(*NAMES) == []


def test_certificates_that_the_environment_names_are_trusted(monkeypatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/our-own.pem")
    session = pooled(4, {})["transport"].session
    url = "https://account.blob.core.windows.net/container/blob"
    merged = session.merge_environment_settings(url, {}, False, True, None)
    assert merged["verify"] == "/etc/our-own.pem"
    for arguments, expected in (
        ({}, "/etc/our-own.pem"),
        ({"use_env_settings": False}, certifi.where()),
        ({"connection_verify": "/etc/mine.pem"}, "/etc/mine.pem"),
    ):
        assert tls_arguments(ConnectionOptions.of(arguments, url))["ca_certs"] == expected
    unverified = ConnectionOptions.of({"connection_verify": False}, url)
    assert tls_arguments(unverified) == {"cert_reqs": "CERT_NONE"}
