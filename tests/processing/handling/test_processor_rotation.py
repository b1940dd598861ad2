"""Keys of hub and storage are rotated, and tokens expire, under load: no event is lost.

Each with one client: that the store of both renews its credentials is shown in
`tests/stores/blob/test_rotation.py`.
"""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential

from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.errors import StoreAccessError
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT
from hub_load import LIFETIME, LONG, load, signature
from rotating_storage import KEYS, Account, azurite_with_two_keys, every, rotating
from variants import ONLY_LONG_AIO, ONLY_LONG_SYNC

pytestmark = [pytest.mark.long, pytest.mark.waits]
RENEWALS = 2
WRONG_KEY = base64.b64encode(b"neither").decode()
EXPIRY = 2.0
"""Seconds until the ownership of a consumer that cannot renew it ends."""


class Tokens:
    """Token credential whose tokens live for a few seconds.

    Attributes:
        made: how many tokens were asked for.
        lifetime: of the next ones.
    """

    def __init__(self) -> None:
        self.made = 0
        self.lifetime = LIFETIME

    def make(self) -> AccessToken:
        self.made += 1
        expiry = int(time.time()) + self.lifetime
        claims = base64.urlsafe_b64encode(json.dumps({"exp": expiry}).encode()).decode()
        return AccessToken(f"h.{claims}.s", expiry)

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return self.make()


class AioTokens(Tokens):
    async def get_token(self, *_: str, **__: Any) -> AccessToken:  # type: ignore[override]
        return self.make()

    async def close(self) -> None:
        """Hold nothing open."""


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with azurite_with_two_keys() as account:
        yield account


@pytest.fixture
def blob_store(site: Any, account: Account) -> Callable[..., Any]:
    """Opens a store on the storage with a credential, and seconds for a write."""
    kind = AioBlobCheckpointStore if site.is_aio else BlobCheckpointStore

    def open_store(credential: Any, write_timeout: float = 2.0) -> Any:
        settings = {"connection_verify": account.ca_file, "write_timeout": write_timeout}
        store = site.stage.recorded(kind(account.url, account.container, credential, **settings))
        site.opened.callback(lambda: site.loop.finished(store.inner.close()))
        return store

    return open_store


def check_once_each(run: Any, count: int, wait: Callable[..., Any]) -> None:
    """All events are processed, each once and in order."""
    wait(lambda: len(run.deeds.numbers()) >= count)
    run.call("stop")
    assert run.deeds.numbers() == [*range(count)]


@ONLY_LONG_SYNC
def test_a_key_is_rotated_in_the_order_of_the_page(site: Any, wait: Callable[..., Any]) -> None:
    site.hub.accept_keys({"first"})
    credential = AzureNamedKeyCredential("policy", "first")
    with load(site.hub) as count:
        run = site.started(site.stage.store(), client={"credential": credential})
        for old, new in (("first", "second"), ("second", "third")):
            wait(lambda: site.hub.receivers("orders"))
            site.hub.accept_keys({old, new})
            credential.update("policy", new)
            site.hub.accept_keys({new})
            # Only new connections show the key: those that are open keep their tokens.
            assert site.hub.drop_connections()
            before = count()
            wait(lambda before=before: run.deeds.numbers()[-1:] > [before])
        assert site.hub.refused_links() == []
    check_once_each(run, count(), wait)


@ONLY_LONG_AIO
def test_a_key_that_was_revoked_too_early_holds_the_processor_up_until_it_has_the_new_one(
    site: Any, wait: Callable[..., Any]
) -> None:
    site.hub.accept_keys({"first"})
    credential = AzureNamedKeyCredential("policy", "first")
    with load(site.hub) as count:
        run = site.started(site.stage.store(), client={"credential": credential, "retry_total": 0})
        wait(lambda: run.deeds.numbers())
        site.hub.accept_keys({"second"})
        site.hub.drop_connections()
        before = count()
        wait(lambda: count() > before + 50)
        assert site.hub.receivers("orders") == []
        assert run.deeds.numbers()[-1] <= before
        credential.update("policy", "second")
        before = count()
        wait(lambda: run.deeds.numbers()[-1:] > [before])
    check_once_each(run, count(), wait)


@pytest.mark.parametrize(
    ("variant", "kind"), [("sync", "SAS"), ("aio", "token")], indirect=["variant"]
)
def test_tokens_expire_and_are_renewed(site: Any, kind: str, wait: Callable[..., Any]) -> None:
    site.hub.accept_keys({"key"})
    tokens = AioTokens() if site.is_aio else Tokens()
    sas = AzureSasCredential(signature(site.hub, "key"))
    credential = sas if kind == "SAS" else tokens
    with load(site.hub) as count:
        run = site.started(site.stage.store(), client={"credential": credential})
        ends = time.monotonic() + RENEWALS * LIFETIME
        while time.monotonic() < ends:
            sas.update(signature(site.hub, "key"))
            time.sleep(0.2)
        # A busy machine may take longer to connect than the others are valid.
        tokens.lifetime = LONG
        sas.update(signature(site.hub, "key", LONG))
        before = count()
        wait(lambda: run.deeds.numbers()[-1:] > [before])
    assert kind == "SAS" or tokens.made > RENEWALS
    check_once_each(run, count(), wait)


@ONLY_LONG_SYNC
def test_a_processor_that_is_restarted_reads_the_new_connection_string(
    site: Any, wait: Callable[..., Any]
) -> None:
    """The client keeps the key of its connection string, so the processor has to make another."""
    site.hub.accept_keys({"first"})
    secrets = ["first"]
    connection_string = site.hub.connection_string("orders")

    def read() -> str:
        return re.sub("SharedAccessKey=[^;]*", f"SharedAccessKey={secrets[-1]}", connection_string)

    with load(site.hub) as count:
        run = site.started(site.stage.store(), client={"conn_str": read})
        wait(lambda: run.deeds.numbers())
        secrets.append("second")
        site.hub.accept_keys({"first", "second"})
        run.call("stop")
        site.hub.accept_keys({"second"})
        run.call("start")
        before = count()
        wait(lambda: run.deeds.numbers()[-1:] > [before])
    check_once_each(run, count(), wait)


@pytest.mark.parametrize(
    ("variant", "kind"), [("sync", "key"), ("aio", "SAS")], indirect=["variant"]
)
def test_credentials_of_the_storage_are_rotated_while_events_are_processed(
    site: Any, blob_store: Callable[..., Any], kind: str, wait: Callable[..., Any]
) -> None:
    secret = rotating(kind, "aio" if site.is_aio else "sync")
    store = blob_store(secret.credential, write_timeout=30.0)
    with load(site.hub) as count, every(0.25, secret.replace) as rotation:
        run = site.started(store)
        ends = time.monotonic() + secret.validity
        wait(lambda: time.monotonic() > ends and rotation.times > 2)
        before = count()
        wait(lambda: store.saved["0"][-1:] > [before])
    check_once_each(run, count(), wait)
    assert run.deeds.errors == []
    assert store.saved["0"][-1] == count() - 1


@ONLY_LONG_AIO
def test_a_key_of_the_storage_that_comes_too_late_costs_no_event(
    site: Any, blob_store: Callable[..., Any], wait: Callable[..., Any]
) -> None:
    credential = AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[0])
    store = blob_store(credential)
    with load(site.hub) as count:
        run = site.started(store, unhealthy_after=0.1)
        wait(lambda: store.saved["0"])
        credential.update(EMULATOR_ACCOUNT, WRONG_KEY)
        wait(lambda: any(isinstance(error, StoreAccessError) for _, error in run.deeds.errors))
        wait(lambda: not run.processor.healthy())
        credential.update(EMULATOR_ACCOUNT, KEYS[1])
        before = count()
        wait(lambda: store.saved["0"][-1:] > [before])
        wait(run.processor.healthy)
    check_once_each(run, count(), wait)


@ONLY_LONG_SYNC
def test_a_consumer_without_a_key_of_the_storage_is_replaced_when_its_ownership_has_expired(
    site: Any, blob_store: Callable[..., Any], wait: Callable[..., Any]
) -> None:
    credential = AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[0])
    store = blob_store(credential)
    client = {"partition_ownership_expiration_interval": EXPIRY}
    with load(site.hub) as count:
        run = site.started(store, client=client)
        wait(lambda: store.saved["0"])
        credential.update(EMULATOR_ACCOUNT, WRONG_KEY)
        other = site.started(
            blob_store(AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[1])), client=client
        )
        wait(lambda: other.deeds.numbers())
    wait(lambda: other.deeds.numbers()[-1:] == [count() - 1])
    assert other.deeds.numbers()[0] == store.saved["0"][-1] + 1
    assert {*run.deeds.numbers(), *other.deeds.numbers()} == {*range(count())}
