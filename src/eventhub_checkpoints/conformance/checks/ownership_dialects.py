"""Checks of ownership rows from other writers."""

from eventhub_checkpoints.conformance.contract import check
from eventhub_checkpoints.conformance.harness import Subject

RAW = ("put_raw",)


@check("G5", needs=RAW)
def an_ownership_without_an_owner_is_released(s: Subject) -> None:
    """A row that names no owner is listed as nobody's, and claimed by its etag."""
    nobody: list[dict[str, str | None]] = [{}, {"ownerid": ""}, {"ownerid": "null"}]
    for number, fields in enumerate(nobody):
        s.put_raw("ownership", str(number), fields)
        row = s.client.row(str(number))
        assert row is not None, f"a row with {fields} is not listed"
        assert row["owner_id"] == "", f"the owner of {fields} is {row['owner_id']!r}"
        assert s.client.claim(str(number), "a", row["etag"]), f"{fields} could not be claimed"


@check("G5", needs=RAW)
def owner_keys_are_read_in_any_case(s: Subject) -> None:
    """An owner is found under its key in any case, and beside keys that nobody knows."""
    spelled: list[dict[str, str | None]] = [
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
    """A row that is no ownership, such as a directory, is left out; the others are listed."""
    s.client.take("0", "a")
    s.put_raw("ownership", "1/deeper", {"ownerid": "b"})
    s.put_raw("ownership", "2", {"hdi_isfolder": "true"})
    listed = [row["partition_id"] for row in s.client.list_ownership()]
    assert listed == ["0"], f"one partition was claimed, and {listed} are listed"


@check("G1", "G5", needs=RAW)
def a_strangers_row_is_taken_by_its_etag_only(s: Subject) -> None:
    """A row that another program wrote is owned like one of ours."""
    s.put_raw("ownership", "0", {"ownerid": "b"})
    assert s.client.claim("0", "a") is None, "a claim without an etag took a stranger's partition"
    row = s.client.row("0")
    assert row is not None, "the stranger's partition is not listed"
    assert s.client.claim("0", "a", row["etag"]), "its listed etag did not win"


@check("G1", needs=RAW)
def an_etag_of_a_vanished_row_wins(s: Subject) -> None:
    """A claim with the etag of a row that has vanished creates the row, and wins."""
    mine = s.client.take("0", "a")
    s.put_raw("ownership", "0", None)
    assert s.client.claim("0", "a", mine["etag"]), "the owner lost to a row that is not there"
    assert s.client.owner("0") == "a", "the row was not created"


@check("G1", needs=RAW)
def an_etag_is_never_used_again(s: Subject) -> None:
    """An etag from before a row was removed wins nothing after it was created again."""
    mine = s.client.take("0", "a")
    s.put_raw("ownership", "0", None)
    s.another().take("0", "b")
    assert s.client.claim("0", "a", mine["etag"]) is None, "an etag from before the removal won"
    assert s.client.owner("0") == "b", "the new owner was put out"
