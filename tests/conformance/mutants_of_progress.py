"""Stores that let checkpoints go back, or keep from going on."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from sound import Raced, Sound, mutant

from eventhub_checkpoints.errors import StoreAccessError
from eventhub_checkpoints.stores._sync.ownership import Ownerships
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    FORCE,
    Conflict,
    Remembered,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.partition_state import PartitionStates

HIGHEST = 13
"""The highest of the four checkpoints that race."""


@mutant("a_zombies_checkpoint_is_refused")
class WritesOverAnyVersion(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        return super().write_checkpoint(checkpoint, FORCE if isinstance(seen, str) else seen)


@mutant("a_zombie_of_the_first_checkpoint_is_refused")
class CreatesOverAnyRow(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        return super().write_checkpoint(checkpoint, FORCE if isinstance(seen, Seen) else seen)


@mutant("racing_checkpoints_keep_the_highest")
class ReadsThenWrites(Raced):
    """All four have read before the first of them writes, and the lowest writes last."""

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        stored = self.stored_checkpoint(checkpoint)
        partition_id, number = checkpoint.partition_id, checkpoint.sequence_number
        self.rows.meet((partition_id, "read"), 4)
        if number < HIGHEST:
            self.rows.await_event((partition_id, number + 1))
        try:
            if seen is not FORCE and (stored.version if stored else ABSENT) != (
                seen if isinstance(seen, str) else ABSENT
            ):
                return Conflict(stored)
            return super().write_checkpoint(checkpoint, FORCE)
        finally:
            self.rows.set_event((partition_id, number))


class Remembers(Sound):
    """Refuses what is below a bound that it remembers, and should not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bounds: dict[str, int] = defaultdict(lambda: -(2**63))

    def update_checkpoint(self, checkpoint: Any, *, force: bool = False, **kwargs: Any) -> None:
        number, partition_id = checkpoint["sequence_number"], checkpoint["partition_id"]
        is_int = isinstance(number, int) and isinstance(partition_id, str)
        if is_int and not force and number < self.bounds[partition_id]:
            return
        super().update_checkpoint(checkpoint, force=force)


@mutant("what_nobody_else_wrote_may_go_down")
class IsBoundByItsOwnWrites(Remembers):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint, **kwargs)
        self.bounds[checkpoint["partition_id"]] = checkpoint["sequence_number"]


@mutant("a_new_owner_may_start_again_at_zero", "a_reader_by_name_starts_where_its_list_says")
class IsBoundByItsLists(Remembers):
    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        rows = super().list_checkpoints(*names)
        self.bounds |= {row["partition_id"]: row["sequence_number"] or 0 for row in rows}
        return rows


class MeetsConflicts(Remembers):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        answer = super().write_checkpoint(checkpoint, seen)
        if isinstance(answer, Conflict) and answer.stored:
            self.bounds[checkpoint.partition_id] = answer.stored.sequence_number or 0
        return answer


@mutant("the_list_after_a_claim_clears_the_floor")
class NeverClearsTheFloor(MeetsConflicts):
    def update_checkpoint(self, checkpoint: Any, *, force: bool = False, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint, force=force)
        if force:
            self.bounds.clear()


@mutant("force_clears_the_floor")
class ForceKeepsTheFloor(MeetsConflicts):
    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        self.bounds.clear()
        return super().list_checkpoints(*names)


@mutant("force_goes_back")
class ForgetsForce(Sound):
    def update_checkpoint(self, checkpoint: Any, *, force: bool = False, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint)


@mutant("force_creates_the_first_checkpoint")
class ForcesOnlyUpdates(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        if seen is FORCE and self.stored_checkpoint(checkpoint) is None:
            return Written("nothing")
        return super().write_checkpoint(checkpoint, seen)


@mutant("a_checkpoint_above_a_strangers_is_stored")
class RefusesAfterAnyConflict(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        answer = super().write_checkpoint(checkpoint, seen)
        if isinstance(answer, Conflict) and answer.stored:
            return Conflict(replace(answer.stored, sequence_number=2**62))
        return answer


@mutant("an_equal_checkpoint_is_success")
class RefusesTheEqual(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        stored = self.stored_checkpoint(checkpoint)
        if stored and stored.sequence_number == checkpoint.sequence_number and seen is not FORCE:
            raise StoreAccessError("this sequence number is stored already")
        return super().write_checkpoint(checkpoint, seen)


class Taught(Sound):
    """Has states that learn wrongly."""

    states_class: type[PartitionStates]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._engine.runner.states = self.states_class()


@mutant("a_claim_that_was_released_forgives_nothing")
class ForgetsThatItReleased(Sound):
    class Ownerships(Ownerships):
        def remember(self, proposal: Any, answer: Any, began: float) -> Any:
            if proposal.is_release and isinstance(answer, Won):
                return Remembered(answer.row)
            return super().remember(proposal, answer, began)


@mutant("an_owners_later_list_forgives_nothing")
class EveryListForgives(Sound):
    def list_checkpoints(self, *names: Any, **kwargs: Any) -> Any:
        self._engine.runner.states = PartitionStates()
        return super().list_checkpoints(*names)


class DeafToOwnerships(PartitionStates):
    def ownerships_listed(self, scope: Any, rows: Any, began: Any) -> None:
        pass


@mutant("a_claim_that_was_lost_forgives_nothing")
class LearnsNothingFromOwnerships(Taught):
    states_class = DeafToOwnerships


class DeafToProposals(PartitionStates):
    def proposed(self, claims: Any) -> None:
        pass


@mutant("a_claim_no_longer_proposed_forgives_nothing")
class LearnsNothingFromProposals(Taught):
    states_class = DeafToProposals


class Credulous(PartitionStates):
    def checkpoints_listed(self, scope: Any, rows: Any, began: Any) -> None:
        super().checkpoints_listed(scope, rows, self.begin_list(scope))


@mutant(
    "a_list_that_a_write_overtook_teaches_nothing",
    "a_list_begun_before_the_claim_forgives_nothing",
)
class TakesEveryListForNews(Taught):
    states_class = Credulous
