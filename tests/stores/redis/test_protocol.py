"""Keys, scripts, addresses and refusals of Redis, as data."""

import base64
import json

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Proposal, Scope
from eventhub_checkpoints.stores.redis.protocol import (
    CLAIM,
    DELETE,
    LIST,
    WRITE_CHECKPOINT,
    all_keys,
    claim_arguments,
    code_of,
    failure,
    hash_key,
    scope_of,
    seconds,
)
from eventhub_checkpoints.stores.redis.url import RedisUrl, checked_namespace, login, object_id

SCOPE = Scope("NS.example.net", "Orders", "$Default")


def test_a_key_is_lower_case_under_a_hash_tag() -> None:
    key = hash_key("ours", SCOPE, "ownership")
    assert key == "{ours:ns.example.net/orders/$default}:ownership"


@pytest.mark.parametrize("kind", ["ownership", "checkpoint"])
def test_a_key_gives_its_scope_back(kind) -> None:
    scope = Scope("localhost:5672", "orders}", "{g")
    assert scope_of("ours", hash_key("ours", scope, kind)) == scope


@pytest.mark.parametrize(
    "key",
    [
        "",
        "{ours:a/b}:ownership",
        "{ours:a/b/c/d}:ownership",
        "{ours:a/b/c}:other",
        "{theirs:a/b/c}:ownership",
        "ours:a/b/c:ownership",
        "{oursx:a/b/c}:ownership",
    ],
)
def test_a_key_of_somebody_else_has_none(key) -> None:
    assert scope_of("ours", key) is None


def test_a_namespace_is_literal_in_a_pattern() -> None:
    assert all_keys("a*b?[c]\\d") == r"{a\*b\?\[c\]\\d:*"


def test_a_claim_is_four_arguments() -> None:
    claims = [Proposal(SCOPE, "0", "o", None, "new"), Proposal(SCOPE, "1", "", "old", "newer")]
    assert claim_arguments(claims) == ["0", "", "new", "o", "1", "old", "newer", ""]


def test_each_script_is_known_by_its_own_digest() -> None:
    scripts = {CLAIM, DELETE, LIST, WRITE_CHECKPOINT}
    assert len({script.digest for script in scripts}) == 4
    assert all(script.text.startswith("-- Atomic: ") for script in scripts)


def test_the_servers_time_has_microseconds() -> None:
    assert seconds([b"1700000000", b"12345"]) == 1700000000.012345


class NoPermissionError(Exception):
    pass


class ReadOnlyError(Exception):
    pass


class NewError(ReadOnlyError):
    pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Exception("Authentication required."), "NOAUTH"),
        (NoPermissionError("this user has no permissions"), "NOPERM"),
        (NewError("You can't write against a read only replica."), "READONLY"),
        (Exception("@user_script: 9: -OOM command not allowed when used memory"), "OOM"),
        (Exception("ERR Error running script (f_1): @user_script:8: WRONGTYPE x"), "WRONGTYPE"),
        (Exception("The user executing the script can't run this command"), "NOPERM"),
        (Exception("[SSL: CERTIFICATE_VERIFY_FAILED] x"), "CERTIFICATE_VERIFY_FAILED"),
        (Exception("ERR DB index is out of range"), "NODATABASE"),
        (Exception("ERR SELECT is not allowed in cluster mode"), "NODATABASE"),
        (Exception("ERR unknown command 'EVALSHA'"), ""),
        (Exception("ERR BUSYBODY ZOOM"), ""),
    ],
)
def test_a_refusal_has_a_code_wherever_it_stands(error, code) -> None:
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NOAUTH", StoreAccessError),
        ("WRONGPASS", StoreAccessError),
        ("CERTIFICATE_VERIFY_FAILED", StoreAccessError),
        ("NOPERM", StoreAccessError),
        ("LOADING", StoreUnavailableError),
        ("CLUSTERDOWN", StoreUnavailableError),
        ("TRYAGAIN", StoreUnavailableError),
        ("MASTERDOWN", StoreUnavailableError),
        ("READONLY", StoreUnavailableError),
        ("MISCONF", StoreUnavailableError),
        ("BUSY", StoreUnavailableError),
        ("NOREPLICAS", StoreUnavailableError),
        ("NODATABASE", StoreNotReadyError),
        ("OOM", StoreError),
        ("WRONGTYPE", StoreError),
        ("", StoreError),
    ],
)
def test_a_code_is_one_of_our_errors(code, kind) -> None:
    error = failure(code, "its words", "what was done", "ours")
    assert type(error) is kind
    assert "its words" in str(error)
    assert "what was done" in str(error)


def test_an_address_leaves_out_what_is_ours_and_what_is_secret() -> None:
    url = RedisUrl.parse("rediss://us%40er:p%2Fw@host:6380/2?namespace=n&ssl_ca_certs=a%2Fb")
    assert url == (
        "rediss://us%40er:p%2Fw@host:6380/2?ssl_ca_certs=a%2Fb",
        "us@er",
        "n",
        None,
        "host",
        "rediss://host:6380/2",
    )
    assert url.without_user() == "rediss://host:6380/2?ssl_ca_certs=a%2Fb"


def test_an_address_has_the_database_that_the_driver_takes() -> None:
    assert RedisUrl.parse("redis://h/1?db=3&db=4").address == "redis://h/3"


def test_an_option_without_a_value_reaches_the_check_and_a_namespace_is_as_if_not_given() -> None:
    url = RedisUrl.parse("redis://h?namespace=&client_nam=")
    assert (url.driver_url, url.namespace) == ("redis://h?client_nam=", None)


def test_an_address_may_be_ipv6() -> None:
    assert RedisUrl.parse("redis://:pw@[::1]:6379").address == "redis://[::1]:6379"


@pytest.mark.parametrize(
    "url", ["", "redis:", "redis://h:port", "redis://h/name", "unix:///s", None, 7]
)
def test_what_is_no_url_is_refused(url) -> None:
    with pytest.raises(ConfigurationError, match="not the URL of a Redis server"):
        RedisUrl.parse(url)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("mysql://u:hush@h/d", "open_store with mysql://USER:PASSWORD@HOST/DATABASE"),
        ("postgres://u:hush@h/d", "open_store with postgresql://USER:PASSWORD@HOST/DATABASE"),
        ("data/checkpoints.db", "open_store with sqlite:///data/checkpoints.db"),
        ("cache.example.org:6379", "redis://HOST:6379/0"),
        ("c.example.org:6380,password=hush,ssl=True", "rediss://:PASSWORD@HOST:6380/0"),
    ],
)
def test_a_url_of_another_program_is_answered_with_what_was_meant(url, meant) -> None:
    with pytest.raises(ConfigurationError) as refused:
        RedisUrl.parse(url)
    assert str(refused.value).endswith(f"; did you mean {meant}?")
    assert "hush" not in str(refused.value)


def test_the_namespace_is_the_keywords_the_urls_or_the_default() -> None:
    assert checked_namespace("a") == checked_namespace("a", "a") == checked_namespace(None, "a")
    assert checked_namespace(None) == "eventhub-checkpoints"


def token(payload: bytes) -> str:
    return f"h.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.s"


def test_a_token_names_its_user() -> None:
    for name in ("1", "12", "123", "ü?>"):
        assert object_id(token(json.dumps({"oid": name, "x": 1}).encode())) == name


@pytest.mark.parametrize(
    "secret",
    ["", "password", "a.b.c", "a.b", token(b"[]"), token(b"\xff"), token(b'{"oid": 7}'), "ü.ü.ü"],
)
def test_what_is_no_token_names_nobody(secret) -> None:
    assert object_id(secret) == ""
    assert login("", secret) == (secret,)


def test_the_user_of_the_url_comes_first() -> None:
    secret = token(b'{"oid": "me"}')
    assert login("app", secret) == ("app", secret)
    assert login("", secret) == ("me", secret)
