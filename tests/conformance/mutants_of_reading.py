"""Stores that misread what other programs have stored."""

from dataclasses import replace
from typing import Any

from sound import Sound, StallingRows, mutant

from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.records import Checkpoint
from eventhub_checkpoints.stores._sync.ownership import Ownerships
from eventhub_checkpoints.stores.memory import rows as _memory
from eventhub_checkpoints.stores.record_format import decimal_int64


class ReadsOwnerships(Sound):
    """Reads a row's owner by `owner`."""

    def read_ownerships(self, scope: Any) -> Any:
        listing = super().read_ownerships(scope)
        raw = dict(self.rows.raw("ownership", scope))
        rows = [
            replace(row, owner_id=self.owner(raw[row.partition_id].fields)) for row in listing.rows
        ]
        return replace(listing, rows=rows)

    def owner(self, fields: Any) -> str:
        return fields["ownerid"] or ""


@mutant("an_ownership_without_an_owner_is_released")
class NeedsAnOwner(ReadsOwnerships):
    """The whole list fails."""

    def owner(self, fields: Any) -> str:
        if not any(key.lower().replace("_", "") == "ownerid" for key in fields):
            raise StoreError("ownerid is missing")
        return next(v or "" for k, v in fields.items() if k.lower().replace("_", "") == "ownerid")


@mutant("owner_keys_are_read_in_any_case")
class ReadsOneSpellingOfOwners(ReadsOwnerships):
    def owner(self, fields: Any) -> str:
        found = fields.get("ownerid") or ""
        return "" if found == "null" else found


class UnfilteredRows(StallingRows):
    """Whatever a list shows is taken for a row."""

    def ownerships(self, scope: Any) -> Any:
        listing = super().ownerships(scope)
        rows = [_memory.ownership(scope, key, row) for key, row in self.raw("ownership", scope)]
        return replace(listing, rows=rows, skipped=())

    def checkpoints(self, scope: Any) -> Any:
        listing = super().checkpoints(scope)
        rows = [_memory.checkpoint(scope, key, row) for key, row in self.raw("checkpoint", scope)]
        return replace(listing, rows=[row for row in rows if row.is_readable])


@mutant("an_ownership_that_is_none_harms_nobody", "a_checkpoint_that_is_none_harms_nobody")
class TakesFoldersForRows(Sound):
    rows_class = UnfilteredRows


class ReadsCheckpoints(Sound):
    """Reads a row's position by `position`; None leaves the row out."""

    def read_checkpoints(self, scope: Any) -> Any:
        listing = super().read_checkpoints(scope)
        raw = dict(self.rows.raw("checkpoint", scope))
        read = [self.position(row, raw[row.partition_id].fields) for row in listing.rows]
        return replace(listing, rows=[row for row in read if row is not None])

    def position(self, row: Checkpoint, fields: Any) -> Checkpoint | None:
        return row


@mutant("a_group_without_offsets_resumes_exactly")
class NeedsAnOffset(ReadsCheckpoints):
    def position(self, row: Checkpoint, fields: Any) -> Checkpoint | None:
        has_offset = any(key.lower() == "offset" for key in fields)
        return row if has_offset else None


@mutant("an_empty_offset_resumes_by_number")
class LeavesEmptyOffsetsOut(ReadsCheckpoints):
    def position(self, row: Checkpoint, fields: Any) -> Checkpoint | None:
        return None if fields.get("offset") == "" else row


@mutant("position_keys_are_read_in_any_case")
class ReadsOneSpellingOfPositions(ReadsCheckpoints):
    def position(self, row: Checkpoint, fields: Any) -> Checkpoint | None:
        number = decimal_int64(fields.get("sequencenumber") or "")
        return replace(row, sequence_number=number)


@mutant("an_offset_without_a_number_resumes_by_offset")
class NeedsANumber(ReadsCheckpoints):
    """The whole list fails."""

    def position(self, row: Checkpoint, fields: Any) -> Checkpoint | None:
        if row.sequence_number is None:
            raise StoreError("sequencenumber is missing")
        return row


@mutant("a_row_that_says_nothing_harms_nobody")
class FailsOnARowThatSaysNothing(Sound):
    def read_checkpoints(self, scope: Any) -> Any:
        listing = super().read_checkpoints(scope)
        if listing.skipped:
            raise StoreError(listing.skipped[0])
        return listing


@mutant("rows_left_out_are_counted")
class LeavesOutSilently(Sound):
    def read_checkpoints(self, scope: Any) -> Any:
        return replace(super().read_checkpoints(scope), skipped=())


@mutant("a_clock_that_is_off_changes_no_age", "a_backends_clock_that_is_off_changes_no_age")
class PassesTheBackendsTimesOn(Sound):
    class Ownerships(Ownerships):
        def read(self, scope: Any) -> Any:
            return self._runner.call(self._runner.backend.read_ownerships, scope).rows
