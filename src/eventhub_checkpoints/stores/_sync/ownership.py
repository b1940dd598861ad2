# Derived from _async/ownership.py by tools/unasync.py; edit that file.
"""Ownership methods of a store: lists, claims, renewals and releases."""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._sync import compat
from eventhub_checkpoints._shared._sync.client_check import own_client_only
from eventhub_checkpoints._shared.deadline import pause, seconds_left
from eventhub_checkpoints.errors import InvalidRecordError, StoreUnavailableError
from eventhub_checkpoints.records import Ownership, Proposal, Scope, checked_rows, fresh_etag
from eventhub_checkpoints.stores._sync.hooks import Answer, HookRunner, log
from eventhub_checkpoints.stores.hook_results import Lost, Won, on_local_clock
from eventhub_checkpoints.stores.partition_state import next_change


class OwnershipMethods(HookRunner):
    """Ownership methods of the SDK's `CheckpointStore`, implemented with a backend's hooks."""

    @own_client_only
    def list_ownership(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return all ownerships of a consumer group, as fresh dicts.

        Returns:
            Dicts with the three names as passed, `partition_id`, `owner_id` (`""`: released),
            `etag`, and `last_modified_time` in float seconds since the epoch on this process's
            clock. (The SDK documents a datetime, but compares it with `time.time()`.)

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.

        Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`,
        `_balance_ownership`: it iterates over the list three times and modifies the rows.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        rows = compat.uninterrupted(self.settings.operation_timeout, self._list, scope)
        return [row.as_dict(scope, modified) for row, modified in rows]

    def claim_ownership(
        self, ownership_list: Iterable[Mapping[str, Any]], **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Try to claim, renew or release each proposed partition; return those that were won.

        A proposal wins when its etag is the stored one, or when nothing is stored. A proposal that
        loses is left out; losing is not an error. A proposal with an empty `owner_id` is a release,
        and never raises. A renewal whose outcome stays unknown is returned unchanged for
        `keep_unconfirmed` seconds after the server last confirmed the row; any other proposal whose
        outcome stays unknown is left out.

        Args:
            ownership_list: proposals as the SDK builds them; neither kept nor modified.

        Returns:
            Fresh dicts in the order proposed, with the new `etag` and `last_modified_time`.

        Raises:
            InvalidRecordError: a proposal is invalid; raised after all others were tried. Or
                `ownership_list` is not a list of dicts.
            StoreAccessError: the backend refused access; raised after all were tried.
            StoreNotReadyError: the container, table or keyspace does not exist; likewise.
        """
        failures: list[Exception] = []
        proposals = list(proposed(ownership_list, failures))
        with tracing.claim(proposals) as operation:
            won = compat.uninterrupted(
                self.settings.operation_timeout, self._claim_all, proposals, failures
            )
            operation.set("won", len(won))
            if failures:
                raise failures[0]
        return [
            won[claim].as_dict(claim.scope)
            for claim in proposals
            if claim in won and not self._is_let_go(claim)
        ]

    def let_go(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> None:
        """Have this store's client close a partition, and open it again with a new link.

        The next renewal of the partition is left out of the result of `claim_ownership`, once. The
        client then closes the partition as if it were lost, and claims it again in its next round;
        meanwhile its ownership stays in force. For a watchdog, see `Checkpointer`.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        with self._state_lock:
            self._states.partition(scope, partition_id).is_let_go = True

    def _is_let_go(self, claim: Proposal) -> bool:
        with self._state_lock:
            known = self._states.partition(claim.scope, claim.partition_id)
            is_let_go, known.is_let_go = known.is_let_go, False
        return is_let_go and not claim.is_release

    def _list(self, scope: Scope) -> list[tuple[Ownership, float]]:
        self._ready()
        began = next_change()
        listing = self._call(self.read_ownerships, scope, retries=True)
        rows = on_local_clock(listing, time.time())
        with self._state_lock:
            self._states.ownerships_listed(scope, rows, began)
        self._report(listing.skipped)
        return rows

    def _claim_all(
        self, proposals: Sequence[Proposal], failures: list[Exception]
    ) -> dict[Proposal, Ownership]:
        releases = [proposal for proposal in proposals if not proposal.owner_id]
        claims = [proposal for proposal in proposals if proposal.owner_id]
        won = self._release_all(releases) if releases else {}
        if not claims:
            return won
        self._ready()
        with self._state_lock:
            self._states.proposed(claims)
        answers = self._settle(claims)
        now = time.time()
        for claim, answer in answers.items():
            row = self._learn(claim, answer, now)
            if row is not None:
                won[claim] = row
            elif isinstance(answer, Exception) and not isinstance(answer, StoreUnavailableError):
                failures.append(answer)
        return won

    def _learn(self, proposal: Proposal, answer: Answer, now: float) -> Ownership | None:
        """Record the outcome of a claim; return the row if the partition is held."""
        if isinstance(answer, Won):
            return answer.row
        with self._state_lock:
            known = self._states.partition(proposal.scope, proposal.partition_id)
            if isinstance(answer, StoreUnavailableError):
                kept = known.renewed_by(proposal.owner_id, proposal.etag)
                self.counters["unconfirmed_claims"] += 1
                log.warning("claim of partition %s: %s", proposal.partition_id, answer)
                if kept and now - kept.last_modified_time < self.settings.keep_unconfirmed:
                    return kept
            elif isinstance(answer, Exception):
                return None
            elif proposal.is_release and proposal.etag not in known.lease.etags:
                # The release came late, and does not concern a newer claim of the same client.
                return None
            else:
                self.counters["lost_claims"] += 1
                log.debug("partition %s went to another owner", proposal.partition_id)
            known.record_claim(known.lease.lost())
            return None

    def _settle(self, proposals: Sequence[Proposal]) -> dict[Proposal, Answer]:
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

    def _try_batch(self, pending: Sequence[Proposal]) -> dict[Proposal, Answer]:
        began, left = time.time(), seconds_left()
        try:
            if type(self).try_claims is HookRunner.try_claims:
                # Each has its own limit: cancelling all of them would lose track of those that won.
                answers = self.try_claims(pending)
            else:
                # The hook must end before the outer deadline, or its winners would not be known.
                # `_call` gives one attempt half of `seconds`, so pass it twice the time left.
                limited = compat.bounded, 0.9 * left, self.try_claims, pending
                answers = self._call(*limited, seconds=2 * left)
        except Exception as error:
            answers = [self._mapped(error)] * len(pending)
        return {
            proposal: self._remembered(proposal, answer, began)
            for proposal, answer in zip(pending, answers, strict=True)
        }

    def _recognise(self, conflicts: Sequence[Proposal]) -> dict[Proposal, Answer]:
        """Resolve conflicts with this store's own claims whose answers were lost.

        A release has no owner by which to recognise it, and its conflicts are harmless.
        """
        own: dict[Proposal, Answer] = {}
        for scope in {claim.scope for claim in conflicts if not claim.is_release}:
            claims = [claim for claim in conflicts if claim.scope == scope]
            try:
                rows = {row[0].partition_id: row for row in self._list(scope)}
                self._call(self.confirm)
            except Exception as error:
                own.update(dict.fromkeys(claims, error))
                continue
            for claim in claims:
                row, modified = rows.get(claim.partition_id, (None, 0.0))
                if row is not None and self._is_own(claim, row):
                    own[claim] = self._remembered(claim, Won(row), modified)
        return own

    def _is_own(self, proposal: Proposal, row: Ownership) -> bool:
        if self.makes_own_etags:
            return row.owner_id == proposal.owner_id
        return row.etag == proposal.new_etag

    def _release_all(self, releases: Sequence[Proposal]) -> dict[Proposal, Ownership]:
        with self._state_lock:
            self._releasing += 1
        try:
            rows = compat.for_each(self._release, releases, self.settings.max_concurrency)
        except RuntimeError as error:  # no thread can be started at interpreter shutdown
            log.warning("%d partitions were not released: %s", len(releases), error)
            return {}
        finally:
            self._close_again()
        pairs = zip(releases, rows, strict=True)
        return {release: row for release, row in pairs if row is not None}

    def _close_again(self) -> None:
        """Close the connections that the last release after `close` has opened."""
        with self._state_lock:
            self._releasing -= 1
            is_last = self._closed_in == compat.place() and not self._releasing
        if is_last and not self._is_closing:
            try:
                self.close()
            except Exception as error:
                log.warning("the connection of a late release was not closed: %s", error)

    def _release(self, proposal: Proposal) -> Ownership | None:
        """Release a partition; on any failure, its ownership expires by itself.

        Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`,
        `release_ownership`: an error here would leave `receive()`, and the client's other
        partitions would not be released.
        """
        seconds = min(self.settings.write_timeout, self.settings.operation_timeout)
        try:
            return compat.bounded(seconds, self._release_in_turn, proposal)
        except Exception as error:
            log.warning("partition %s was not released: %s", proposal.partition_id, error)
            return None

    def _release_in_turn(self, proposal: Proposal) -> Ownership | None:
        self._ready(is_release=True)
        known = self._known(proposal)
        # A checkpoint that is being written belongs to the owner that releases: wait for it.
        with compat.holding(self._write_lock(known), seconds_left()):
            answer = (self._settle([proposal]))[proposal]
            newer = known.lease.newer_etag(proposal.etag)
            if isinstance(answer, Lost) and newer:
                proposal = replace(proposal, etag=newer, new_etag=fresh_etag())
                answer = (self._settle([proposal]))[proposal]
            if isinstance(answer, Exception):
                raise answer
            return self._learn(proposal, answer, time.time())


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
