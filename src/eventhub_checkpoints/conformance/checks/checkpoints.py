"""Checks of checkpoints that one writer stores and any reader lists."""

from eventhub_checkpoints.conformance.contract import check
from eventhub_checkpoints.conformance.harness import Subject


@check("G9")
def a_checkpoint_is_listed_as_stored(s: Subject) -> None:
    """A stored checkpoint is listed, by this store and by others, with what was stored."""
    s.client.update_checkpoint(s.client.checkpoint("0", 7, "4711"))
    for reader in (s.client, s.another()):
        row = reader.saved("0")
        assert row is not None, "the stored checkpoint is not listed"
        assert (row["sequence_number"], row["offset"]) == (7, "4711"), f"it is listed as {row}"


@check("G9", "P23")
def a_partition_that_nobody_claimed_has_a_checkpoint(s: Subject) -> None:
    """A checkpoint needs no ownership: who reads one partition by name never claims it."""
    s.client.save("0", 7)
    assert s.client.list_ownership() == [], "the checkpoint made an ownership"
    assert s.client.position("0") == 7, "a checkpoint without an ownership is not listed"


@check("G9")
def a_later_checkpoint_replaces_an_earlier_one(s: Subject) -> None:
    """A partition has one checkpoint: the later one replaces the earlier one."""
    for number in (7, 8, 20):
        s.client.save("0", number)
    rows = s.client.list_checkpoints()
    assert [row["sequence_number"] for row in rows] == [20], f"after 7, 8 and 20: {rows}"


@check("G9", "P13")
def sequence_number_zero_is_kept(s: Subject) -> None:
    """Sequence number 0 and the offset "0" are values like any other."""
    s.client.update_checkpoint(s.client.checkpoint("0", 0, "0"))
    row = s.client.saved("0")
    assert row is not None, "the checkpoint of the first event is not listed"
    assert row["sequence_number"] == 0, f"sequence number 0 came back as {row['sequence_number']!r}"
    assert row["offset"] == "0", f"offset '0' came back as {row['offset']!r}"


@check("G9", "P13")
def an_offset_is_opaque_text(s: Subject) -> None:
    """An offset comes back as the text that was stored, whatever it looks like."""
    offsets = {"0": "149:0:1234", "1": "0008", "2": "-1x", "3": "9007199254740993"}
    for partition_id, offset in offsets.items():
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 1, offset))
    seen = {row["partition_id"]: row["offset"] for row in s.client.list_checkpoints()}
    assert seen == offsets, f"stored {offsets}, listed {seen}"


@check("G9")
def a_large_sequence_number_is_exact(s: Subject) -> None:
    """Sequence numbers are exact over the whole of int64, beyond what a float can hold."""
    for partition_id, number in (("0", 2**53 + 1), ("1", 2**63 - 1)):
        s.client.save(partition_id, number)
        seen = s.client.position(partition_id)
        assert seen == number, f"stored {number}, listed {seen}"
        assert isinstance(seen, int), f"the sequence number is a {type(seen).__name__}"


@check("G9", "G7", "P13")
def an_unknown_offset_resumes_by_number(s: Subject) -> None:
    """A checkpoint without an offset is listed with an int that resumes after its number."""
    for partition_id, offset in (("0", None), ("1", "")):
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 41, offset))
        row = s.client.saved(partition_id)
        assert row is not None, f"a checkpoint with offset {offset!r} is not listed"
        assert row["offset"] == 41, f"offset {offset!r} of event 41 is listed as {row['offset']!r}"


@check("G9", "P13")
def an_unknown_offset_resumes_after_event_zero(s: Subject) -> None:
    """The int in the place of an unknown offset is true also for sequence number 0.

    The client takes an offset that is not true for none, and starts somewhere else.
    """
    s.client.update_checkpoint(s.client.checkpoint("0", 0, None))
    row = s.client.saved("0")
    assert row is not None, "the checkpoint is not listed"
    assert row["offset"] == 0, f"the offset is {row['offset']!r}, so event 0 is not resumed from"
    assert bool(row["offset"]), "the offset is not true, so the client would skip the checkpoint"


@check("G9", "P13")
def a_listed_checkpoint_can_be_stored_again(s: Subject) -> None:
    """What a list gave can be stored again, as it is, and means the same."""
    for partition_id, offset in (("0", "149:0:1234"), ("1", None)):
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 0, offset))
    rows = s.client.list_checkpoints()
    for row in rows:
        s.client.update_checkpoint(row)
    again = s.client.list_checkpoints()
    assert by_partition(again) == by_partition(rows), f"listed {rows}, then stored: {again}"


@check("G7", "G9")
def a_checkpoint_needs_a_sequence_number(s: Subject) -> None:
    """A checkpoint without a sequence number is refused: other readers would choke on it."""
    row = {**s.client.checkpoint("0", 0, "4711"), "sequence_number": None}
    try:
        s.client.update_checkpoint(row)
    except Exception:
        assert s.client.saved("0") is None, "it was refused, and stored all the same"
    else:
        raise AssertionError("a checkpoint without a sequence number was accepted")


def by_partition(rows: list[dict[str, object]]) -> dict[object, tuple[object, ...]]:
    """Position and kind of offset of each partition."""
    return {
        row["partition_id"]: (row["sequence_number"], row["offset"], bool(row["offset"]))
        for row in rows
    }
