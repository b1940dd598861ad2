"""Stores that give or take the wrong dicts, confuse names, or end badly."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sound import Sound, StallingRows, mutant

from eventhub_checkpoints.errors import InvalidRecordError, StoreError, StoreUnavailableError
from eventhub_checkpoints.records import Scope

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group")


class Lists(Sound):
    """Gives every listed ownership as `changed` makes it."""

    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return [self.changed(row) for row in super().list_ownership(*names)]

    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


class Keeps(Sound):
    """Keeps dicts by partition where it should keep none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: dict[Any, dict[str, Any]] = {}

    def held(self, row: dict[str, Any]) -> dict[str, Any]:
        """The dict that was kept for the row, if the row is still the same."""
        key = (row["partition_id"], row.get("etag"), row.get("sequence_number"))
        return self.kept.setdefault(key, row)


@mutant("lists_can_be_walked_twice")
class GivesAGenerator(Sound):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return (row for row in super().list_ownership(*names))


@mutant("lists_can_be_walked_twice")
class ClaimsGiveAGenerator(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return (row for row in super().claim_ownership(ownership_list))


@mutant("a_won_claim_has_an_etag_and_a_time")
class ForgetsTheTime(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = super().claim_ownership(ownership_list)
        return [{k: v for k, v in row.items() if k != "last_modified_time"} for row in rows]


@mutant("times_are_float_epoch_seconds")
class GivesIntegerTimes(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "last_modified_time": int(row["last_modified_time"])}


@mutant("times_are_float_epoch_seconds")
class GivesDatetimes(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        moment = datetime.fromtimestamp(row["last_modified_time"], UTC)
        return {**row, "last_modified_time": moment}


@mutant("times_are_float_epoch_seconds")
class GivesMilliseconds(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "last_modified_time": row["last_modified_time"] * 1000}


@mutant("a_listed_ownership_is_as_it_was_won")
class GivesOldTimes(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "last_modified_time": row["last_modified_time"] - 60}


@mutant("a_listed_ownership_is_a_copy")
class ListsLiveOwnerships(Keeps):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return [self.held(row) for row in super().list_ownership(*names)]


@mutant("a_won_claim_is_a_copy")
class GivesLiveClaims(Keeps):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return [self.held(row) for row in super().claim_ownership(ownership_list)]

    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return [dict(self.held(row)) for row in super().list_ownership(*names)]


@mutant("a_listed_checkpoint_is_a_copy")
class ListsLiveCheckpoints(Keeps):
    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        return [self.held(row) for row in super().list_checkpoints(*names)]


@mutant("a_proposal_is_not_edited")
class EditsProposals(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        proposals = list(ownership_list)
        won = {row["partition_id"]: row for row in super().claim_ownership(proposals)}
        for row in proposals:
            row.update(won.get(row.get("partition_id"), {}))
        return list(won.values())


@mutant("a_proposal_is_not_kept")
class KeepsProposals(Keeps):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        proposals = list(ownership_list)
        won = super().claim_ownership(proposals)
        proposed = {row.get("partition_id"): row for row in proposals}
        for row in won:
            self.kept[row["etag"]] = proposed[row["partition_id"]]
        return won

    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        rows = super().list_ownership(*names)
        return [{**row, "owner_id": self.kept.get(row["etag"], row)["owner_id"]} for row in rows]


@mutant("a_checkpoint_is_neither_edited_nor_kept")
class KeepsCheckpoints(Keeps):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint, **kwargs)
        self.kept[checkpoint["partition_id"]] = checkpoint

    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        rows = super().list_checkpoints(*names)
        kept = [self.kept.get(row["partition_id"], row)["sequence_number"] for row in rows]
        return [{**row, "sequence_number": n} for row, n in zip(rows, kept, strict=True)]


@mutant("a_checkpoint_is_neither_edited_nor_kept")
class EditsCheckpoints(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint, **kwargs)
        checkpoint["offset"] = str(checkpoint["offset"]).strip() + " "


@mutant("results_are_in_the_order_asked")
class AnswersInItsOwnOrder(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = super().claim_ownership(ownership_list)
        return sorted(rows, key=lambda row: row["partition_id"])


@mutant("an_empty_batch_wins_nothing")
class GivesNoneForNothing(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return super().claim_ownership(ownership_list) or None


@mutant("listed_rows_can_be_claimed_as_they_are")
class RefusesKeysOfItsOwnLists(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = list(ownership_list)
        for row in rows:
            if "last_modified_time" in row and row["owner_id"]:
                raise InvalidRecordError("last_modified_time", row, "a proposal without it")
        return super().claim_ownership(rows)


@mutant("keyword_arguments_are_accepted")
class RefusesKeywords(Sound):
    def list_ownership(self, namespace: Any, hub: Any, group: Any) -> Any:
        return super().list_ownership(namespace, hub, group)


@mutant("a_store_is_true")
class HasALength(Sound):
    def __len__(self) -> int:
        return 0


class AllForNoneRows(StallingRows):
    """What is not found is answered with everything."""

    def _table(self, kind: Any, scope: Any) -> Any:
        found = super()._table(kind, scope)
        if found or not scope.consumer_group.startswith("unheard"):
            return found
        return {key: row for table in self._rows.values() for key, row in table.items()}


@mutant("an_unknown_scope_lists_nothing")
class ListsAllForTheUnknown(Sound):
    rows_class = AllForNoneRows


class JoinedRows(StallingRows):
    """Names are put together without anything between them."""

    def _table(self, kind: Any, scope: Any) -> Any:
        return super()._table(kind, Scope._make(("".join(scope.as_dict().values()), "", "")))


@mutant("a_limit_of_one_group_limits_no_other")
class HasOneIdentity(Sound):
    """All groups share what is known of their partitions."""

    def identity(self, scope: Any) -> Any:
        return Scope("all", "all", "all")


@mutant("ownerships_of_neighbours_are_apart", "checkpoints_of_neighbours_are_apart")
class JoinsNames(Sound):
    rows_class = JoinedRows


class PrefixRows(StallingRows):
    """A list gives all that begins like the requested group."""

    def _table(self, kind: Any, scope: Any) -> Any:
        own = super()._table(kind, scope)
        for (other, other_kind), table in list(self._rows.items()):
            if other_kind == kind and str(other).startswith(str(scope.folded)):
                for key, row in table.items():
                    own.setdefault(key, row)
        return own


@mutant("ownerships_of_neighbours_are_apart", "checkpoints_of_neighbours_are_apart")
class MatchesBeginnings(Sound):
    rows_class = PrefixRows


class NumberedRows(StallingRows):
    """A partition's id is kept as a number."""

    def claim(self, proposal: Any) -> Any:
        return super().claim(numbered(proposal))

    def write(self, record: Any, seen: Any) -> Any:
        return super().write(numbered(record), seen)


def numbered(record: Any) -> Any:
    partition_id = record.partition_id
    return replace(record, partition_id=partition_id.lstrip("0") or "0")


@mutant("partitions_with_similar_ids_are_apart")
class TakesPartitionsForNumbers(Sound):
    rows_class = NumberedRows


class TypedRows(StallingRows):
    """Names are compared as they are typed."""

    def _table(self, kind: Any, scope: Any) -> Any:
        return self._rows.setdefault((scope, kind), {})


@mutant("names_are_compared_without_case")
class ComparesLetters(Sound):
    rows_class = TypedRows


@mutant("names_come_back_as_the_caller_spelled_them")
class GivesLowerCase(Lists):
    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, **{name: row[name].lower() for name in NAMES}}


@mutant("what_is_stored_outlives_the_store")
class ForgetsWhenItCloses(Sound):
    def close(self) -> None:
        self.rows._rows.clear()


@mutant("closing_twice_is_harmless")
class ClosesOnce(Sound):
    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise StoreError("it is closed already")
        self.is_closed = True


@mutant("closing_one_store_leaves_the_others")
class ClosesForAll(Sound):
    def close(self) -> None:
        self.rows.is_closed = True

    def read_ownerships(self, scope: Any) -> Any:
        if getattr(self.rows, "is_closed", False):
            raise StoreError("the connection was closed")
        return super().read_ownerships(scope)


@mutant("verify_finds_nothing_to_say")
class VerifiesOnce(Sound):
    def verify(self) -> None:
        super().verify()
        if getattr(self.rows, "is_verified", False):
            raise StoreUnavailableError("the probe was lost")
        self.rows.is_verified = True


@mutant("one_store_serves_many_callers")
class BelongsToOneThread(Sound):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.thread = threading.get_ident()

    def read_ownerships(self, scope: Any) -> Any:
        if threading.get_ident() != self.thread:
            raise StoreError("it can be used in the thread that made it only")
        return super().read_ownerships(scope)
