"""Names of blobs: what every official SDK looks for."""

import pytest

from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.blob.protocol import (
    blob_name,
    checked_name_case,
    prefix,
    scope_of,
)

SCOPE = Scope("MyNS.servicebus.windows.net", "MyHub", "$Default")


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
    assert blob_name(SCOPE, kind, "3", name_case) == name


def test_the_partition_keeps_its_spelling() -> None:
    assert blob_name(SCOPE, "ownership", "PartA", "lower").endswith("/ownership/PartA")


def test_lower_case_does_not_depend_on_the_language() -> None:
    assert prefix(Scope("ISTANBUL.net", "hub", "g"), "ownership", "lower").startswith("istanbul.")


def test_a_prefix_ends_with_a_slash_so_that_partition_1_is_not_found_by_it() -> None:
    assert prefix(SCOPE, "checkpoint", "lower") == (
        "myns.servicebus.windows.net/myhub/$default/checkpoint/"
    )


def test_a_port_in_the_namespace_is_part_of_the_name() -> None:
    scope = Scope("localhost:5672", "hub", "g")
    assert blob_name(scope, "ownership", "0", "lower") == "localhost:5672/hub/g/ownership/0"


def test_the_longest_name_that_the_service_takes_is_taken() -> None:
    room = 1024 - len(prefix(SCOPE, "ownership", "lower"))
    assert len(blob_name(SCOPE, "ownership", "p" * room, "lower")) == 1024


def test_a_longer_name_is_refused_with_the_field_and_the_value() -> None:
    partition_id = "p" * 1024
    with pytest.raises(InvalidRecordError, match="at most 1024 characters") as refused:
        blob_name(SCOPE, "ownership", partition_id, "lower")
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
    beginning = prefix(SCOPE, "checkpoint", name_case).removesuffix("checkpoint/")
    assert scope_of(beginning) == (SCOPE if name_case == "as-typed" else SCOPE.folded)


@pytest.mark.parametrize("beginning", ["", "/", "a/", "a/b/", "a//c/", "a/b/c/d/", "a/b/c\n/"])
def test_a_beginning_that_no_scope_has_is_none(beginning: str) -> None:
    assert scope_of(beginning) is None
