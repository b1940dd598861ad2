"""Groups of stores with a prefix, on one container with groups of stores without."""

from functools import partial
from typing import Any

import pytest

from backends.blob import Blob, BlobPlace
from conformance_checks import not_kept, without
from eventhub_checkpoints import open_store
from eventhub_checkpoints.cli.target import Target
from eventhub_checkpoints.conformance import Accessors, Certifier
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.migrate import read
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.registry import shown

PREFIX = "Team-A/orders"
ABOUT_ROWS = [
    check
    for check in without(Blob.lacks)
    if not check.function.__module__.endswith((".races", ".bounds"))
]
"""The checks that a name could break; races and time limits are the same with any name."""


@pytest.fixture
def prefixed(variant: Any, blob_container: Any) -> Any:
    """A store with a prefix."""
    return variant.open(blob_container, prefix=PREFIX)


def names(raw: Any) -> list[str]:
    return sorted(raw.list_blob_names())


def test_the_prefix_is_before_the_names_of_all_blobs(
    variant: Any, prefixed: Any, raw: Any, blob_container: Any, scope: Scope
) -> None:
    prefixed.take("0", "a")
    prefixed.save("0", 7)
    typed = variant.open(blob_container, prefix=PREFIX, name_case="as-typed")
    typed.take("0", "b")
    assert names(raw) == sorted(
        [
            f"{PREFIX}/{scope.folded}/checkpoint/0",
            f"{PREFIX}/{scope.folded}/ownership/0",
            f"{PREFIX}/{scope}/ownership/0",
        ]
    )


def test_groups_with_another_prefix_or_none_are_not_seen(
    variant: Any, client: Any, prefixed: Any, blob_container: Any, scope: Scope
) -> None:
    others = [client, variant.open(blob_container, prefix="Team-A"),
              variant.open(blob_container, prefix="team-a/orders")]  # fmt: skip
    prefixed.take("0", "a")
    prefixed.save("0", 7)
    for other in others:
        assert other.list_ownership() == []
        assert other.list_checkpoints() == []
        assert other.call("list_scopes") == []
        assert other.call("delete_scope", *scope) == 0
        other.take("0", "b")
        other.save("0", 3)
    assert prefixed.owner("0") == "a"
    assert prefixed.call("list_scopes") == [scope.folded]
    assert [each.call("list_scopes") for each in others] == [[scope.folded]] * 3
    assert prefixed.call("delete_scope", *scope) == 2
    assert [each.owner("0") for each in others] == ["b"] * 3


def test_an_official_store_does_not_see_the_group(
    variant: Any, prefixed: Any, blob_container: Any
) -> None:
    prefixed.take("0", "a")
    prefixed.save("0", 7)
    official = variant.open_official(blob_container)
    assert official.list_ownership() == []
    assert official.list_checkpoints() == []


@pytest.mark.parametrize("has_sas", [False, True])
def test_a_url_may_have_the_prefix_beside_a_signature(
    variant: Any, prefixed: Any, blob_container: Any, sas: Any, has_sas: bool
) -> None:
    prefixed.take("0", "a")
    urls = [f"{blob_container.url}?prefix={PREFIX}",
            f"{blob_container.url}?prefix={PREFIX.replace('/', '%2F')}"]  # fmt: skip
    if has_sas:
        urls = [f"{url}&{sas('racwl')}" for url in urls]
        urls.append(f"{blob_container.url}?{sas('racwl')}&prefix={PREFIX}")
    for url in urls:
        opened = variant.client(variant.open_store(url))
        assert opened.owner("0") == "a"
        assert shown(url) in (urls[0].partition("&")[0], urls[1].partition("&")[0])
        same = variant.client(variant.open_store(url, prefix=PREFIX))
        assert same.owner("0") == "a"


def test_a_command_to_paste_keeps_the_prefix_without_the_signature(scope: Scope) -> None:
    url = "https://acct.blob.core.windows.net/positions"
    target = Target(
        store=f"{url}?sv=2022-11-02&prefix=team-a&sig=c2VjcmV0c2VjcmV0", hub="ns/orders"
    )
    assert f"--store '{url}?prefix=team-a'" in target.options_for(scope)
    token = "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2lnbmF0dXJl"
    planted = Target(store=f"{url}?prefix={token}&sig=c2VjcmV0c2VjcmV0", hub="ns/orders")
    assert f"--store {url} " in planted.options_for(scope)


def test_a_configuration_may_have_the_prefix(
    variant: Any, prefixed: Any, blob_container: Any
) -> None:
    prefixed.take("0", "a")
    account = blob_container.url.rpartition("/")[0]
    table = {"backendType": "AzureBlob", "namespace": blob_container.name,
             "azureblob": {"useEmulator": True, "endpoint": account},
             "settings": {"prefix": PREFIX}}  # fmt: skip
    assert variant.client(variant.open_store(table)).owner("0") == "a"


def test_the_name_of_the_store_has_the_prefix(prefixed: Any, client: Any) -> None:
    assert repr(prefixed.store).endswith(f", prefix='{PREFIX}')")
    assert "prefix" not in repr(client.store)


def test_rows_without_the_prefix_or_with_another_one_are_shown_for_diagnosis(
    variant: Any, client: Any, prefixed: Any, blob_container: Any, raw: Any, scope: Scope
) -> None:
    near = variant.open(blob_container, prefix="team-b", name_case="as-typed")
    prefixed.save("0", 1)
    prefixed.save("1", 2)
    assert client.call("examine", *scope).spellings == []  # too deep to be found
    near.take("2", "b")
    client.take("0", "c")
    raw.upload_blob("data/file", b"")
    found = prefixed.call("examine", *scope)
    assert [str(each) for each in found.spellings] == [str(scope.folded), f"team-b/{scope}"]
    assert [len(each.ownerships.rows) for each in found.spellings] == [1, 1]
    assert [str(each) for each in client.call("examine", *scope).spellings] == [f"team-b/{scope}"]
    typed = variant.open(blob_container, prefix=PREFIX, name_case="as-typed")
    spellings = typed.call("examine", *scope).spellings
    assert [str(each) for each in spellings] == [
        str(scope.folded),
        f"{PREFIX}/{scope.folded}",
        f"team-b/{scope}",
    ]


def test_a_container_with_much_else_in_it_is_searched_for_the_likely_places_only(
    variant: Any, client: Any, blob_container: Any, raw: Any, scope: Scope, monkeypatch: Any
) -> None:
    folder = "_async" if variant.name == "aio" else "_sync"
    monkeypatch.setattr(f"eventhub_checkpoints.stores.blob.{folder}.store.MOST_PREFIXES", 3)
    for number in range(3):
        raw.upload_blob(f"data-{number}/file", b"")
    near = variant.open(blob_container, prefix="team-b")
    near.take("0", "b")
    assert client.call("examine", *scope).spellings == []
    client.take("0", "a")
    [spelling] = near.call("examine", *scope).spellings
    assert (spelling.prefix, spelling.scope) == ("", scope.folded)


def test_positions_under_a_prefix_are_migrated_to_another_case(
    variant: Any, blob_container: Any, scope: Scope
) -> None:
    url = f"{blob_container.url}?prefix={PREFIX}"
    with open_store(url, name_case="as-typed") as store:
        store.update_checkpoint(Position(7, "700").as_dict(scope, "0"))
    expected = [Checkpoint(scope.folded, "0", "700", 7)]
    assert read("as-typed", url, scope.folded) == expected
    assert read("as-typed", blob_container.url, scope.folded, prefix=PREFIX) == expected
    with pytest.raises(ConfigurationError, match="no position of"):
        read("as-typed", blob_container.url, scope.folded)
    for format in ("eph", "iothub-react"):
        with pytest.raises(ConfigurationError, match=r"leave it out, and pass the prefix that the"):
            read(format, url, scope)


@pytest.mark.parametrize(
    ("url", "prefix", "message"),
    [
        ("?prefix=", None, "prefix is empty; leave it out, or name one, such as team-a"),
        ("?prefix", None, "prefix is empty; leave it out, or name one, such as team-a"),
        ("?prefix=/a", None, "prefix is '/a'; expected names of ASCII letters, digits"),
        ("?prefix=a/", None, "prefix is 'a/'; expected names of ASCII letters, digits"),
        ("?prefix=a//b", None, "prefix is 'a//b'; expected names of ASCII letters, digits"),
        ("?prefix=a+b", None, "prefix is 'a b'; expected names of ASCII letters, digits"),
        (f"?prefix={'p' * 257}", None, "prefix has 257 characters; expected at most 256"),
        ("?prefix=a&prefix=a", None, "prefix is in the URL more than once; give it once"),
        ("?prefix=a", "b", "prefix is 'b', and 'a' in the URL; give it once"),
        ("?Prefix=a", None, "the URL's query has 'Prefix'; expected a SAS, or prefix=NAME in low"),
        ("?prefx=a", None, "the URL's query has 'prefx'; expected a SAS, or prefix=NAME in lower"),
        ("/team-a", None, "'positions/team-a' is not a container name: expected 3 to 63 lower"),
        ("", "", "prefix is empty; leave it out, or name one, such as team-a"),
        ("", 5, "prefix is 5; expected names of ASCII letters, digits"),
    ],
)  # fmt: skip
def test_a_mistake_about_the_prefix_is_said_in_one_sentence(
    variant: Any, url: str, prefix: Any, message: str
) -> None:
    arguments = {} if prefix is None else {"prefix": prefix}
    with pytest.raises(ConfigurationError) as mistake:
        variant.open_store(f"https://acct.blob.core.windows.net/positions{url}", **arguments)
    assert str(mistake.value).startswith(message)


def test_a_misspelt_prefix_is_refused(variant: Any, blob_container: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^prefx is not a setting; did you mean prefix"):
        variant.open(blob_container, prefx="a")


@pytest.mark.parametrize("variant", ["sync"], indirect=True)
def test_with_a_prefix_the_store_keeps_the_contract(variant: Any, blob_container: Any) -> None:
    place = BlobPlace(blob_container.url, PREFIX.lower())
    make = partial(variant.open_store, place.url)
    assert len(ABOUT_ROWS) > 40
    with Certifier(make, Accessors(put_raw=place.put_raw)) as certifier:
        broken = not_kept(certifier, ABOUT_ROWS)
    assert not broken, "\n".join(broken)
