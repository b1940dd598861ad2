"""Who may use a store: the documented rights and no more, passwords, tokens."""

import base64
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, StoreAccessError, StoreUnavailableError
from eventhub_checkpoints.stores.redis.protocol import COMMANDS, OPERATOR_COMMANDS, all_keys
from refusals import says

PASSWORD = "s3cret/with@signs"
PAGE = Path(__file__).resolve().parents[3] / "docs/reference/redis.md"


@pytest.fixture
def user(place):
    """Makes users with some rights on the place's keys; they are removed after the test."""
    made = []

    def make(name: str, rights: str, password: str = PASSWORD) -> None:
        words = ["reset", "on", f">{password}", f"~{all_keys(place.namespace)}", *rights.split()]
        place.raw.execute_command("ACL", "SETUSER", name, *words)
        made.append(name)

    yield make
    for name in made:
        place.raw.acl_deluser(name)


def url_of(place, name: str, password: str = PASSWORD) -> str:
    return place.url.replace("//", f"//{name}:{password.replace('/', '%2F').replace('@', '%40')}@")


def use(client) -> None:
    row = client.take_listed("0", "owner-1")
    client.save("0", 1)
    client.release(client.take("0", "owner-1", row["etag"]))
    assert client.position("0") == 1
    client.call("verify")


def test_a_consumer_needs_the_documented_rights(opener, place, user, caplog) -> None:
    user("app", COMMANDS)
    use(opener(url_of(place, "app")))
    assert caplog.text == ""


def test_an_operator_needs_the_documented_rights(opener, place, user) -> None:
    user("operator", f"{COMMANDS} {OPERATOR_COMMANDS}")
    client = opener(url_of(place, "operator"))
    use(client)
    assert client.scope.folded in client.call("list_scopes")
    names = client.scope.as_dict().values()
    assert client.call("delete_partition", *names, "0") == 2
    assert client.call("delete_scope", *names) == 0


@pytest.mark.parametrize("right", sorted({*COMMANDS.split()} - {"+info", "+eval"}))
def test_each_of_them_is_needed_and_named_where_it_is_missing(opener, place, user, right) -> None:
    place.raw.script_flush()
    user("app", " ".join({*COMMANDS.split()} - {right}))
    with pytest.raises(StoreAccessError, match="lacks a right") as refused:
        use(opener(url_of(place, "app")))
    assert right in str(refused.value)


def test_only_a_server_that_forgot_the_scripts_needs_eval(opener, place, user) -> None:
    use(opener(place.url))
    user("app", COMMANDS.replace("+eval ", ""))
    client = opener(url_of(place, "app"))
    use(client)
    place.raw.script_flush()
    with pytest.raises(StoreAccessError, match="lacks a right"):
        client.list_ownership()


def test_without_the_right_to_info_there_is_one_warning(opener, place, user, caplog) -> None:
    user("app", COMMANDS.replace("+info", ""))
    use(opener(url_of(place, "app")))
    assert caplog.text.count("does not tell its maxmemory-policy") == 1


def test_the_keys_of_another_namespace_are_refused(opener, place, user) -> None:
    user("app", COMMANDS)
    client = opener(re.sub("namespace=.*", "namespace=other", url_of(place, "app")))
    with pytest.raises(StoreAccessError, match=r"~\{other:\*"):
        client.list_ownership()


def test_the_page_names_these_rights() -> None:
    text = PAGE.read_text()
    assert COMMANDS in text
    assert OPERATOR_COMMANDS in text


def test_a_wrong_password_is_refused_and_not_repeated(opener, place, user, caplog) -> None:
    user("app", COMMANDS, "another")
    client = opener(url_of(place, "app"))
    with pytest.raises(StoreAccessError, match="do not fit") as refused:
        client.list_ownership()
    assert PASSWORD not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"


def test_a_missing_password_is_said(opener, start) -> None:
    server = start("--requirepass", PASSWORD)
    with pytest.raises(StoreAccessError, match="wants a password"):
        opener(server.url).list_ownership()
    opener(server.url, credential=PASSWORD).list_ownership()


def token(name: str) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"oid": name}).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


class Tokens:
    """A credential as azure-identity makes them, of either variant."""

    def __init__(self, variant: str, name: str) -> None:
        self.asked: list[str] = []
        self.name = name
        self.get_token = self.at_once if variant == "sync" else self.later

    def at_once(self, scope: str):
        self.asked.append(scope)
        return type("AccessToken", (), {"token": token(self.name)})

    async def later(self, scope: str):
        return self.at_once(scope)


def test_a_token_is_asked_for_at_each_connect_and_names_its_user(opener, place, user) -> None:
    user("0-oid-1", COMMANDS, token("0-oid-1"))
    credential = Tokens(opener.variant, "0-oid-1")
    client = opener(place.url, credential=credential)
    use(client)
    place.raw.client_kill_filter(_type="normal", skipme=True)
    client.list_ownership()
    assert credential.asked == ["https://redis.azure.com/.default"] * 2


def test_an_audience_replaces_that_of_azures_redis(opener, place, user) -> None:
    user("0-oid-3", COMMANDS, token("0-oid-3"))
    credential = Tokens(opener.variant, "0-oid-3")
    use(opener(place.url, credential=credential, audience="api://redis"))
    separator = "&" if "?" in place.url else "?"
    use(opener(f"{place.url}{separator}audience=api://redis/.default", credential=credential))
    assert set(credential.asked) == {"api://redis/.default"}


def test_a_callable_gives_the_password_of_the_urls_user(opener, place, user) -> None:
    user("app", COMMANDS)
    secrets = iter(["a wrong one", PASSWORD])
    client = opener(place.url.replace("//", "//app@"), credential=lambda: next(secrets))
    with pytest.raises(StoreAccessError):
        client.list_ownership()
    use(client)


def test_an_async_callable_is_awaited_or_refused(opener, place, user) -> None:
    user("app", COMMANDS)

    async def later() -> str:
        return PASSWORD

    client = opener(place.url.replace("//", "//app@"), credential=later)
    if opener.variant == "aio":
        use(client)
    else:
        with pytest.raises(ConfigurationError, match="awaitable"):
            use(client)


def test_what_a_credential_returns_instead_of_a_password_is_named(opener, place) -> None:
    def steps() -> Any:
        yield PASSWORD

    tokens = type("Tokens", (), {"get_token": lambda self, scope: [scope]})()
    for credential, message in (
        (steps, "credential returned a generator; expected a string"),
        (lambda: PASSWORD.encode(), "credential returned a bytes; expected a string"),
        (tokens, "Tokens returned a list; expected an azure.core.credentials.AccessToken"),
    ):
        client = opener(place.url.replace("//", "//app@"), credential=credential)
        says(client.list_ownership, ConfigurationError, message)


def test_a_credential_that_fails_is_told_without_its_words(opener, place) -> None:
    def broken() -> str:
        raise RuntimeError(f"the vault said {PASSWORD}")

    client = opener(place.url, credential=broken, operation_timeout=0.4)
    failed = says(client.list_ownership, StoreUnavailableError, "no secret for a new connection")
    assert PASSWORD not in str(failed)


def test_entra_without_azure_identity_says_what_to_install(opener, monkeypatch) -> None:
    for module in ("azure.identity", "azure.identity.aio"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match="pip install azure-identity"):
        opener.store("rediss://name.redis.cache.windows.net:6380", entra=True)


def test_entra_takes_the_default_credential_and_closes_it(opener, place, user, monkeypatch) -> None:
    user("0-oid-2", COMMANDS, token("0-oid-2"))
    closed = []

    class Default(Tokens):
        def __init__(self) -> None:
            super().__init__(opener.variant, "0-oid-2")
            self.close = self.close_now if opener.variant == "sync" else self.close_later

        def close_now(self) -> None:
            closed.append(self)

        async def close_later(self) -> None:
            closed.append(self)

    name = "azure.identity" if opener.variant == "sync" else "azure.identity.aio"
    module = types.ModuleType(name)
    module.DefaultAzureCredential = Default
    monkeypatch.setitem(sys.modules, name, module)
    client = opener(place.url, entra=True)
    use(client)
    client.close()
    assert len(closed) == 1
