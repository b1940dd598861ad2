"""Tokens for the passwords of stores: whom they are for, and where they are requested, by cloud."""

import asyncio
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.errors import ConfigurationError, StoreError

POSTGRES, MYSQL = "postgresql://me@{}/db", "mysql://me@{}/db"
PUBLIC = "https://ossrdbms-aad.database.windows.net/.default"
GOVERNMENT = "https://ossrdbms-aad.database.usgovcloudapi.net/.default"
CHINA = "https://ossrdbms-aad.database.chinacloudapi.cn/.default"
REDIS = "https://redis.azure.com/.default"
URI = "https://ossrdbms-aad.database.usgovcloudapi.net"
ID = "acca5fbb-b7e4-4009-81f1-37e38fd66d78"
VARIANTS = ("sync", "aio")


class RefusedError(Exception):
    """A credential that has no token; so nothing is sent to any server."""


class Credential:
    """A credential of azure-identity, of either variant, that notes what it is asked for."""

    def __init__(self, variant: str, **options: str) -> None:
        self.scopes: list[str] = []
        self.options = options
        self.get_token = self.at_once if variant == "sync" else self.later
        self.close = self.close_at_once if variant == "sync" else self.close_later

    def at_once(self, *scopes: str, **_: Any) -> Any:
        self.scopes += scopes
        raise RefusedError

    async def later(self, *scopes: str, **_: Any) -> Any:
        return self.at_once(*scopes)

    def close_at_once(self) -> None: ...

    async def close_later(self) -> None: ...


def use(variant: str, url: Any, **settings: Any) -> None:
    """Open a store and list, which requests a token and then fails."""
    names = ("ns.servicebus.windows.net", "orders", "$Default")
    if variant == "sync":
        with open_store(url, **settings) as store, pytest.raises(StoreError):
            store.list_ownership(*names)
        return

    async def listed() -> None:
        async with aio.open_store(url, **settings) as store:
            with pytest.raises(StoreError):
                await store.list_ownership(*names)

    asyncio.run(listed())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("url", "scope"),
    [
        (POSTGRES.format("h.postgres.database.azure.com"), PUBLIC),
        (POSTGRES.format("h.postgres.database.usgovcloudapi.net:5432"), GOVERNMENT),
        (POSTGRES.format("H.Postgres.database.ChinaCloudAPI.cn"), CHINA),
        (POSTGRES.format("h.private.postgres.database.usgovcloudapi.net"), GOVERNMENT),
        (POSTGRES.format("database.internal"), PUBLIC),
        ("postgresql://me@/db?host=h.postgres.database.chinacloudapi.cn", CHINA),
        ("postgresql://me@/db?host=a.usgovcloudapi.net:5432&host=b.usgovcloudapi.net", GOVERNMENT),
        ("postgresql://me@/db?host=/run/postgresql", PUBLIC),
        (MYSQL.format("h.mysql.database.azure.com"), PUBLIC),
        (MYSQL.format("h.mysql.database.usgovcloudapi.net"), GOVERNMENT),
        (MYSQL.format("h.mysql.database.chinacloudapi.cn"), CHINA),
        ("mariadb://me@h.mysql.database.chinacloudapi.cn/db", CHINA),
    ],
)  # fmt: skip
def test_the_audience_follows_the_domain_of_the_server(variant: str, url: str, scope: str) -> None:
    credential = Credential(variant)
    use(variant, url, credential=credential)
    assert set(credential.scopes) == {scope}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("url", [POSTGRES, MYSQL])
@pytest.mark.parametrize(
    ("audience", "scope"),
    [
        (URI, f"{URI}/.default"),
        (f"{URI}/", f"{URI}/.default"),
        (f"{URI}/.default", f"{URI}/.default"),
        (ID, f"{ID}/.default"),
        (f"{ID}/.default", f"{ID}/.default"),
        (f"api://{ID}", f"api://{ID}/.default"),
    ],
)
def test_a_setting_comes_before_the_domain(
    variant: str, url: str, audience: str, scope: str
) -> None:
    url = url.format("h.database.azure.com")
    table = {"backendType": "Sql", "sql": {"url": url, "audience": audience}}
    for target, settings in ((url, {"audience": audience}), (f"{url}?audience={audience}", {}),
                             (table, {}), (table, {"audience": audience})):  # fmt: skip
        credential = Credential(variant)
        use(variant, target, credential=credential, **settings)
        assert set(credential.scopes) == {scope}


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Credential]]:
    """Install an azure-identity whose default credential is one of the above; it is noted."""
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)

    def install(variant: str) -> list[Credential]:
        made: list[Credential] = []
        name = "azure.identity" if variant == "sync" else "azure.identity.aio"
        module = types.ModuleType(name)

        def default(**options: str) -> Credential:
            made.append(Credential(variant, **options))
            return made[-1]

        module.DefaultAzureCredential = default  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return made

    return install


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("domain", "login"),
    [
        ("windows.net", {}),
        ("usgovcloudapi.net", {"authority": "login.microsoftonline.us"}),
        ("chinacloudapi.cn", {"authority": "login.chinacloudapi.cn"}),
    ],
)
def test_the_default_credential_logs_in_in_the_cloud_of_the_server(
    variant: str, domain: str, login: dict[str, str], identity: Callable[[str], list[Credential]]
) -> None:
    opened = open_store if variant == "sync" else aio.open_store
    for url, entra in (
        (POSTGRES.format(f"h.postgres.database.{domain}"), {"entra": True}),
        (MYSQL.format(f"h.mysql.database.{domain}"), {"entra": True}),
        (f"rediss://h.redis.cache.{domain}:6380", {"entra": True}),
        (f"https://acct.blob.core.{domain}/positions", {}),
    ):
        made = identity(variant)
        store = opened(url, **entra)
        assert [credential.options for credential in made] == [login], url
        closed = store.close()
        if variant == "aio":
            asyncio.run(closed)


NO_TOKEN = "audience is for tokens of Entra, and nothing requests one: pass entra=True, or a "
NOT_ONE = (
    "; expected the URI of a service, such as https://ossrdbms-aad.database.windows.net, or the id "
    "of an application"
)
SERVER = POSTGRES.format("h")
READY = "a ready engine has its own password; leave credential, entra and audience out"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        (SERVER, {"audience": URI}, NO_TOKEN),
        (SERVER, {"audience": URI, "credential": "a password"}, NO_TOKEN),
        (SERVER, {"audience": URI, "credential": lambda: "a password"}, NO_TOKEN),
        (f"{SERVER}?audience={URI}", {}, NO_TOKEN),
        ("rediss://h", {"audience": URI}, NO_TOKEN),
        (f"rediss://h?audience={URI}", {"credential": "a password"}, NO_TOKEN),
        (SERVER, {"audience": "", "entra": True}, f"audience is ''{NOT_ONE}"),
        (SERVER, {"audience": 5, "entra": True}, f"audience is 5{NOT_ONE}"),
        (SERVER, {"audience": "ossrdbms", "entra": True}, f"audience is 'ossrdbms'{NOT_ONE}"),
        (SERVER, {"audience": f"{URI} ", "entra": True}, f"audience is '{URI} '{NOT_ONE}"),
        (SERVER, {"audience": "/.default", "entra": True}, f"audience is '/.default'{NOT_ONE}"),
        ("rediss://h?audience=AzureCloud", {"entra": True}, f"audience is 'AzureCloud'{NOT_ONE}"),
        (
            f"{SERVER}?audience={URI}",
            {"audience": ID, "entra": True},
            f"audience is '{ID}', and '{URI}' in the URL; give it once",
        ),
        (
            f"rediss://h?audience={URI}",
            {"audience": ID, "entra": True},
            f"audience is '{ID}', and '{URI}' in the URL; give it once",
        ),
        (
            "sqlite:///positions.db",
            {"audience": URI},
            "a SQLite file takes no credential; leave credential, entra and audience out",
        ),
        (
            {"backendType": "Redis", "redis": {"url": "redis://h", "audience": True}},
            {},
            "redis.audience is of type bool; expected a string",
        ),
        (
            {"backendType": "Sql", "sql": {"url": SERVER, "audence": URI}},
            {},
            "sql.audence is not a setting; expected one of audience, ",
        ),
        (f"{SERVER}?audence=x", {}, "audence in the store URL is not an option of the store or of"),
        ("rediss://h?audence=x", {}, "an option of the URL cannot be used: audence is not an "),
    ],
)  # fmt: skip
def test_a_mistake_about_the_audience_is_said_in_one_sentence(
    variant: str,
    url: Any,
    settings: dict[str, Any],
    message: str,
    identity: Callable[[str], list[Credential]],
) -> None:
    identity(variant)
    with pytest.raises(ConfigurationError) as mistake:
        (open_store if variant == "sync" else aio.open_store)(url, **settings)
    assert str(mistake.value).startswith(message)


def test_a_ready_engine_or_client_has_its_own_tokens() -> None:
    from redis import Redis
    from sqlalchemy import create_engine

    from eventhub_checkpoints.redis import RedisCheckpointStore
    from eventhub_checkpoints.sql import SqlCheckpointStore

    with pytest.raises(ConfigurationError, match=f"^{READY}$"):
        SqlCheckpointStore(create_engine("sqlite://"), audience=URI)
    with pytest.raises(ConfigurationError, match=r"^client is ready; .* entra and audience out$"):
        RedisCheckpointStore(client=Redis(socket_timeout=1), audience=URI)


def test_a_secret_as_audience_is_not_shown() -> None:
    secret = "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=c2VjcmV0c2VjcmV0"
    with pytest.raises(ConfigurationError, match=r"^audience is ") as mistake:
        open_store(SERVER, audience=secret, entra=True)
    assert "c2VjcmV0" not in str(mistake.value)
