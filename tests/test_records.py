"""Records: what the SDK hands in, what it is given back, and what is refused."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import (
    Checkpoint,
    ConfigurationError,
    InvalidRecordError,
    Ownership,
    Scope,
    SequenceOffset,
)
from eventhub_checkpoints._shared.offset_words import meaning_of
from eventhub_checkpoints._shared.secrets import holds_secret
from eventhub_checkpoints.errors import MISSING
from eventhub_checkpoints.records import Proposal
from waiting import LIMIT

SCOPE = Scope("NS.servicebus.windows.net", "Orders", "$Default")
NAMES = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\"), min_size=1
).filter(lambda name: name not in {".", ".."} and (name.isdecimal() or not holds_secret(name)))
CHECKPOINT: dict[str, Any] = SCOPE.as_dict() | {
    "partition_id": "0",
    "offset": "12345",
    "sequence_number": 7,
}
CLAIM: dict[str, Any] = SCOPE.as_dict() | {"partition_id": "0", "owner_id": "me", "etag": "e1"}


@given(NAMES, NAMES, NAMES)
def test_a_scope_comes_back_as_it_was_spelled(namespace: str, hub: str, group: str) -> None:
    scope = Scope.checked(namespace, hub, group)
    assert Scope.from_dict(scope.as_dict()) == scope


def test_scopes_are_compared_without_regard_to_case() -> None:
    assert Scope("ns.servicebus.windows.net", "orders", "$default") == SCOPE.folded


def test_a_scope_stands_for_its_three_names() -> None:
    assert [*SCOPE] == [*SCOPE.as_dict().values()]


def test_a_namespace_with_a_port_is_legal() -> None:
    assert str(Scope.checked("localhost:5672", "orders", "$Default")).startswith("localhost:5672/")


@pytest.mark.parametrize(
    "url",
    ["sb://NS.example.net/", "sb://NS.example.net", "https://NS.example.net/", "NS.example.net/"],
)
def test_a_url_in_place_of_a_host_name_is_refused_when_the_scope_is_built(url: str) -> None:
    said = "expected the host name alone, without scheme and slashes: 'NS.example.net'"
    with pytest.raises(InvalidRecordError, match=said) as failure:
        Scope(url, "orders", "$Default")
    assert (failure.value.field, failure.value.value) == ("fully_qualified_namespace", url)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("sb://a/b", "orders", "$Default"), "expected a printable string without slashes"),
        (("ns/orders", "orders", "$Default"), "expected a printable string without slashes"),
        (("", "orders", "$Default"), "expected a non-empty string"),
        (("ns", 5, "$Default"), "eventhub_name is 5; expected a non-empty string"),
        (("ns", "orders", "group/0"), "consumer_group is 'group/0'; expected a printable string"),
        (
            ("Endpoint=sb://ns/;SharedAccessKey=aHVzaA==", "orders", "$Default"),
            "expected a name, not a connection string, key or token",
        ),
    ],
)
def test_names_that_no_store_keeps_are_refused_when_the_scope_is_built(
    names: tuple[Any, Any, Any], said: str
) -> None:
    with pytest.raises(InvalidRecordError, match=re.escape(said)) as failure:
        Scope(*names)
    assert "aHVzaA" not in str(failure.value)


@pytest.mark.parametrize("host", ["ns", "localhost", "eventhubs-emulator:5672", "127.0.0.1:5672"])
def test_a_host_name_needs_no_dot(host: str) -> None:
    assert pickle.loads(pickle.dumps(Scope(host, "h", "g"))) == (host, "h", "g")


def test_a_scope_without_a_name_says_which() -> None:
    make: Any = Scope
    with pytest.raises(ConfigurationError, match=r"^Scope needs consumer_group=$"):
        make("ns", "orders")


@pytest.mark.parametrize("name", [*SCOPE.as_dict(), "partition_id", "sequence_number"])
def test_a_missing_key_is_called_missing(name: str) -> None:
    row = {key: value for key, value in CHECKPOINT.items() if key != name}
    with pytest.raises(InvalidRecordError, match=f"^{name} is missing; expected ") as failure:
        Checkpoint.from_dict(row, "")
    assert pickle.loads(pickle.dumps(failure.value)).value is MISSING


@pytest.mark.parametrize("name", ["fully_qualified_namespace", "eventhub_name", "consumer_group"])
@pytest.mark.parametrize(
    "value", [None, "", 5, b"ns", "a/b", "a\\b", ".", "..", "a\nb", "a\x00b", "\ud800"]
)
def test_an_unusable_name_is_named_with_its_value(name: str, value: object) -> None:
    for read in (
        lambda row: Proposal.from_dict(row, ""),
        lambda row: Checkpoint.from_dict(row, ""),
    ):
        with pytest.raises(InvalidRecordError) as failure:
            read((CLAIM | CHECKPOINT) | {name: value})
        assert (failure.value.field, failure.value.value) == (name, value)


def test_a_name_that_the_locale_could_not_decode_is_answered_with_what_to_set() -> None:
    name = "ü".encode().decode("ascii", "surrogateescape")
    with pytest.raises(InvalidRecordError, match="where the locale is not UTF-8, set PYTHONUTF8=1"):
        Scope.checked("ns", "orders", name)


@pytest.mark.parametrize("value", [None, "", 5, "a/b", "a\\b", "..", "\x7f"])
def test_an_unusable_partition_is_named_with_its_value(value: object) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        Proposal.from_dict(CLAIM | {"partition_id": value}, "")
    assert (failure.value.field, failure.value.value) == ("partition_id", value)


def test_a_claim_without_a_key_is_told_that_it_is_missing() -> None:
    with pytest.raises(InvalidRecordError, match=r"^partition_id is missing; expected "):
        Proposal.from_dict(SCOPE.as_dict(), "")


@pytest.mark.parametrize("value", [5, b"me", "a\nb"])
def test_an_unusable_owner_is_named_with_its_value(value: object) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        Proposal.from_dict(CLAIM | {"owner_id": value}, "")
    assert (failure.value.field, failure.value.value) == ("owner_id", value)


@pytest.mark.parametrize("value", [None, ""])
def test_an_owner_that_is_nobody_releases(value: object) -> None:
    assert Proposal.from_dict(CLAIM | {"owner_id": value}, "").is_release


@pytest.mark.parametrize("row", [None, "x", 5, ["0"]])
def test_what_is_no_dict_is_no_record(row: Any) -> None:
    for read in (Proposal.from_dict, Checkpoint.from_dict):
        with pytest.raises(InvalidRecordError, match=r"^record is .*; expected a dict"):
            read(row, "")


@pytest.mark.parametrize("value", [0, 12])
def test_a_partition_that_is_a_number_is_answered_with_its_text(value: int) -> None:
    with pytest.raises(InvalidRecordError, match=f"such as '{value}'$"):
        Proposal.from_dict(CLAIM | {"partition_id": value}, "")


@pytest.mark.parametrize("value", [5, 0, b"e1", ["e1"]])
def test_an_unusable_etag_is_named_with_its_value(value: object) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        Proposal.from_dict(CLAIM | {"etag": value}, "")
    assert (failure.value.field, failure.value.value) == ("etag", value)


@pytest.mark.parametrize("etag", [None, ""])
def test_an_empty_etag_is_no_etag(etag: object) -> None:
    assert Proposal.from_dict(CLAIM | {"etag": etag}, "new").etag is None


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_a_sequence_number_as_number_and_as_text(number: int) -> None:
    for value in (number, str(number)):
        read = Checkpoint.from_dict(CHECKPOINT | {"sequence_number": value}, "")
        assert read.sequence_number == number
        assert type(read.sequence_number) is int


class Number(int):
    """An integer of a subclass, as tomlkit's are."""


class Index:
    """An integer that is not an int, as numpy's are."""

    def __index__(self) -> int:
        return 2**63 - 1


# In a process of its own: a check that counts up to the number holds the interpreter's lock, and
# nothing in this process could end it.
@pytest.mark.waits
def test_an_integer_of_any_type_is_a_sequence_number_at_once() -> None:
    program = """
from enum import IntEnum
from eventhub_checkpoints import Checkpoint, CoalescingCheckpointStore, MemoryCheckpointStore
from eventhub_checkpoints import SequenceOffset
from test_records import CHECKPOINT, Index, Number

def coalesced(row):
    with CoalescingCheckpointStore(MemoryCheckpointStore()) as store:
        store.update_checkpoint(row)

NUMBERS = [
    SequenceOffset(2**63 - 1),
    Number(-(2**63)),
    Number(2**63 - 1),
    IntEnum("Progress", {"LAST": 2**63 - 1}).LAST,
    Index(),
]
for number in NUMBERS:
    row = CHECKPOINT | {"sequence_number": number}
    print(type(number).__name__, flush=True)
    coalesced(row)
    read = Checkpoint.from_dict(row, "").sequence_number
    assert type(read) is int and abs(read) >= 2**63 - 1, read
"""
    folder = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT, env=environment)


@pytest.mark.parametrize(
    "value",
    [None, "", "-", "7.0", 7.0, "abc", "\u0667", "+7", " 7", True, 2**63, -(2**63) - 1, "9" * 5000],
)
def test_any_other_sequence_number_is_named_with_its_value(value: object) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        Checkpoint.from_dict(CHECKPOINT | {"sequence_number": value}, "")
    assert (failure.value.field, failure.value.value) == ("sequence_number", value)


@pytest.mark.parametrize("value", [1.5, True, b"1", "a\nb", ["1"], 5, -1])
def test_an_unusable_offset_is_named_with_its_value(value: object) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        Checkpoint.from_dict(CHECKPOINT | {"offset": value}, "")
    assert (failure.value.field, failure.value.value) == ("offset", value)


@pytest.mark.parametrize("value", [None, "", 7, SequenceOffset(7), SequenceOffset(0)])
def test_an_offset_that_is_not_known_is_stored_as_nothing(value: object) -> None:
    assert Checkpoint.from_dict(CHECKPOINT | {"offset": value}, "").offset == ""


def test_an_int_that_may_be_an_offset_is_refused_with_the_string_to_pass() -> None:
    with pytest.raises(InvalidRecordError, match=r"^offset is 5; expected a string such as '5'"):
        Checkpoint.from_dict(CHECKPOINT | {"offset": 5}, "")


@pytest.mark.parametrize("field", ["eventhub_name", "consumer_group", "partition_id"])
@pytest.mark.parametrize("secret", ["SharedAccessKey=c2VjcmV0", "token:c2VjcmV0", "sig=c2VjcmV0"])
def test_a_secret_is_not_a_name(field: str, secret: str) -> None:
    with pytest.raises(
        InvalidRecordError, match="not a connection string, key or token"
    ) as refused:
        Checkpoint.from_dict(CHECKPOINT | {field: secret}, "")
    assert "c2VjcmV0" not in str(refused.value)


@given(
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(
        lambda text: meaning_of(text) is None
    )
)
def test_an_offset_is_opaque_and_comes_back_as_it_was(offset: str) -> None:
    read = Checkpoint.from_dict(CHECKPOINT | {"offset": offset}, "")
    assert read.as_dict(SCOPE)["offset"] == offset


def test_a_checkpoint_comes_back_as_a_fresh_dict() -> None:
    read = Checkpoint.from_dict(CHECKPOINT, "v")
    assert read.as_dict(SCOPE) == CHECKPOINT
    assert read.as_dict(SCOPE) is not read.as_dict(SCOPE)


def test_the_caller_keeps_its_own_spelling_of_the_names() -> None:
    stored = Checkpoint(SCOPE.folded, "0", "1", 1)
    assert stored.as_dict(SCOPE)["eventhub_name"] == "Orders"


@pytest.mark.parametrize("number", [0, 1, 2**63 - 1])
def test_an_offset_that_is_not_known_makes_the_client_resume_by_number(number: int) -> None:
    offset = Checkpoint(SCOPE, "0", "", number).as_dict(SCOPE)["offset"]
    assert isinstance(offset, int)
    assert offset == number
    assert offset, "the client starts at the default position where an offset is false"


def test_an_ownership_has_every_key_that_the_client_reads() -> None:
    row = Ownership(SCOPE.folded, "0", "", "e1", 1.5).as_dict(SCOPE)
    assert row == SCOPE.as_dict() | {
        "partition_id": "0",
        "owner_id": "",
        "etag": "e1",
        "last_modified_time": 1.5,
    }


def test_a_won_proposal_carries_its_own_etag_or_the_servers() -> None:
    proposal = Proposal.from_dict(CLAIM, "ours")
    assert proposal.won(1.0).etag == "ours"
    assert proposal.won(1.0, "the server's").etag == "the server's"


def test_the_text_of_a_scope_shows_no_secret() -> None:
    scope = Scope._make(("Endpoint=sb://ns/;SharedAccessKey=aHVzaA==", "orders", "$Default"))
    assert "aHVzaA" not in repr(scope)
    assert repr(Scope("ns", "orders", "$Default")) == "Scope('ns', 'orders', '$Default')"


def test_of_what_is_not_to_be_shown_an_error_names_the_type() -> None:
    error = InvalidRecordError("event", list, "an event")
    assert str(error) == "event is of type list; expected an event"
    assert (error.value, pickle.loads(pickle.dumps(error)).value) == (list, list)
