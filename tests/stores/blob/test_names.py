"""Names of blobs: what every official SDK looks for."""

import pytest

from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.name_case import checked_name_case
from eventhub_checkpoints.stores.blob.protocol import (
    LONGEST_PREFIX,
    BlobNames,
    blob_name,
    checked_prefix,
)

SCOPE = Scope("MyNS.servicebus.windows.net", "MyHub", "$Default")
LOWER = BlobNames()


@pytest.mark.parametrize(
    ("kind", "name_case", "name"),
    [
        ("ownership", "lower", "myns.servicebus.windows.net/myhub/$default/ownership/3"),
        ("checkpoint", "lower", "myns.servicebus.windows.net/myhub/$default/checkpoint/3"),
        ("ownership", "as-typed", "MyNS.servicebus.windows.net/MyHub/$Default/ownership/3"),
        ("checkpoint", "as-typed", "MyNS.servicebus.windows.net/MyHub/$Default/checkpoint/3"),
    ],
)
def test_a_blob_is_named_after_scope_kind_and_partition(
    kind: str, name_case: str, name: str
) -> None:
    assert blob_name(BlobNames(name_case), SCOPE, kind, "3") == name


def test_the_partition_keeps_its_spelling() -> None:
    assert blob_name(LOWER, SCOPE, "ownership", "PartA").endswith("/ownership/PartA")


def test_lower_case_does_not_depend_on_the_language() -> None:
    assert LOWER.start(Scope("ISTANBUL.net", "hub", "g"), "ownership").startswith("istanbul.")


def test_a_prefix_ends_with_a_slash_so_that_partition_1_is_not_found_by_it() -> None:
    assert LOWER.start(SCOPE, "checkpoint") == (
        "myns.servicebus.windows.net/myhub/$default/checkpoint/"
    )


def test_a_port_in_the_namespace_is_part_of_the_name() -> None:
    scope = Scope("localhost:5672", "hub", "g")
    assert blob_name(LOWER, scope, "ownership", "0") == "localhost:5672/hub/g/ownership/0"


def test_the_longest_name_that_the_service_takes_is_taken() -> None:
    room = 1024 - len(LOWER.start(SCOPE, "ownership"))
    assert len(blob_name(LOWER, SCOPE, "ownership", "p" * room)) == 1024


def test_a_longer_name_is_refused_with_the_field_and_the_value() -> None:
    partition_id = "p" * 1024
    with pytest.raises(InvalidRecordError, match="at most 1024 characters") as refused:
        blob_name(LOWER, SCOPE, "ownership", partition_id)
    assert (refused.value.field, refused.value.value) == ("partition_id", partition_id)


@pytest.mark.parametrize("name_case", ["lower", "as-typed"])
def test_both_cases_are_known(name_case: str) -> None:
    assert checked_name_case(name_case) == name_case


@pytest.mark.parametrize("name_case", ["upper", "", "Lower", None])
def test_any_other_case_is_refused(name_case: str) -> None:
    with pytest.raises(ConfigurationError, match="expected 'lower' or 'as-typed'"):
        checked_name_case(name_case)


@pytest.mark.parametrize("name_case", ["lower", "as-typed"])
def test_the_beginning_of_a_name_tells_its_scope(name_case: str) -> None:
    for prefix in ("", "Team-a/orders/"):
        names = BlobNames(name_case, prefix)
        beginning = names.start(SCOPE, "checkpoint").removesuffix("checkpoint/")
        assert beginning.startswith(prefix)
        assert names.scope_of(beginning) == (SCOPE if name_case == "as-typed" else SCOPE.folded)


@pytest.mark.parametrize("beginning", ["", "/", "a/", "a/b/", "a//c/", "a/b/c/d/", "a/b/c\n/"])
def test_a_beginning_that_no_scope_has_is_none(beginning: str) -> None:
    assert LOWER.scope_of(beginning) is None


@pytest.mark.parametrize("prefix", ["a", "team-a", "Team_A/orders.v2/1", "p" * LONGEST_PREFIX])
def test_a_prefix_is_taken_as_it_is(prefix: str) -> None:
    assert checked_prefix(prefix) == prefix
    names = BlobNames("lower", f"{prefix}/")
    assert blob_name(names, SCOPE, "ownership", "3") == (
        f"{prefix}/myns.servicebus.windows.net/myhub/$default/ownership/3"
    )


def test_no_prefix_is_none() -> None:
    assert checked_prefix(None) == ""


NOT_A_PREFIX = (
    "; expected names of ASCII letters, digits, '.', '_' and '-' with a / between them, such as "
    "team-a/orders: no / at the ends, no // and no name that ends in a dot"
)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("", "prefix is empty; leave it out, or name one, such as team-a"),
        ("/team-a", f"prefix is '/team-a'{NOT_A_PREFIX}"),
        ("team-a/", f"prefix is 'team-a/'{NOT_A_PREFIX}"),
        ("team//a", f"prefix is 'team//a'{NOT_A_PREFIX}"),
        ("..", f"prefix is '..'{NOT_A_PREFIX}"),
        ("team/.", f"prefix is 'team/.'{NOT_A_PREFIX}"),
        ("team./a", f"prefix is 'team./a'{NOT_A_PREFIX}"),
        ("team a", f"prefix is 'team a'{NOT_A_PREFIX}"),
        ("team-a\n", f"prefix is 'team-a\\n'{NOT_A_PREFIX}"),
        ("\u00e4", f"prefix is '\u00e4'{NOT_A_PREFIX}"),
        ("a\\b", f"prefix is 'a\\\\b'{NOT_A_PREFIX}"),
        (5, f"prefix is 5{NOT_A_PREFIX}"),
        ("p" * 257, "prefix has 257 characters; expected at most 256"),
    ],
)
def test_what_is_no_prefix_is_refused(prefix: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        checked_prefix(prefix)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "secret",
    ["sv=2022-11-02&sig=c2VjcmV0c2VjcmV0", "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2VjcmV0c2VjcmV0"],
)
def test_a_secret_is_no_prefix_and_is_not_shown(secret: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^prefix is .*; expected names") as refused:
        checked_prefix(secret)
    assert "c2VjcmV0" not in str(refused.value)
