"""Stores whose claims and releases are wrong."""

import time
from dataclasses import replace
from typing import Any

from sound import Raced, Sound, StallingRows, mutant

from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.stores._sync.ownership import Ownerships
from eventhub_checkpoints.stores.hook_results import Lost, Won


@mutant("a_first_claim_wins")
class LosesFirstClaims(Sound):
    def try_claim(self, proposal: Any) -> Any:
        return super().try_claim(proposal) if self.stored(proposal) else Lost()


@mutant("an_empty_etag_is_no_etag")
class LeavesEmptyEtagsOut(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = [row for row in ownership_list if "etag" not in row or row["etag"]]
        return super().claim_ownership(rows)


@mutant("a_claim_without_an_etag_loses_to_a_stored_row")
class TakesWithoutAnEtag(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if proposal.etag is None and stored:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("an_empty_etag_loses_to_a_stored_row")
class TakesEmptyForAnyEtag(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return super().claim_ownership([self.matched(row) for row in ownership_list])

    def matched(self, row: dict[str, Any]) -> dict[str, Any]:
        if row.get("etag") != "" or not row["owner_id"]:
            return row
        names = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
        listed = self.list_ownership(*(row[name] for name in names))
        etags = {one["partition_id"]: one["etag"] for one in listed}
        return {**row, "etag": etags.get(row["partition_id"])}


@mutant("an_owner_without_the_etag_loses_too")
class TakesTheOwnerForTheEtag(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if stored and proposal.owner_id and stored.owner_id == proposal.owner_id:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("the_stored_etag_wins")
class OnlyCreates(Sound):
    def try_claim(self, proposal: Any) -> Any:
        return Lost() if self.stored(proposal) else super().try_claim(proposal)


@mutant("a_stale_etag_loses", "the_old_owner_loses_after_a_takeover")
class IgnoresWhichEtag(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if proposal.etag and stored:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("an_invented_etag_loses")
class ComparesTheBeginningOfEtags(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if stored and proposal.etag and stored.etag[:8] == proposal.etag[:8]:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("every_claim_gets_a_new_etag", "a_released_partition_is_not_renewed")
class KeepsTheEtag(Sound):
    def try_claim(self, proposal: Any) -> Any:
        return super().try_claim(replace(proposal, new_etag=proposal.etag or proposal.new_etag))


@mutant("an_etag_belongs_to_one_partition", "an_etag_is_never_used_again")
class CountsEtagsByRow(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        count = int(stored.etag.partition("-")[2]) + 1 if stored else 1
        return super().try_claim(replace(proposal, new_etag=f"row-{count}"))


@mutant("a_listed_etag_wins")
class QuotesListedEtags(Sound):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return [{**row, "etag": f'"{row["etag"]}"'} for row in super().list_ownership(*names)]


@mutant("a_lost_claim_is_left_out_of_its_batch")
class ReturnsWhatItLost(Sound):
    class Ownerships(Ownerships):
        def learn(self, proposal: Any, answer: Any, now: float) -> Any:
            row = super().learn(proposal, answer, now)
            return proposal.won(now) if isinstance(answer, Lost) else row


@mutant("every_winner_of_a_batch_is_returned")
class ListsOnePage(Sound):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        return super().list_ownership(*names)[:25]


@mutant(
    "one_of_many_first_claims_wins",
    "one_of_many_claims_with_the_same_etag_wins",
    "one_of_many_claims_through_one_store_wins",
)
class ChecksThenSets(Raced):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if stored and stored.etag != proposal.etag:
            return Lost(stored)
        self.rows.meet((proposal.partition_id, proposal.etag), 2)
        newest = self.stored(proposal)
        return super().try_claim(replace(proposal, etag=newest.etag if newest else None))


@mutant("one_of_many_claims_of_a_vanished_row_wins")
class OverwritesWhereARowHasVanished(Raced):
    def try_claim(self, proposal: Any) -> Any:
        if proposal.etag and not self.stored(proposal):
            self.rows.meet((proposal.partition_id, proposal.etag), 2)
            newest = self.stored(proposal)
            proposal = replace(proposal, etag=newest.etag if newest else None)
        return super().try_claim(proposal)


@mutant("an_etag_of_a_vanished_row_wins")
class LosesWhereARowHasVanished(Sound):
    def try_claim(self, proposal: Any) -> Any:
        if proposal.etag and not self.stored(proposal):
            return Lost()
        return super().try_claim(proposal)


class SignedRows(StallingRows):
    """Rows that know which of them this library has claimed."""

    def __init__(self) -> None:
        super().__init__()
        self.ours: set[str] = set()

    def claim(self, proposal: Any) -> Any:
        self.ours.add(proposal.new_etag)
        return super().claim(proposal)


@mutant("a_strangers_row_is_taken_by_its_etag_only")
class RespectsOnlyOwnRows(Sound):
    rows_class = SignedRows

    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if stored and proposal.etag is None and stored.etag not in self.rows.ours:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("a_release_lets_others_in")
class DeletesOnRelease(Sound):
    def try_claim(self, proposal: Any) -> Any:
        answer = super().try_claim(proposal)
        if isinstance(answer, Won) and proposal.is_release:
            self.rows.put_raw("ownership", proposal.scope, proposal.partition_id, None)
        return answer


@mutant("a_release_lets_others_in")
class ListsNoneForNobody(Sound):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        rows = super().list_ownership(*names)
        return [{**row, "owner_id": row["owner_id"] or None} for row in rows]


@mutant("a_stale_release_is_calm", "a_release_without_an_etag_is_calm")
class RaisesOnALostRelease(Sound):
    class Ownerships(Ownerships):
        def _release(self, proposal: Any) -> Any:
            row = super()._release(proposal)
            if row is None:
                raise StoreError("the release was lost")
            return row


@mutant("a_stale_release_is_calm", "a_release_without_an_etag_is_calm")
class ReleasesWhoeverOwns(Sound):
    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        if proposal.is_release and stored:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("a_late_release_spares_a_newer_claim")
class ReleasesWhateverItOwns(Sound):
    """It takes any claim of the same owner for the one that is released."""

    def try_claim(self, proposal: Any) -> Any:
        stored = self.stored(proposal)
        owner_id = self._engine.runner.known(proposal).lease.owner_id
        if proposal.is_release and stored and stored.owner_id == owner_id:
            proposal = replace(proposal, etag=stored.etag)
        return super().try_claim(proposal)


@mutant("releases_do_not_keep_claims_back")
class ReleasesFirstAndOnly(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = list(ownership_list)
        releases = [row for row in rows if not row["owner_id"]]
        return super().claim_ownership(releases or rows)


@mutant("a_release_uses_the_newest_own_etag")
class ReleasesOnce(Sound):
    class Ownerships(Ownerships):
        def _release_in_turn(self, proposal: Any) -> Any:
            self._runner.ready(is_release=True)
            answer = self.settle([proposal])[proposal]
            return self.learn(proposal, answer, time.time())


@mutant("a_checkpoint_survives_the_release")
class ReleasesTheCheckpointToo(Sound):
    def try_claim(self, proposal: Any) -> Any:
        if proposal.is_release:
            self.rows.put_raw("checkpoint", proposal.scope, proposal.partition_id, None)
        return super().try_claim(proposal)


@mutant("ownerships_and_checkpoints_are_apart")
class KeepsOneRowForBoth(Sound):
    def try_claim(self, proposal: Any) -> Any:
        answer = super().try_claim(proposal)
        if isinstance(answer, Won):
            self.rows.put_raw("checkpoint", proposal.scope, proposal.partition_id, None)
        return answer
