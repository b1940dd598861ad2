"""Addresses and statements of the Cassandra store, without a server."""

import re

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.cassandra.protocol import (
    MIGRATIONS,
    Statements,
    checked_keyspace,
    checked_replication,
    definitions,
    keyspace_definition,
    scope_key,
)
from eventhub_checkpoints.stores.cassandra.url import Address, contact_point

PASSWORD = "p@ss/w:rd?"
QUOTED = "p%40ss%2Fw%3Ard%3F"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("cassandra://a/ks", ((("a", 9042),), "ks", None, None, None)),
        ("CASSANDRA://a:1/ks", ((("a", 1),), "ks", None, None, None)),
        ("cassandra://a:1,b/ks", ((("a", 1), ("b", 9042)), "ks", None, None, None)),
        ("cassandra://[::1]:1,[fe80::2]/", ((("::1", 1), ("fe80::2", 9042)), None, *[None] * 3)),
        ("cassandra://a", ((("a", 9042),), None, None, None, None)),
        ("cassandra://a?namespace=ks", ((("a", 9042),), "ks", None, None, None)),
        (
            "cassandra://a/ks?namespace=ks&datacenter=dc%201",
            ((("a", 9042),), "ks", *[None] * 2, "dc 1"),
        ),
        (f"cassandra://me:{QUOTED}@a/ks", ((("a", 9042),), "ks", "me", PASSWORD, None)),
    ],
)
def test_a_url_is_taken_apart(url, expected) -> None:
    found = Address.parse(url)
    parts = (found.contact_points, found.keyspace, found.username, found.password, found.datacenter)
    assert parts == expected


@pytest.mark.parametrize(
    "url",
    [
        "cassandra:ks",
        "redis://a/ks",
        "cassandra:///ks",
        "cassandra://a,/ks",
        "cassandra://a:0/ks",
        "cassandra://a:+1/ks",
        "cassandra://a:65536/ks",
        "cassandra://a:x/ks",
        f"cassandra://{QUOTED}@a/ks",
        f"cassandra://:{QUOTED}@a/ks",
        f"cassandra://me:{QUOTED}@/ks",
        f"cassandra://a/ks?password={QUOTED}",
        "cassandra://a/ks?datacenter=a&datacenter=b",
        "cassandra://a/ks?namespace=other",
        f"cassandra://me:9?{QUOTED}@a/ks",
    ],
)
def test_what_is_no_such_url_is_refused_without_its_secret(url) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Address.parse(url)
    assert QUOTED not in str(refused.value)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "nearest"),
    [("datacentre", "datacenter, namespace"), ("namespce", "namespace, datacenter")],
)
def test_an_option_that_is_not_known_is_told_with_the_nearest_first(option, nearest) -> None:
    said = f"no option {option}; expected one of {nearest}; "
    with pytest.raises(ConfigurationError, match=said):
        Address.parse(f"cassandra://a/ks?{option}=x")


def test_the_text_of_an_address_has_no_password() -> None:
    found = Address.parse(f"cassandra://me:{QUOTED}@a/ks")
    assert PASSWORD not in f"{found} {found!r}"


def test_arguments_beside_the_url_complete_it_and_do_not_contradict_it() -> None:
    found = Address.parse("cassandra://a/ks")
    assert found.settings(("me", "secret"), {"write_timeout": 3}) == {
        "namespace": "ks",
        "username": "me",
        "password": "secret",
        "write_timeout": 3,
    }
    with pytest.raises(
        ConfigurationError, match="namespace has one value in the URL and another as an argument"
    ):
        found.settings(None, {"namespace": "other"})
    with pytest.raises(ConfigurationError, match="user and password"):
        Address.parse("cassandra://me:secret@a/ks").settings(("me", "secret"), {})


@pytest.mark.parametrize("credential", ["secret", ("me",), ("me", None), object()])
def test_a_credential_that_is_no_pair_is_refused_unseen(credential) -> None:
    with pytest.raises(ConfigurationError, match="expected user and password") as refused:
        Address.parse("cassandra://a/ks").settings(credential, {})
    assert "secret" not in str(refused.value)


def test_a_contact_point_may_be_a_pair() -> None:
    assert contact_point(("a", 1)) == ("a", 1)
    assert contact_point("a", 7) == ("a", 7)
    assert contact_point("::1", 7) == ("::1", 7)


@pytest.mark.parametrize("name", ["", "A", "1a", "_a", "a-b", 'a"; DROP', "a" * 49, None, 7])
def test_a_name_that_no_keyspace_has_is_refused(name) -> None:
    with pytest.raises(ConfigurationError, match="namespace is"):
        checked_keyspace(name)


def test_copies_are_a_number_or_the_whole_map() -> None:
    assert checked_replication(3, None) == {"class": "SimpleStrategy", "replication_factor": 3}
    assert checked_replication(3, "dc1") == {"class": "NetworkTopologyStrategy", "dc1": 3}
    whole = {"class": "NetworkTopologyStrategy", "a": 3, "b": 2}
    assert checked_replication(whole, None) == whole


@pytest.mark.parametrize("replication", [0, -1, True, 1.5, "3", None, {}, {"dc1": 3}])
def test_copies_that_cannot_be_are_refused(replication) -> None:
    with pytest.raises(ConfigurationError, match="replication is"):
        checked_replication(replication, None)


def test_what_creates_a_keyspace_quotes_what_it_was_given() -> None:
    said = keyspace_definition("ks", {"class": "NetworkTopologyStrategy", "o'dc": 3})
    assert said == (
        'CREATE KEYSPACE IF NOT EXISTS "ks" WITH replication = '
        "{'class': 'NetworkTopologyStrategy', 'o''dc': '3'}"
    )


def texts_of(keyspace: str) -> list[str]:
    """All statements about a keyspace."""
    several = vars(Statements(keyspace)).values()
    return [text for each in several for text in ([each] if isinstance(each, str) else each)]


def test_every_table_is_named_with_its_keyspace() -> None:
    for text in [*texts_of("ks"), *definitions("ks", 0)]:
        tables = re.findall(r"(?:FROM|INTO|UPDATE|EXISTS) (\S+\.\S+)", text)
        assert tables, text
        assert all(table.startswith(('"ks".', "system_schema.")) for table in tables), text


def test_every_write_is_conditional_and_none_expires() -> None:
    for text in texts_of("ks"):
        assert text.startswith("SELECT") or " IF " in text, text
        assert "TTL" not in text


def test_a_migration_can_be_carried_out_twice() -> None:
    texts = [text for migration in MIGRATIONS for text in migration]
    assert all("IF NOT EXISTS" in text for text in texts)
    assert definitions("ks", len(MIGRATIONS)) == definitions("ks", 0)[:1]


def test_a_scope_has_one_spelling_as_a_key() -> None:
    assert scope_key(Scope("NS", "Hub", "$Default")) == ("ns", "hub", "$default")
