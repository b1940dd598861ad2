"""Words in place of an offset: the table, and what each reader makes of each word."""

import json
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import Checkpoint, ConfigurationError, MemoryCheckpointStore, Scope
from eventhub_checkpoints._shared.offset_words import (
    OFFSET_WORDS,
    Meaning,
    OffsetWord,
    meaning_of,
)
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.processing.options import require_start
from eventhub_checkpoints.receive.position import EventPosition, after
from eventhub_checkpoints.records import SequenceOffset
from eventhub_checkpoints.spark.source.options import parse_one_position
from eventhub_checkpoints.stores.legacy import iothub_react, leases
from eventhub_checkpoints.stores.record_format import checkpoint_of

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
PAGE = Path(__file__).parents[2] / "docs/reference/wire-format.md"

every_word = pytest.mark.parametrize("word", OFFSET_WORDS, ids=[each.text for each in OFFSET_WORDS])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_repeats_the_table() -> None:
    section = PAGE.read_text().partition("## Words in place of an offset")[2].partition("What")[0]
    rows = [cells(line) for line in section.splitlines() if line.startswith("|")][2:]
    assert rows == [
        [
            f"`{word.text}`" if word.text else "(empty)",
            str(word.meaning),
            "yes" if word.is_taken else "no",
            word.users,
        ]
        for word in OFFSET_WORDS
    ]


def test_words_are_compared_exactly() -> None:
    assert meaning_of("@Latest") is meaning_of(" -1") is meaning_of(-1) is meaning_of("0") is None


@every_word
@pytest.mark.parametrize("number", [0, 4])
def test_a_row_with_a_number_goes_on_by_it(word: OffsetWord, number: int) -> None:
    fields = {"offset": word.text, "sequencenumber": str(number)}
    listed = checkpoint_of(SCOPE, "0", fields, "version").as_dict(SCOPE)
    assert isinstance(listed["offset"], SequenceOffset)
    assert (listed["offset"], listed["sequence_number"]) == (number, number)
    assert after("0", listed) == EventPosition.from_sequence_number(number)


@every_word
def test_a_row_without_a_number_has_the_word_or_nothing(word: OffsetWord) -> None:
    row = checkpoint_of(SCOPE, "0", {"offset": word.text}, "version")
    if word.meaning is Meaning.UNKNOWN:
        assert not row.is_readable
    else:
        assert row.as_dict(SCOPE)["offset"] == word.text


@every_word
def test_a_negative_number_beside_an_end_of_the_stream_says_nothing(word: OffsetWord) -> None:
    row = checkpoint_of(SCOPE, "0", {"offset": word.text, "sequencenumber": "-1"}, "version")
    offset = row.as_dict(SCOPE)["offset"]
    assert offset == (-1 if word.meaning is Meaning.UNKNOWN else word.text)


@every_word
@pytest.mark.parametrize("nested", [False, True], ids=["eph", "eph-go"])
@pytest.mark.parametrize(("number", "is_read"), [(-1, False), (0, False), (None, False), (4, True)])
def test_a_lease_with_a_word_has_a_position_only_by_its_number(
    word: OffsetWord, nested: bool, number: int | None, is_read: bool
) -> None:
    position = {"offset": word.text, "sequenceNumber": number}
    body = json.dumps({"checkpoint": position} if nested else position)
    lease = leases.Lease("blob '0'", "0", body)
    reported: list[str] = []
    found = leases.checkpoints_of([lease], SCOPE, reported.append)
    assert found == ([Checkpoint(SCOPE, "0", "", number)] if is_read else [])
    assert reported == []


@every_word
def test_iothub_react_has_no_position_in_a_word(word: OffsetWord) -> None:
    reported: list[str] = []
    rows = [iothub_react.StoredOffset("blob 'partition-0'", "0", word.text)]
    assert iothub_react.checkpoints_of(rows, SCOPE, reported.append) == []
    assert len(reported) == (not word.text)


@every_word
def test_a_copy_of_a_row_stores_what_the_row_stores(word: OffsetWord) -> None:
    fields = {"offset": word.text, "sequencenumber": "4"}
    listed = checkpoint_of(SCOPE, "0", fields, "version").as_dict(SCOPE)
    expected = "" if word.meaning is Meaning.UNKNOWN else word.text
    assert Checkpoint.from_dict(listed, "").offset == expected
    assert Position.of(listed) == Position(4, expected)
    assert Position.of(listed).as_row() == {"sequence_number": 4, "offset": listed["offset"]}
    assert Position.of({**listed, "offset": word.text}) == Position(4, expected)


@every_word
def test_a_word_for_nothing_is_stored_as_nothing(word: OffsetWord) -> None:
    row = {**SCOPE.as_dict(), "partition_id": "0", "sequence_number": 4, "offset": word.text}
    expected = "" if word.meaning is Meaning.UNKNOWN else word.text
    assert Checkpoint.from_dict(row, "").offset == expected


ENDS = {
    Meaning.START: EventPosition.from_start_of_stream(),
    Meaning.END: EventPosition.from_end_of_stream(),
}


@every_word
def test_only_a_word_that_a_hub_accepts_is_an_offset_to_begin_at(word: OffsetWord) -> None:
    if word.is_taken:
        assert EventPosition.from_offset(word.text) == ENDS[word.meaning]
        require_start("starting_position", word.text)
        return
    with pytest.raises(ConfigurationError, match=r"^offset is"):
        EventPosition.from_offset(word.text)
    with pytest.raises(ConfigurationError, match=r"^starting_position"):
        require_start("starting_position", word.text)


@every_word
def test_a_row_with_a_word_alone_is_a_position_only_where_a_hub_accepts_it(
    word: OffsetWord,
) -> None:
    row = {"sequence_number": None, "offset": word.text}
    if word.is_taken:
        assert after("0", row) == ENDS[word.meaning]
    else:
        with pytest.raises(ConfigurationError):
            after("0", row)


@every_word
def test_the_spark_source_names_its_own_word(word: OffsetWord) -> None:
    options: Any = {"startingPosition": word.text}
    if word.text in ("earliest", "latest"):
        assert parse_one_position(options, "startingPosition", "earliest") == ENDS[word.meaning]
        return
    name = {Meaning.START: "expected earliest, which", Meaning.END: "expected latest, which"}
    with pytest.raises(ConfigurationError, match=name.get(word.meaning, "startingPosition")):
        parse_one_position(options, "startingPosition", "earliest")


@every_word
def test_a_store_lists_a_stored_word_by_the_number_beside_it(word: OffsetWord) -> None:
    store = MemoryCheckpointStore()
    row = {**SCOPE.as_dict(), "partition_id": "0", "sequence_number": 4, "offset": word.text}
    store.update_checkpoint(row)
    (listed,) = store.list_checkpoints(*SCOPE)
    assert (listed["offset"], type(listed["offset"])) == (4, SequenceOffset)
    assert store.replace_checkpoint({**row, "sequence_number": 3}, Position.of(listed).as_row())
