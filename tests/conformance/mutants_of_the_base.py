"""Stores that are wrong on a bad day: retries, lost answers, bounds and clocks."""

import copy
import time
from dataclasses import replace
from typing import Any

from sound import Sound, mutant

from eventhub_checkpoints._shared._sync.compat import bounded
from eventhub_checkpoints._shared.settings import Settings
from eventhub_checkpoints.errors import StoreError, StoreNotReadyError, StoreUnavailableError
from eventhub_checkpoints.records import Proposal
from eventhub_checkpoints.stores._sync.ownership import Ownerships
from eventhub_checkpoints.stores._sync.runner import HookRunner
from eventhub_checkpoints.stores.hook_results import Lost
from eventhub_checkpoints.stores.partition_state import PartitionStates


@mutant("a_claim_is_asked_again")
class ClaimsOnce(Sound):
    class Ownerships(Ownerships):
        def settle(self, proposals: Any) -> Any:
            return self._try_batch(proposals)


@mutant("a_list_is_asked_again")
class ListsOnce(Sound):
    class Runner(HookRunner):
        def call(self, hook: Any, *args: Any, limit: Any = None, retries: bool = False) -> Any:
            return super().call(hook, *args, limit=limit)


@mutant("an_unknown_first_claim_is_left_out")
class TakesTheUnknownForWon(Sound):
    class Ownerships(Ownerships):
        def learn(self, proposal: Any, answer: Any, now: float) -> Any:
            row = super().learn(proposal, answer, now)
            is_new = isinstance(answer, StoreUnavailableError) and proposal.etag is None
            return proposal.won(now) if is_new else row


@mutant("a_lost_answer_is_recognised", "a_lost_answer_of_a_renewal_is_recognised")
class RecognisesNothing(Sound):
    class Ownerships(Ownerships):
        def _recognise(self, conflicts: Any) -> Any:
            return {}


@mutant("a_rival_after_a_lost_answer_is_no_own_claim")
class TakesAnyRowForItsOwn(Sound):
    class Ownerships(Ownerships):
        def _is_own(self, proposal: Any, row: Any) -> bool:
            return True


@mutant("a_plain_conflict_is_not_looked_into")
class LooksIntoEveryConflict(Sound):
    def try_claim(self, proposal: Any) -> Any:
        answer = super().try_claim(proposal)
        if isinstance(answer, Lost):
            self.read_ownerships(proposal.scope)
        return answer


@mutant("an_unknown_renewal_is_kept")
class GivesUpWhatIsUnknown(Sound):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, keep_unconfirmed=0.0)


@mutant("an_unknown_renewal_is_kept")
class KeepsTheUnknownAsNew(Sound):
    class Ownerships(Ownerships):
        def learn(self, proposal: Any, answer: Any, now: float) -> Any:
            row = super().learn(proposal, answer, now)
            if isinstance(answer, StoreUnavailableError) and row is not None:
                return replace(row, last_modified_time=now)
            return row


@mutant("an_unknown_renewal_is_not_kept_for_ever")
class KeepsTheUnknownForEver(Sound):
    class Ownerships(Ownerships):
        def learn(self, proposal: Any, answer: Any, now: float) -> Any:
            known = self._runner.known(proposal)
            kept = known.renewed_by(proposal.owner_id, proposal.etag)
            row = super().learn(proposal, answer, now)
            return kept if isinstance(answer, StoreUnavailableError) else row


class FlatteredStates(PartitionStates):
    """Takes what a list shows for new."""

    def ownerships_listed(self, scope: Any, rows: Any, began: Any) -> None:
        young = [(row, time.time()) for row, _ in rows]
        super().ownerships_listed(scope, young, began)


@mutant("a_listed_ownership_is_kept_by_its_age")
class TakesListedForNew(Sound):
    class Runner(HookRunner):
        def _enter_process(self) -> None:
            super()._enter_process()
            self.states = FlatteredStates()


@mutant("a_refused_claim_raises_after_the_others")
class IsSilentAboutARefusedClaim(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        try:
            return super().claim_ownership(ownership_list)
        except StoreError:
            return []


@mutant("a_refused_claim_raises_after_the_others")
class TakesARefusalForAWin(Sound):
    """It gives the caller's own dicts back."""

    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = list(ownership_list)
        try:
            return super().claim_ownership(rows)
        except StoreError:
            return rows


@mutant("a_refused_claim_raises_after_the_others", "claims_of_a_batch_run_side_by_side")
class ClaimsOneAfterTheOther(Sound):
    """The first refusal ends it."""

    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return [
            one for row in ownership_list for one in super(type(self), self).claim_ownership([row])
        ]


@mutant("winners_of_a_batch_that_raises_are_remembered")
class ForgetsABatchThatRaised(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        runner = self._engine.runner
        before = copy.deepcopy(runner.states)
        try:
            return super().claim_ownership(ownership_list)
        except StoreError:
            runner.states = before
            raise


@mutant("a_backend_that_is_not_ready_raises")
class TakesTheMissingForEmpty(Sound):
    def list_ownership(self, *names: Any, **kwargs: Any) -> Any:
        try:
            return super().list_ownership(*names)
        except StoreNotReadyError:
            return []


@mutant("an_unusable_proposal_raises_after_the_others")
class ChecksTheWholeBatchFirst(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = list(ownership_list)
        for row in rows:
            if row["owner_id"]:
                Proposal.from_dict(row, "new")
        return super().claim_ownership(rows)


@mutant("an_unusable_release_is_calm")
class ChecksReleasesToo(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = list(ownership_list)
        for row in rows:
            if not row["owner_id"]:
                Proposal.from_dict(row, "new")
        return super().claim_ownership(rows)


@mutant("a_release_that_fails_is_calm")
class LetsAReleaseFail(Sound):
    class Ownerships(Ownerships):
        def _release(self, proposal: Any) -> Any:
            seconds = self._runner.settings.write_timeout
            return bounded(seconds, self._release_in_turn, proposal)


@mutant("a_release_waits_for_a_checkpoint_under_way")
class ReleasesAtOnce(Sound):
    class Ownerships(Ownerships):
        def _release_in_turn(self, proposal: Any) -> Any:
            self._runner._write_locks = {}
            return super()._release_in_turn(proposal)


@mutant("a_late_release_leaves_the_newer_claim_known")
class TakesALateReleaseForALoss(Sound):
    class Ownerships(Ownerships):
        def learn(self, proposal: Any, answer: Any, now: float) -> Any:
            row = super().learn(proposal, answer, now)
            if proposal.is_release and isinstance(answer, Lost):
                known = self._runner.known(proposal)
                known.record_claim(known.lease.lost())
            return row


@mutant("no_more_claims_at_once_than_allowed")
class ClaimsAllAtOnce(Sound):
    class Runner(HookRunner):
        @property
        def settings(self) -> Settings:
            return replace(self._settings, max_concurrency=64)

        @settings.setter
        def settings(self, settings: Settings) -> None:
            self._settings = settings


@mutant("a_claim_on_a_clock_that_is_off_is_new")
class GivesTheBackendsTimeForAClaim(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        rows = super().claim_ownership(ownership_list)
        return [{**row, "last_modified_time": self.rows.now()} for row in rows]


@mutant("an_age_is_never_negative")
class GivesTimesInTheFuture(Sound):
    class Ownerships(Ownerships):
        def read(self, scope: Any) -> Any:
            listing = self._runner.call(self._runner.backend.read_ownerships, scope)
            ahead = time.time() - listing.server_now
            return [(row, row.last_modified_time + ahead) for row in listing.rows]


@mutant("a_closed_store_stays_closed")
class OpensAgain(Sound):
    def close(self) -> None:
        pass


@mutant("a_release_after_closing_is_done")
class ReleasesNothingOnceClosed(Sound):
    class Ownerships(Ownerships):
        def _release(self, proposal: Any) -> Any:
            return None if self._runner.is_closed else super()._release(proposal)


@mutant("a_release_after_closing_is_done")
class IsOpenAfterALateRelease(Sound):
    class Ownerships(Ownerships):
        def _release(self, proposal: Any) -> Any:
            self._runner._closed_in = None
            return super()._release(proposal)
