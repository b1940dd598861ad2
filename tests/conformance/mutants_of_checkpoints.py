"""Stores that keep checkpoints wrongly: what is stored, and what is returned."""

from dataclasses import replace
from typing import Any

from sound import Sound, mutant

from eventhub_checkpoints.records import SequenceOffset
from eventhub_checkpoints.stores.hook_results import Written


class Lists(Sound):
    """Gives every listed checkpoint as `changed` makes it."""

    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        return [self.changed(row) for row in super().list_checkpoints(*names)]

    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


class Takes(Sound):
    """Stores every checkpoint as `taken` makes it."""

    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        super().update_checkpoint(self.taken(dict(checkpoint)), **kwargs)

    def taken(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


@mutant("a_checkpoint_is_listed_as_stored")
class KeepsCheckpointsToItself(Sound):
    """A cache that never reaches the server."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cache = self.rows_class()

    def read_checkpoints(self, scope: Any) -> Any:
        return self.cache.checkpoints(scope)

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        return self.cache.write(checkpoint, seen)


@mutant("a_partition_that_nobody_claimed_has_a_checkpoint")
class ListsWhatWasClaimed(Sound):
    def read_checkpoints(self, scope: Any) -> Any:
        listing = super().read_checkpoints(scope)
        claimed = {row.partition_id for row in self.rows.ownerships(scope).rows}
        return replace(listing, rows=[r for r in listing.rows if r.partition_id in claimed])


@mutant("a_later_checkpoint_replaces_an_earlier_one")
class KeepsTheFirst(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        if isinstance(seen, str):
            return Written(seen)
        return super().write_checkpoint(checkpoint, seen)


@mutant("sequence_number_zero_is_kept")
class TakesZeroForNothing(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "sequence_number": row["sequence_number"] or None}


@mutant("an_offset_is_opaque_text")
class TakesOffsetsForNumbers(Takes):
    def taken(self, row: dict[str, Any]) -> dict[str, Any]:
        offset = row["offset"]
        is_number = isinstance(offset, str) and offset.isdigit()
        return {**row, "offset": str(int(offset)) if is_number else offset}


@mutant("a_large_sequence_number_is_exact")
class KeepsNumbersAsFloats(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "sequence_number": int(float(row["sequence_number"]))}


@mutant("an_unknown_offset_resumes_by_number")
class GivesTheWordNone(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        unknown = isinstance(row["offset"], int)
        return {**row, "offset": "None"} if unknown else row


@mutant("the_words_for_no_offset_are_known")
class PassesWordsOn(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "offset": getattr(row["offset"], "stored", "") or row["offset"]}


@mutant("an_unknown_offset_resumes_after_event_zero", "a_number_of_zero_without_an_offset_resumes")
class GivesAPlainInt(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        offset = row["offset"]
        return {**row, "offset": int(offset) if isinstance(offset, SequenceOffset) else offset}


@mutant("a_listed_checkpoint_can_be_stored_again")
class StoresAnIntAsAnOffset(Takes):
    def taken(self, row: dict[str, Any]) -> dict[str, Any]:
        offset = row["offset"]
        return {**row, "offset": str(int(offset)) if isinstance(offset, int) else offset}


@mutant("a_checkpoint_needs_a_sequence_number")
class InventsANumber(Takes):
    def taken(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "sequence_number": row["sequence_number"] or 0}
