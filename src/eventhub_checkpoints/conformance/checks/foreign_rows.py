"""Checks of rows from other writers, and of rows that are invalid (G5).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

from eventhub_checkpoints._shared.offset_words import OFFSET_WORDS
from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.harness import Subject

RAW = ("put_raw",)
Fields = dict[str, str | None]


@check("G5", needs=RAW)
def an_ownership_without_an_owner_is_released(s: Subject) -> None:
    """A row without an owner is listed as released, and can be claimed by its etag."""
    nobody: list[Fields] = [{}, {"ownerid": ""}, {"ownerid": "null"}]
    for number, fields in enumerate(nobody):
        s.put_raw("ownership", str(number), fields)
        row = s.client.row(str(number))
        assert row is not None, f"a row with {fields} is not listed"
        assert row["owner_id"] == "", f"the owner of {fields} is {row['owner_id']!r}"
        assert s.client.claim(str(number), "a", row["etag"]), f"{fields} could not be claimed"


@check("G5", needs=RAW)
def owner_keys_are_read_in_any_case(s: Subject) -> None:
    """The key of the owner is read in any case, and unknown keys are ignored."""
    spelled: list[Fields] = [
        {"ownerid": "b"},
        {"OwnerId": "b"},
        {"owner_id": "b"},
        {"ownerid": "b", "comment": "x", "clientidentifier": ""},
    ]
    for number, fields in enumerate(spelled):
        s.put_raw("ownership", str(number), fields)
        owner = s.client.owner(str(number))
        assert owner == "b", f"the owner of {fields} was read as {owner!r}"


@check("G5", needs=RAW)
def an_ownership_that_is_none_harms_nobody(s: Subject) -> None:
    """A row that is not an ownership, such as a directory, is omitted; others are listed."""
    s.client.take("0", "a")
    s.put_raw("ownership", "1/deeper", {"ownerid": "b"})
    s.put_raw("ownership", "2", {"hdi_isfolder": "true"})
    listed = [row["partition_id"] for row in s.client.list_ownership()]
    assert listed == ["0"], f"one partition was claimed, and {listed} are listed"


@check("G1", "G5", needs=RAW)
def a_strangers_row_is_taken_by_its_etag_only(s: Subject) -> None:
    """An ownership that another program wrote can only be claimed with its etag."""
    s.put_raw("ownership", "0", {"ownerid": "b"})
    assert s.client.claim("0", "a") is None, "a claim without an etag took an owned partition"
    row = s.client.ownership_of("0")
    assert s.client.claim("0", "a", row["etag"]), "its listed etag did not win"


@check("G1", needs=RAW)
def an_etag_of_a_vanished_row_wins(s: Subject) -> None:
    """A claim with the etag of a deleted row succeeds and creates the row."""
    mine = s.client.take("0", "a")
    s.put_raw("ownership", "0", None)
    assert s.client.claim("0", "a", mine["etag"]), (
        "the owner's claim lost although the row was deleted"
    )
    assert s.client.owner("0") == "a", "the row was not created"


@check("G1", needs=RAW)
def an_etag_is_never_used_again(s: Subject) -> None:
    """An etag of a deleted row is not valid for the row that was created afterwards."""
    mine = s.client.take("0", "a")
    s.put_raw("ownership", "0", None)
    s.another().take("0", "b")
    assert s.client.claim("0", "a", mine["etag"]) is None, "an etag from before the removal won"
    assert s.client.owner("0") == "b", "the new owner was removed"


def resumes_by_number(s: Subject, fields: Fields, number: int) -> None:
    """Check that, from the listed row, the client resumes after this sequence number."""
    s.put_raw("checkpoint", "0", fields)
    row = s.client.saved("0")
    assert row is not None, f"a row with {fields} is not listed"
    assert row["sequence_number"] == number, f"{fields}: the number is {row['sequence_number']!r}"
    assert row["offset"] == number, f"{fields}: the offset is {row['offset']!r}, not {number}"
    assert bool(row["offset"]), f"{fields}: the offset is falsy, so the client would skip it"


@check("G5", needs=RAW)
def a_group_without_offsets_resumes_exactly(s: Subject) -> None:
    """A group whose rows have only sequence numbers, as Java writes them, resumes exactly."""
    numbers = {str(partition): 0 if partition == 0 else 10**partition for partition in range(8)}
    for partition_id, number in numbers.items():
        s.put_raw("checkpoint", partition_id, {"sequencenumber": str(number)})
    rows = {row["partition_id"]: row for row in s.client.list_checkpoints()}
    offsets = {partition_id: row["offset"] for partition_id, row in rows.items()}
    assert offsets == numbers, f"listed: {rows}"
    assert all(row["offset"] for row in rows.values()), "an offset is falsy"
    assert all(isinstance(row["offset"], int) for row in rows.values()), "an offset is not an int"


@check("G5", needs=RAW)
def an_empty_offset_resumes_by_number(s: Subject) -> None:
    """An offset stored as an empty string, as by .NET 5.11.0, is treated as missing."""
    resumes_by_number(s, {"offset": "", "sequencenumber": "41"}, 41)


@check("G5", needs=RAW)
def the_words_for_no_offset_are_known(s: Subject) -> None:
    """Words such as `no offset` (.NET 5.11.3), `None` (Python) and `-1` are no offsets."""
    for word in OFFSET_WORDS:
        resumes_by_number(s, {"offset": word.text, "sequencenumber": "41"}, 41)


@check("G5", needs=RAW)
def a_number_of_zero_without_an_offset_resumes(s: Subject) -> None:
    """A row with sequence number 0 and no offset resumes after event 0."""
    resumes_by_number(s, {"sequencenumber": "0"}, 0)


@check("G5", needs=RAW)
def position_keys_are_read_in_any_case(s: Subject) -> None:
    """The keys of the position are read in any case, and unknown keys are ignored."""
    spelled: list[Fields] = [
        {"Offset": "4711", "SequenceNumber": "7"},
        {"offset": "4711", "sequence_number": "7"},
        {"offset": "4711", "sequencenumber": "7", "clientidentifier": "", "comment": "x"},
    ]
    for fields in spelled:
        s.put_raw("checkpoint", "0", fields)
        row = s.client.saved("0") or {}
        seen = (row.get("offset"), row.get("sequence_number"))
        assert seen == ("4711", 7), f"{fields} was read as {seen}"


@check("G5", needs=RAW)
def an_offset_without_a_number_resumes_by_offset(s: Subject) -> None:
    """A row with a missing or invalid sequence number resumes by its offset."""
    without: list[Fields] = [{"offset": "1:AAA:7"}]
    for number in ("", "None", "abc", "1e3", str(2**63)):
        without.append({"offset": "1:AAA:7", "sequencenumber": number})
    for fields in without:
        s.put_raw("checkpoint", "0", fields)
        row = s.client.saved("0")
        assert row is not None, f"a row with {fields} is not listed"
        seen = (row["offset"], row["sequence_number"])
        assert seen == ("1:AAA:7", None), f"{fields} was read as {seen}"


@check("G5", needs=RAW)
def a_row_that_says_nothing_harms_nobody(s: Subject) -> None:
    """A row with neither offset nor sequence number is omitted; others are listed."""
    s.client.save("0", 7)
    nothing: list[Fields] = [
        {},
        {"offset": "", "sequencenumber": ""},
        {"offset": "None", "sequencenumber": "None"},
        {"comment": "x"},
    ]
    for number, fields in enumerate(nothing, 1):
        s.put_raw("checkpoint", str(number), fields)
    listed = [row["partition_id"] for row in s.client.list_checkpoints()]
    assert listed == ["0"], f"one checkpoint was stored, and {listed} are listed"


@check("G5", needs=RAW)
def a_checkpoint_that_is_none_harms_nobody(s: Subject) -> None:
    """A row that is not a checkpoint, such as a directory, is omitted; others are listed."""
    s.client.save("0", 7)
    s.put_raw("checkpoint", "1/deeper", {"offset": "1", "sequencenumber": "1"})
    s.put_raw("checkpoint", "2", {"hdi_isfolder": "true"})
    listed = [row["partition_id"] for row in s.client.list_checkpoints()]
    assert listed == ["0"], f"one checkpoint was stored, and {listed} are listed"


@check("G3", "G5", needs=RAW)
def a_strangers_row_is_written_over(s: Subject) -> None:
    """The owner's checkpoint replaces any listed row, even one without a position."""
    rows: list[Fields] = [{"sequencenumber": "41"}, {"offset": "None"}, {"offset": "1:AAA:7"}]
    for number, fields in enumerate(rows):
        s.put_raw("checkpoint", str(number), fields)
        s.client.take_listed(str(number), "a")
        s.client.save(str(number), 42)
        assert s.client.position(str(number)) == 42, f"{fields} was not written over"


@check("G3", needs=RAW)
def a_vanished_checkpoint_is_stored_again(s: Subject) -> None:
    """A checkpoint whose row was deleted is stored again."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.put_raw("checkpoint", "0", None)
    s.client.save("0", 11)
    assert s.client.position("0") == 11, "the checkpoint was not stored again"


@check("G5", "G3", needs=("put_raw", BASE))
def rows_left_out_are_counted(s: Subject) -> None:
    """A row that is omitted from a list is counted."""
    s.put_raw("checkpoint", "0", {"comment": "x"})
    s.client.list_checkpoints()
    assert s.client.store.counters["skipped_rows"] == 1, "the row was omitted silently"
