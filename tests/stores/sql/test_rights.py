"""What a role must be granted, and how it proves who it is."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from eventhub_checkpoints import StoreAccessError, StoreNotReadyError
from eventhub_checkpoints.errors import ConfigurationError
from refusals import says

pytestmark = pytest.mark.waits

GRANTS = ("SELECT", "INSERT", "UPDATE")
CALLS: dict[str, Callable[[Any], Any]] = {
    "list": lambda client: client.list_ownership(),
    "claim": lambda client: client.take("9", "a"),
    "renew": lambda client: client.claim("0", "a", "an etag"),
    "checkpoint": lambda client: client.save("9", 1),
    "checkpoint again": lambda client: client.save("9", 2),
}


def drivers(variant: Any) -> list[str]:
    """What a URL of this variant may begin with."""
    return ["postgresql"] if variant.name == "sync" else ["postgresql", "postgresql+asyncpg"]


@pytest.fixture
def meek(own: Any) -> Iterator[Any]:
    """A role with the rights that `docs/reference/sql.md` grants, and no other; gives its URL."""
    schema = own.tables.schema
    own.execute("CREATE ROLE meek LOGIN")
    own.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO meek')
    for table in (own.tables.ownership, own.tables.checkpoint):
        own.execute(f"GRANT {', '.join(GRANTS)} ON {table} TO meek")
    own.execute(f"GRANT SELECT, INSERT, DELETE ON {own.tables.history} TO meek")
    yield own.url.replace("//test@", "//meek@")
    own.execute("DROP OWNED BY meek")
    own.execute("DROP ROLE meek")


def test_the_documented_rights_are_enough(variant: Any, meek: str) -> None:
    client = variant.open(meek)
    client.call("verify")
    mine = client.take_listed("0", "a")
    client.save("0", 1)
    client.save("0", 2)
    client.save("0", 1, force=True)
    mine = client.claim("0", "a", mine["etag"])
    assert client.release(mine)
    assert client.position("0") == 1


def test_creating_what_is_there_takes_no_right_to_create(variant: Any, own: Any, meek: str) -> None:
    own.execute(f"GRANT SELECT ON {own.tables.version} TO meek")
    variant.open(meek, create_tables=True).save("0", 1)


@pytest.mark.parametrize(
    ("missing", "call"),
    [
        ("SELECT", "list"),
        ("INSERT", "claim"),
        ("UPDATE", "renew"),
        ("INSERT", "checkpoint"),
        ("UPDATE", "checkpoint again"),
    ],
)
def test_a_right_that_is_missing_is_named(
    variant: Any, own: Any, meek: str, missing: str, call: str
) -> None:
    if call == "checkpoint again":
        variant.open(own).save("9", 1)
    for table in (own.tables.ownership, own.tables.checkpoint):
        own.execute(f"REVOKE {missing} ON {table} FROM meek")
    client = variant.open(meek)
    with pytest.raises(StoreAccessError, match=f"lacks a right; this takes .*{missing}"):
        CALLS[call](client)


@pytest.mark.parametrize("table", ["ownership", "checkpoint"])
@pytest.mark.parametrize("missing", GRANTS)
def test_verifying_names_a_right_that_is_missing_on_either_table(
    variant: Any, own: Any, meek: str, table: str, missing: str
) -> None:
    variant.open(own).call("verify")  # the rows are there already
    own.execute(f"REVOKE {missing} ON {getattr(own.tables, table)} FROM meek")
    with pytest.raises(StoreAccessError, match="lacks a right; this takes") as refused:
        variant.open(meek).call("verify")
    assert f"permission denied for table {own.tables.namespace}_{table}" in str(refused.value)
    assert missing in str(refused.value)


def test_a_schema_that_may_not_be_created_is_named(variant: Any, own: Any, meek: str) -> None:
    url = meek.replace(f"schema={own.tables.schema}", "schema=nope")
    said = (
        r'schema "nope" does not exist, and the role may not create it: say CREATE SCHEMA "nope" '
        "as one who may, and GRANT USAGE, CREATE on it to the role"
    )
    for driver in drivers(variant):
        client = variant.open(url.replace("postgresql", driver, 1), create_tables=True)
        with pytest.raises(StoreAccessError, match=said):
            client.call("verify")


def test_a_role_without_any_schema_is_told_to_name_one(variant: Any, own: Any, meek: str) -> None:
    own.execute("ALTER ROLE meek SET search_path = nowhere")
    client = variant.open(meek.partition("?")[0], create_tables=True)
    with pytest.raises(StoreNotReadyError, match="no schema to create the tables in: name one"):
        client.call("verify")


def test_deleting_takes_a_right_of_its_own(variant: Any, own: Any, meek: str) -> None:
    client = variant.open(meek)
    with pytest.raises(StoreAccessError, match="this takes SELECT and DELETE"):
        client.call("delete_scope", *client.scope.as_dict().values())
    for table in (own.tables.ownership, own.tables.checkpoint):
        own.execute(f"GRANT DELETE ON {table} TO meek")
    client.save("0", 1)
    assert client.call("delete_scope", *client.scope.as_dict().values()) == 1


@pytest.fixture
def asked(own: Any) -> Iterator[str]:
    """A role that must give its password; gives a URL without one."""
    own.execute("CREATE ROLE asked LOGIN SUPERUSER PASSWORD 'hush'")
    yield own.url.replace("//test@", "//asked@")
    own.execute("DROP ROLE asked")


def test_a_password_is_asked_for_at_each_connect(
    variant: Any, own: Any, asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    given: list[str] = []

    def password() -> str:
        given.append("hush")
        return given[-1]

    client = variant.open(asked, credential=password)
    client.save("0", 1)
    client.save("0", 2)
    assert len(given) == 1
    own.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'asked'")
    client.save("0", 3)
    assert len(given) == 2
    assert "hush" not in caplog.text + repr(client.store)


def test_an_awaitable_password_is_awaited(variant: Any, asked: str) -> None:
    if variant.name == "sync":
        return

    async def password() -> str:
        await asyncio.sleep(0)
        return "hush"

    for url in (asked, asked.replace("postgresql://", "postgresql+asyncpg://")):
        variant.open(url, credential=password).save("0", 1, force=True)


def test_what_a_credential_returns_instead_of_a_password_is_named(variant: Any, asked: str) -> None:
    def steps() -> Any:
        yield "hush"

    for driver in drivers(variant):
        client = variant.open(asked.replace("postgresql", driver, 1), credential=steps)
        says(client.list_ownership, ConfigurationError, "returned a generator; expected a string")


def test_a_wrong_password_is_refused_at_once_and_not_shown(variant: Any, asked: str) -> None:
    for driver in drivers(variant):
        client = variant.open(asked.replace("postgresql", driver, 1), credential="whisper")
        with pytest.raises(StoreAccessError, match="refused the login") as refused:
            client.list_ownership()
        assert "whisper" not in f"{refused.value} {refused.value.__cause__!r}"


class Token:
    """A credential of azure-identity, as far as a store sees it."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def get_token(self, *scopes: str) -> Any:
        self.scopes += scopes
        return SimpleNamespace(token="hush")


def test_a_token_is_the_password_and_goes_over_tls_only(variant: Any, asked: str) -> None:
    token = Token()
    client = variant.open(asked, credential=token)
    with pytest.raises(StoreAccessError, match="no encrypted connection"):  # it has none
        client.list_ownership()
    client = variant.open(f"{asked}&sslmode=disable", credential=token)
    client.save("0", 1)
    assert set(token.scopes) == {"https://ossrdbms-aad.database.windows.net/.default"}
    token = Token()
    for driver in drivers(variant):
        url = f"{asked.replace('postgresql', driver, 1)}&audience=api://databases"
        url += "&ssl=disable" if "asyncpg" in driver else "&sslmode=disable"
        variant.open(url, credential=token).list_ownership()
    assert set(token.scopes) == {"api://databases/.default"}


def test_entra_without_azure_identity_says_what_to_do(
    variant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    monkeypatch.setitem(sys.modules, "azure.identity.aio", None)
    with pytest.raises(ConfigurationError, match="pip install azure-identity"):
        variant.store("postgresql://h/db", entra=True)
