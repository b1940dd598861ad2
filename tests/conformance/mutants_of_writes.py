"""Stores that write checkpoints wrongly on a bad day, or over the rows of strangers."""

import threading
from dataclasses import replace
from typing import Any

from sound import Raced, Sound, mutant

from eventhub_checkpoints.errors import (
    StaleCheckpointError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores._sync.checkpoints import Checkpoints
from eventhub_checkpoints.stores._sync.runner import HookRunner
from eventhub_checkpoints.stores.hook_results import FORCE, Conflict, Written


@mutant("a_checkpoint_is_tried_again")
class WritesOnce(Sound):
    class Runner(HookRunner):
        def call(self, hook: Any, *args: Any, **options: Any) -> Any:
            try:
                return super().call(hook, *args, **options)
            except StoreUnavailableError as error:
                raise StoreError(str(error)) from error


@mutant("a_lost_answer_of_a_checkpoint_is_recognised", "an_unanswered_own_checkpoint_is_no_bound")
class TakesItsOwnWriteForAStrangers(Sound):
    class Runner(HookRunner):
        def call(self, hook: Any, *args: Any, **options: Any) -> Any:
            return super().call(hook, *args, **{**options, "retries": True})

    class Checkpoints(Checkpoints):
        def _write_in_turn(self, known: Any, record: Any, is_forced: bool) -> None:
            try:
                super()._write_in_turn(known, record, is_forced)
            finally:
                known.checkpoint = replace(known.checkpoint, unanswered=())


@mutant("a_stranger_after_a_lost_answer_is_not_overwritten")
class InsistsAfterALostAnswer(Sound):
    class Runner(HookRunner):
        def call(self, hook: Any, *args: Any, **options: Any) -> Any:
            try:
                return super().call(hook, *args, **options)
            except StoreUnavailableError:
                if hook != self.backend.write_checkpoint:
                    raise
                return super().call(hook, args[0], FORCE, retries=True)


@mutant("a_checkpoint_costs_one_request")
class ReadsBeforeItWrites(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.read_checkpoints(checkpoint.scope)
        return super().write_checkpoint(checkpoint, seen)


@mutant("a_stale_checkpoint_costs_no_request")
class AsksBeforeItRefuses(Sound):
    class Checkpoints(Checkpoints):
        def _refuse_stale(self, known: Any, record: Any) -> None:
            try:
                super()._refuse_stale(known, record)
            except StaleCheckpointError:
                self._runner.backend.write_checkpoint(record, "a version that nobody has")
                raise


@mutant("a_checkpoint_always_overtaken_can_be_tried_again")
class CallsTheOvertakenStale(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        try:
            super().update_checkpoint(checkpoint, **kwargs)
        except StoreUnavailableError as error:
            if "changed" in str(error):
                raise StaleCheckpointError("0", 0, 0) from error
            raise


@mutant("checkpoints_of_a_partition_are_written_in_turn")
class WritesAtOnce(Raced):
    class Runner(HookRunner):
        def write_lock(self, known: Any) -> Any:
            return threading.Lock()

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        if checkpoint.partition_id == "0":  # the one that is written twice
            self.rows.meet("0", 2)
        return super().write_checkpoint(checkpoint, seen)


@mutant("checkpoints_of_a_partition_are_written_in_turn")
class WritesOneAtATime(Sound):
    class Runner(HookRunner):
        def write_lock(self, known: Any) -> Any:
            # Atomic: two first writes at once would each find no lock, and have one of their own.
            return super().write_lock(vars(self).setdefault("first", known))


@mutant("a_stale_checkpoint_raises_where_asked")
class NeverRaisesStale(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        try:
            super().update_checkpoint(checkpoint, **kwargs)
        except StaleCheckpointError:
            return


@mutant("a_stale_checkpoint_is_counted")
class CountsNothing(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        super().update_checkpoint(checkpoint, **kwargs)
        self.counters.clear()


@mutant("a_refused_checkpoint_raises")
class IsSilentAboutARefusal(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        try:
            super().update_checkpoint(checkpoint, **kwargs)
        except StoreAccessError:
            return


@mutant("an_unknown_checkpoint_raises")
class IsSilentAboutTheUnknown(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        try:
            super().update_checkpoint(checkpoint, **kwargs)
        except StoreUnavailableError:
            return


@mutant("an_unusable_checkpoint_names_its_field")
class SaysOnlyValueError(Sound):
    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        try:
            super().update_checkpoint(checkpoint, **kwargs)
        except ValueError as error:
            raise ValueError("that checkpoint is no good") from error


@mutant("a_vanished_checkpoint_is_stored_again")
class UpdatesNoRowUnnoticed(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        if isinstance(seen, str) and self.stored_checkpoint(checkpoint) is None:
            return Written(checkpoint.version)
        return super().write_checkpoint(checkpoint, seen)


@mutant("a_strangers_row_is_written_over")
class RespectsForeignRows(Sound):
    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        row = dict(self.rows.raw("checkpoint", checkpoint.scope)).get(checkpoint.partition_id)
        if row and set(row.fields) != {"offset", "sequencenumber"}:
            return Conflict(self.stored_checkpoint(checkpoint))
        return super().write_checkpoint(checkpoint, seen)
