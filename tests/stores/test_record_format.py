"""What other writers leave behind is read, or said to be unreadable."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Checkpoint, Scope
from eventhub_checkpoints.stores.record_format import (
    Fields,
    checkpoint_of,
    checkpoint_of_columns,
    decimal_int64,
    is_row,
    owner_of,
)

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
TEXTS = st.text(max_size=25) | st.integers().map(str)


def read(fields: Fields) -> Checkpoint:
    return checkpoint_of(SCOPE, "0", fields, "version")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"offset": "12345", "sequencenumber": "7"}, ("12345", 7)),
        ({"offset": "1:AAA:7", "sequencenumber": "7"}, ("1:AAA:7", 7)),
        ({"sequencenumber": "7"}, ("", 7)),
        ({"offset": "", "sequencenumber": "0"}, ("", 0)),
        ({"offset": "no offset", "sequencenumber": "7"}, ("", 7)),
        ({"offset": "None", "sequencenumber": "7"}, ("", 7)),
        ({"offset": None, "sequencenumber": "7"}, ("", 7)),
        ({"Offset": "5", "SequenceNumber": "7"}, ("5", 7)),
        ({"offset": "5", "sequence_number": "7"}, ("5", 7)),
        ({"offset": "5", "sequencenumber": "7", "clientidentifier": "x"}, ("5", 7)),
        ({"offset": "5"}, ("5", None)),
        ({"offset": "5", "sequencenumber": ""}, ("5", None)),
        ({"offset": "5", "sequencenumber": "None"}, ("5", None)),
        ({"offset": "5", "sequencenumber": "abc"}, ("5", None)),
    ],
)
def test_a_position_is_read_in_every_dialect(
    fields: Fields, expected: tuple[str, int | None]
) -> None:
    row = read(fields)
    assert (row.offset, row.sequence_number) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"hdi_isfolder": "true"},
        {"offset": "", "sequencenumber": ""},
        {"offset": "None", "sequencenumber": "None"},
        {"offset": "no offset", "sequencenumber": str(2**63)},
    ],
)
def test_a_row_without_offset_and_number_has_no_position(fields: Fields) -> None:
    assert not read(fields).is_readable


@pytest.mark.parametrize(
    ("offset", "number", "expected"),
    [
        ("5", 7, ("5", 7)),
        ("no offset", 0, ("", 0)),
        (None, None, ("", None)),
        ("5", "7", ("5", 7)),
        ("5", 7.5, ("5", None)),
        ("5", True, ("5", None)),
        (5, 7, ("", 7)),
        (5.5, 7, ("", 7)),
        (b"5", 7, ("", 7)),
    ],
)
def test_a_position_in_columns_is_read_whatever_their_types(
    offset: Any, number: Any, expected: tuple[str, int | None]
) -> None:
    row = checkpoint_of_columns(SCOPE, "0", offset, number, "version")
    assert (row.offset, row.sequence_number) == expected


@pytest.mark.parametrize(
    ("fields", "owner"),
    [
        ({"ownerid": "me"}, "me"),
        ({"OwnerId": "me"}, "me"),
        ({"owner_id": "me"}, "me"),
        ({"ownerid": ""}, ""),
        ({"ownerid": None}, ""),
        ({"OwnerId": None}, ""),
        ({"ownerid": "null"}, ""),
        ({}, ""),
        ({"OwnerId": "theirs", "ownerid": "me"}, "me"),
    ],
)
def test_an_owner_is_read_in_every_dialect(fields: Fields, owner: str) -> None:
    assert owner_of(fields) == owner


@pytest.mark.parametrize(
    ("partition_id", "fields", "expected"),
    [
        ("0", {"ownerid": "me"}, True),
        ("0", {}, True),
        ("", {"ownerid": "me"}, False),
        ("0/deeper", {"ownerid": "me"}, False),
        ("0", {"hdi_isfolder": "true"}, False),
    ],
)
def test_what_is_listed_is_the_row_of_a_partition(
    partition_id: str, fields: Fields, expected: bool
) -> None:
    assert is_row(partition_id, fields) is expected


def test_a_checkpoint_is_of_its_scope_and_partition_with_its_version_and_time() -> None:
    fields = {"offset": "5", "sequencenumber": "7"}
    expected = Checkpoint(SCOPE, "3", "5", 7, "version", 12.0)
    for row in (
        checkpoint_of(SCOPE, "3", fields, "version", 12.0),
        checkpoint_of_columns(SCOPE, "3", "5", 7, "version", 12.0),
    ):
        assert row == expected
        assert row.last_modified_time == 12.0
    assert checkpoint_of(SCOPE, "3", fields, "version").last_modified_time is None


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_read_as_written(number: int) -> None:
    assert decimal_int64(str(number)) == number


def test_the_least_and_the_most_int64_are_read() -> None:
    for number in (-(2**63), 2**63 - 1):
        assert decimal_int64(str(number)) == number
        assert decimal_int64(str(number + (1 if number > 0 else -1))) is None


def test_a_number_has_at_most_19_digits_whatever_it_is() -> None:
    assert decimal_int64(f"{5:019}") == 5
    assert decimal_int64(f"{5:020}") is None


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
def test_no_longer_number_is_read(number: int) -> None:
    assert decimal_int64(str(number)) is None


@pytest.mark.parametrize("text", ["", "-", "--1", "+1", "1.0", " 1", "1_0", "٣", "9" * 5000])
def test_what_is_no_plain_decimal_is_no_number(text: str) -> None:
    assert decimal_int64(text) is None


@given(st.dictionaries(TEXTS, TEXTS | st.none()))
def test_no_row_can_make_reading_fail(fields: dict[str, str | None]) -> None:
    owner_of(fields)
    read(fields)


@given(TEXTS, TEXTS)
def test_a_position_never_has_an_offset_that_says_nothing(offset: str, number: str) -> None:
    assert read({"offset": offset, "sequencenumber": number}).offset not in ("no offset", "None")
