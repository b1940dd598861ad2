"""The hub's keys are rotated and its tokens expire while a processor reads: nothing is lost."""

import base64
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential

from hub_load import LIFETIME, LONG, load, signature

RENEWALS = 2


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


def check_once_each(run: Any, count: int, wait: Callable[..., Any]) -> None:
    """All events are processed, each once and in order."""
    wait(lambda: len(run.deeds.numbers()) >= count)
    run.call("stop")
    assert run.deeds.numbers() == [*range(count)]


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


@pytest.mark.parametrize("kind", ["SAS", "token"])
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
