"""Checks of checkpoint rows from every SDK, and of rows that are not checkpoints."""

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.harness import Subject

RAW = ("put_raw",)
Fields = dict[str, str | None]


def resumes_by_number(s: Subject, fields: Fields, number: int) -> None:
    """A row is listed so that the client resumes after this sequence number."""
    s.put_raw("checkpoint", "0", fields)
    row = s.client.saved("0")
    assert row is not None, f"a row with {fields} is not listed"
    assert row["sequence_number"] == number, f"{fields}: the number is {row['sequence_number']!r}"
    assert row["offset"] == number, f"{fields}: the offset is {row['offset']!r}, not {number}"
    assert bool(row["offset"]), f"{fields}: the offset is not true, so the client would skip it"


@check("G5", needs=RAW)
def a_group_without_offsets_resumes_exactly(s: Subject) -> None:
    """A group whose rows hold only sequence numbers, as Java writes them, resumes exactly."""
    numbers = {str(partition): 0 if partition == 0 else 10**partition for partition in range(8)}
    for partition_id, number in numbers.items():
        s.put_raw("checkpoint", partition_id, {"sequencenumber": str(number)})
    rows = {row["partition_id"]: row for row in s.client.list_checkpoints()}
    assert {one: row["offset"] for one, row in rows.items()} == numbers, f"listed: {rows}"
    assert all(row["offset"] for row in rows.values()), "an offset is not true"
    assert all(isinstance(row["offset"], int) for row in rows.values()), "an offset is no int"


@check("G5", needs=RAW)
def an_empty_offset_resumes_by_number(s: Subject) -> None:
    """An offset that is stored as an empty text is none, as .NET 5.11.0 wrote it."""
    resumes_by_number(s, {"offset": "", "sequencenumber": "41"}, 41)


@check("G5", needs=RAW)
def the_words_for_no_offset_are_known(s: Subject) -> None:
    """The offsets `no offset` (.NET 5.11.3) and `None` (Python) are none."""
    for word in ("no offset", "None"):
        resumes_by_number(s, {"offset": word, "sequencenumber": "41"}, 41)


@check("G5", needs=RAW)
def a_number_of_zero_without_an_offset_resumes(s: Subject) -> None:
    """A row with sequence number 0 and no offset resumes after event 0, not somewhere else."""
    resumes_by_number(s, {"sequencenumber": "0"}, 0)


@check("G5", needs=RAW)
def position_keys_are_read_in_any_case(s: Subject) -> None:
    """Offset and number are found under their keys in any case, and beside unknown keys."""
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
    """A row whose number is missing or no number resumes by its offset."""
    without: list[Fields] = [{"offset": "1:AAA:7"}]
    without += [
        {"offset": "1:AAA:7", "sequencenumber": word} for word in ("", "None", "abc", "1e3")
    ]
    without += [{"offset": "1:AAA:7", "sequencenumber": str(2**63)}]
    for fields in without:
        s.put_raw("checkpoint", "0", fields)
        row = s.client.saved("0")
        assert row is not None, f"a row with {fields} is not listed"
        seen = (row["offset"], row["sequence_number"])
        assert seen == ("1:AAA:7", None), f"{fields} was read as {seen}"


@check("G5", needs=RAW)
def a_row_that_says_nothing_harms_nobody(s: Subject) -> None:
    """A row with neither an offset nor a number is left out; the others are listed."""
    s.client.save("0", 7)
    nothing: list[Fields] = [{}, {"offset": "", "sequencenumber": ""}]
    nothing += [{"offset": "None", "sequencenumber": "None"}, {"comment": "x"}]
    for number, fields in enumerate(nothing, 1):
        s.put_raw("checkpoint", str(number), fields)
    listed = [row["partition_id"] for row in s.client.list_checkpoints()]
    assert listed == ["0"], f"one checkpoint was stored, and {listed} are listed"


@check("G5", needs=RAW)
def a_checkpoint_that_is_none_harms_nobody(s: Subject) -> None:
    """A row that is no checkpoint, such as a directory, is left out; the others are listed."""
    s.client.save("0", 7)
    s.put_raw("checkpoint", "1/deeper", {"offset": "1", "sequencenumber": "1"})
    s.put_raw("checkpoint", "2", {"hdi_isfolder": "true"})
    listed = [row["partition_id"] for row in s.client.list_checkpoints()]
    assert listed == ["0"], f"one checkpoint was stored, and {listed} are listed"


@check("G3", "G5", needs=RAW)
def a_strangers_row_is_written_over(s: Subject) -> None:
    """The owner's checkpoint replaces whatever row was listed, also one that says nothing."""
    rows: list[Fields] = [{"sequencenumber": "41"}, {"offset": "None"}, {"offset": "1:AAA:7"}]
    for number, fields in enumerate(rows):
        s.put_raw("checkpoint", str(number), fields)
        s.client.take_listed(str(number), "a")
        s.client.save(str(number), 42)
        assert s.client.position(str(number)) == 42, f"{fields} was not written over"


@check("G3", needs=RAW)
def a_vanished_checkpoint_is_stored_again(s: Subject) -> None:
    """A checkpoint whose row has vanished is stored anew."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.put_raw("checkpoint", "0", None)
    s.client.save("0", 11)
    assert s.client.position("0") == 11, "the checkpoint was not stored again"


@check("G5", "G3", needs=("put_raw", BASE))
def rows_left_out_are_counted(s: Subject) -> None:
    """A row that is left out of a list is counted, and reported."""
    s.put_raw("checkpoint", "0", {"comment": "x"})
    s.client.list_checkpoints()
    assert s.client.store.counters["skipped_rows"] == 1, "the row was left out silently"
