# Derived from _async/ownership.py by tools/unasync.py; edit that file.
"""Ownership of partitions: lists, claims, renewals and releases through a backend's hooks."""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventhub_checkpoints._shared._sync import compat
from eventhub_checkpoints._shared.deadline import pause, seconds_left
from eventhub_checkpoints.errors import InvalidRecordError, StoreError, StoreUnavailableError
from eventhub_checkpoints.records import Ownership, Proposal, Scope, checked_rows, fresh_etag
from eventhub_checkpoints.stores._sync.hooks import Answer, log
from eventhub_checkpoints.stores._sync.runner import HookRunner
from eventhub_checkpoints.stores.hook_results import Lost, Remembered, Won, on_local_clock
from eventhub_checkpoints.stores.partition_state import next_change


class Ownerships:
    """Reads, claims and releases the partitions of one store.

    Every method runs inside of a deadline; see `compat.bounded`.
    """

    def __init__(self, runner: HookRunner) -> None:
        self._runner = runner

    def read(self, scope: Scope) -> list[tuple[Ownership, float]]:
        """Return the rows of a scope, each with its time on this process's clock."""
        runner = self._runner
        runner.ready()
        began = next_change()
        listing = runner.call(runner.backend.read_ownerships, scope, retries=True)
        rows = on_local_clock(listing, time.time())
        with runner.guard:
            runner.states.ownerships_listed(scope, rows, began)
        runner.report(listing.skipped)
        return rows

    def reopen(self, scope: Scope, partition_id: str) -> None:
        """Leave the next renewal of a partition out, so that its client opens a new link."""
        with self._runner.guard:
            self._runner.states.partition(scope, partition_id).must_reopen = True

    def take_reopening(self, claim: Proposal) -> bool:
        """Return whether this renewal is the one to leave out for `reopen`, which ends with it."""
        with self._runner.guard:
            known = self._runner.states.partition(claim.scope, claim.partition_id)
            must_reopen, known.must_reopen = known.must_reopen, False
        return must_reopen and not claim.is_release

    def claim(
        self, proposals: Sequence[Proposal], failures: list[Exception]
    ) -> dict[Proposal, Ownership]:
        """Claim, renew or release partitions; return the rows of those that are held.

        Args:
            proposals: releases have an empty `owner_id`.
            failures: gets the definite errors of single proposals.
        """
        runner = self._runner
        releases = [proposal for proposal in proposals if not proposal.owner_id]
        claims = [proposal for proposal in proposals if proposal.owner_id]
        won = self._release_all(releases) if releases else {}
        if not claims:
            return won
        runner.ready()
        with runner.guard:
            runner.states.proposed(claims)
        answers = self.settle(claims)
        now = time.time()
        for claim, answer in answers.items():
            row = self.learn(claim, answer, now)
            if row is not None:
                won[claim] = row
            elif isinstance(answer, Exception) and not isinstance(answer, StoreUnavailableError):
                failures.append(answer)
        return won

    def learn(self, proposal: Proposal, answer: Answer, now: float) -> Ownership | None:
        """Record the outcome of a claim; return the row if the partition is held."""
        if isinstance(answer, Won):
            return answer.row
        runner = self._runner
        with runner.guard:
            known = runner.states.partition(proposal.scope, proposal.partition_id)
            if isinstance(answer, StoreUnavailableError):
                kept = known.renewed_by(proposal.owner_id, proposal.etag)
                runner.counters["unconfirmed_claims"] += 1
                log.warning("claim of partition %s: %s", proposal.partition_id, answer)
                if kept and now - kept.last_modified_time < runner.settings.keep_unconfirmed:
                    return kept
            elif isinstance(answer, Exception):
                return None
            elif proposal.is_release and proposal.etag not in known.lease.etags:
                # The release came late, and does not concern a newer claim of the same client.
                return None
            else:
                runner.counters["lost_claims"] += 1
                log.debug("partition %s went to another owner", proposal.partition_id)
            known.record_claim(known.lease.lost())
            return None

    def settle(self, proposals: Sequence[Proposal]) -> dict[Proposal, Answer]:
        """Retry until every proposal has a definite answer or the time is over."""
        answers: dict[Proposal, Answer] = {}
        unanswered: set[Proposal] = set()
        pending, attempt = list(proposals), 0
        while True:
            if len(pending) == 1:
                answers[pending[0]] = self._try_one(pending[0])
            else:
                answers.update(self._try_batch(pending))
            if unanswered:
                conflicts = [
                    claim
                    for claim in pending
                    if claim in unanswered and isinstance(answers[claim], Lost)
                ]
                answers.update(self._recognise(conflicts))
            pending = [
                claim for claim in pending if isinstance(answers[claim], StoreUnavailableError)
            ]
            if not pending:
                return answers
            unanswered.update(pending)
            wait = pause(attempt, seconds_left(), random.random())
            if wait is None:
                return answers
            compat.sleep(wait)
            attempt += 1

    def _try_one(self, proposal: Proposal) -> Answer:
        began = time.time()
        try:
            answer = self._runner.call(self._runner.backend.try_claim, proposal)
        except Exception as error:
            return error
        return self.remember(proposal, answer, began)

    def _try_batch(self, pending: Sequence[Proposal]) -> dict[Proposal, Answer]:
        began, left, runner = time.time(), seconds_left(), self._runner
        answers: Sequence[Answer] | None
        try:
            # The hook must end before the deadline of the call, or its winners would not be known.
            limited = compat.bounded, 0.9 * left, runner.backend.try_claims, pending
            answers = runner.call(*limited, limit=left)
            if answers is None:
                # Each has its own limit: cancelling all of them would lose track of those that won.
                limit = runner.settings.max_concurrency
                answers = compat.for_each(self._try_one, pending, limit)
            elif wrong := self._wrong_answers(answers, len(pending)):
                raise wrong
        except Exception as error:
            answers = [runner.mapped(error)] * len(pending)
        return {
            proposal: self.remember(proposal, answer, began)
            for proposal, answer in zip(pending, answers, strict=True)
        }

    def _wrong_answers(self, answers: object, proposals: int) -> StoreError | None:
        """Return an error unless `try_claims` has returned an answer to each proposal."""
        name = f"{type(self._runner.backend).__name__}.try_claims"
        if not isinstance(answers, Sequence):
            kind = type(answers).__name__
            return StoreError(f"{name} returned {kind}; expected a list of answers, or None")
        if len(answers) != proposals:
            return StoreError(f"{name} returned {len(answers)} answers to {proposals} proposals")
        checked = (self._runner.wrong_result("try_claims", answer) for answer in answers)
        return next(filter(None, checked), None)

    def remember(self, proposal: Proposal, answer: Answer, began: float) -> Answer:
        """Record a win at once, dated to its request: the rest of its batch may take long.

        A release in the meantime needs the new etag, even if the batch is cancelled.
        """
        if not isinstance(answer, Won) or isinstance(answer, Remembered):
            return answer
        row = answer.row.at(began)
        with self._runner.guard:
            known = self._runner.states.partition(proposal.scope, proposal.partition_id)
            known.record_claim(known.lease.won(row, proposal.etag), row)
        return Remembered(row)

    def _recognise(self, conflicts: Sequence[Proposal]) -> dict[Proposal, Answer]:
        """Resolve conflicts with this store's own claims whose answers were lost.

        A release has no owner by which to recognise it, and its conflicts are harmless.
        """
        own: dict[Proposal, Answer] = {}
        for scope in {claim.scope for claim in conflicts if not claim.is_release}:
            claims = [claim for claim in conflicts if claim.scope == scope]
            try:
                rows = {row[0].partition_id: row for row in self.read(scope)}
                self._runner.call(self._runner.backend.confirm)
            except Exception as error:
                own.update(dict.fromkeys(claims, error))
                continue
            for claim in claims:
                row, modified = rows.get(claim.partition_id, (None, 0.0))
                if row is not None and self._is_own(claim, row):
                    own[claim] = self.remember(claim, Won(row), modified)
        return own

    def _is_own(self, proposal: Proposal, row: Ownership) -> bool:
        if self._runner.backend.makes_own_etags:
            return row.owner_id == proposal.owner_id
        return row.etag == proposal.new_etag

    def _release_all(self, releases: Sequence[Proposal]) -> dict[Proposal, Ownership]:
        runner = self._runner
        runner.begin_release()
        try:
            limit = runner.settings.max_concurrency
            rows = compat.for_each(self._release, releases, limit)
        except RuntimeError as error:  # no thread can be started at interpreter shutdown
            log.warning("%d partitions were not released: %s", len(releases), error)
            return {}
        finally:
            runner.end_release()
        pairs = zip(releases, rows, strict=True)
        return {release: row for release, row in pairs if row is not None}

    def _release(self, proposal: Proposal) -> Ownership | None:
        """Release a partition; on any failure, its ownership expires by itself.

        Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`,
        `release_ownership`: an error here would leave `receive()`, and the client's other
        partitions would not be released.
        """
        settings = self._runner.settings
        seconds = min(settings.write_timeout, settings.operation_timeout)
        try:
            return compat.bounded(seconds, self._release_in_turn, proposal)
        except Exception as error:
            log.warning("partition %s was not released: %s", proposal.partition_id, error)
            return None

    def _release_in_turn(self, proposal: Proposal) -> Ownership | None:
        self._runner.ready(is_release=True)
        known = self._runner.known(proposal)
        # A checkpoint that is being written belongs to the owner that releases: wait for it.
        with compat.holding(self._runner.write_lock(known), seconds_left()):
            answer = (self.settle([proposal]))[proposal]
            newer = known.lease.newer_etag(proposal.etag)
            if isinstance(answer, Lost) and newer:
                proposal = replace(proposal, etag=newer, new_etag=fresh_etag())
                answer = (self.settle([proposal]))[proposal]
            if isinstance(answer, Exception):
                raise answer
            return self.learn(proposal, answer, time.time())


def proposed(
    ownership_list: Iterable[Mapping[str, Any]], failures: list[Exception]
) -> Iterator[Proposal]:
    """Yield the valid proposals; add the errors of others to `failures`, but log a release's."""
    for row in checked_rows(ownership_list):
        try:
            yield Proposal.from_dict(row, fresh_etag())
        except InvalidRecordError as error:
            if isinstance(row, Mapping) and not row.get("owner_id"):
                log.warning("a release was left out: %s", error)
            else:
                failures.append(error)
