# Derived from _async/handover.py by tools/unasync.py; edit that file.
"""Checkpoint store with which consumers hand partitions over instead of taking them."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.client_check import check_store, own_client_only
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.per_process import PerProcess
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.settings import require_seconds
from eventhub_checkpoints._shared.wrapping import innermost, require_wrappable
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._sync.coalescing import CoalescingCheckpointStore
from eventhub_checkpoints.processing._sync.receive_loop import to_the_end
from eventhub_checkpoints.processing.handover import Answer, GroupHandover, HandoverRequest
from eventhub_checkpoints.records import RELEASED, Scope, checked_name, checked_row, checked_rows

log = logging.getLogger("eventhub_checkpoints")

Rows = list[dict[str, Any]]

LAST_WRITE = 10.0
"""Seconds that a write has to end after its caller was cancelled."""


@dataclass
class Groups:
    """What the client of one process knows of its consumer groups; usually there is one.

    Attributes:
        by_scope: the groups, by their folded names.
        scopes: their names as the client spells them.
        guard: of all of them. A sync client claims in one thread, and releases in another.
    """

    by_scope: dict[Scope, GroupHandover] = field(default_factory=dict)
    scopes: dict[Scope, Scope] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)


class ClaimResult(list[dict[str, Any]]):
    """Result of `claim_ownership` while partitions are handed over.

    The client iterates over the result at once, to learn which partitions to keep open, and again
    when it has closed a partition, to find the row to release. The first iteration leaves out the
    partitions that are handed over, so that the client closes them; later iterations include them,
    so that the client releases each of them when it is closed.

    Source: azure-eventhub 5.12.0 to 5.15.1, `_eventprocessor/ownership_manager.py` and its aio
    twin: `claim_ownership` and `release_ownership`, over `owned_partitions`.
    """

    def __init__(self, kept: Rows, departing: Rows) -> None:
        super().__init__(kept)
        self._departing = departing

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = list(super().__iter__())
        # A sync client iterates in two threads. If the one that releases comes first, the other
        # keeps the partition open until the next round.
        departing, self._departing = self._departing, []
        self.extend(departing)
        return iter(rows)


def is_handing_over(store: object, *names: str) -> bool:
    """Return whether a client with this store is handing a partition over."""
    return isinstance(store, HandoverStore) and store.is_handing_over(*names)


class HandoverStore(
    OfOneProcess,
    CheckpointStore,
    pickle_instead="pass the URL of its store, and create both in the other process",
):
    """Checkpoint store that asks the owner of a partition for it, instead of taking it over.

    A `HandoverStore` wraps another store, and must be the outermost one:
    `checkpoint_store=HandoverStore(store, expires_after=180)`. Where the client would take over a
    partition from a client that is alive, the store writes a hand-over request instead. The owner
    finds the request in its next round of load balancing, and its client closes the partition: it
    stops receiving, calls `on_partition_close`, and then releases the partition. The client that
    asked claims the partition in its next round. No event is processed twice, provided that
    everything that was processed is saved before `on_partition_close` returns.

    If an owner does not answer within `expires_after`, for example because it has no
    `HandoverStore`, the client that asked takes the partition over. Partitions that are released,
    have expired or have no owner are claimed at once, unless another client has asked for them:
    while its request is open, only that client claims them.

    Args:
        store: the store to use; it is not closed. Each client needs a store of its own.
        expires_after: seconds until an ownership expires: the client's
            `partition_ownership_expiration_interval`, by default six times its
            `load_balancing_interval`, which is 180.

    Attributes:
        store: the wrapped store.
        expires_after: seconds until an ownership expires.

    Raises:
        ConfigurationError: `expires_after` is not a number of seconds, or `store` is not a store,
            or is a `HandoverStore` itself.
    """

    is_outermost = True

    @with_checked_arguments
    def __init__(self, store: CheckpointStore, *, expires_after: float) -> None:
        check_store(store)
        require_seconds("expires_after", expires_after)
        require_wrappable(self, store)
        self.store = store
        self.expires_after = expires_after
        self._is_quick = isinstance(store, CoalescingCheckpointStore)
        self._groups = PerProcess(Groups)

    @with_checked_arguments
    def is_handing_over(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> bool:
        """Return whether a partition is being handed over to another consumer.

        In `on_partition_close` this tells a hand-over from a loss: nobody takes the partition over
        before the callback returns, as long as the hand-over request is open.
        """
        scope = Scope(fully_qualified_namespace, eventhub_name, consumer_group).folded
        id_ = checked_name("partition_id", partition_id)
        groups = self._groups.value
        with groups.guard:
            group = groups.by_scope.get(scope)
            return group is not None and group.is_departing(id_, time.time())

    @contextmanager
    def _group(self, scope: Scope) -> Iterator[GroupHandover]:
        groups = self._groups.value
        with groups.guard:
            folded = scope.folded
            group = groups.by_scope.setdefault(folded, GroupHandover(self.expires_after))
            groups.scopes.setdefault(folded, scope)
            group.expires_after = self.expires_after
            yield group

    @own_client_only
    @with_checked_arguments
    def list_ownership(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all ownerships of a consumer group.

        A partition that a client has asked for is shown as that client's, except to its live owner.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        rows = self.store.list_ownership(*scope, **kwargs)
        requests = self._list_requests(scope)
        with self._group(scope) as group:
            return group.listed(rows, requests, time.time())

    def _list_requests(self, scope: Scope) -> Rows | None:
        try:
            return list(innermost(self.store).list_ownership(*scope.handover_requests))
        except Exception as error:
            # Renewals must go on. Without the requests, no partition may be taken over.
            log.warning(
                "the hand-over requests of consumer group %s cannot be listed: %s",
                scope,
                described(error),
            )
            return None

    def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Claim, renew or release partitions, and ask live owners for theirs.

        Returns:
            The claims that were won, without the partitions that are handed over; see
            `ClaimResult`.
        """
        rows, claims = list(checked_rows(ownership_list)), []
        requests: dict[tuple[Scope, str], dict[str, Any]] = {}
        departing = set[str]()
        for row in rows:
            answer, asked = self._answer(row)
            if answer is Answer.RELEASE:
                row = {**row, "owner_id": RELEASED}
            if answer in (Answer.KEEP, Answer.RELEASE):
                departing.add(row["partition_id"])
            if answer is Answer.ASK:
                requests |= {(Scope.from_dict(each), each["partition_id"]): each for each in asked}
            elif answer is not Answer.WAIT:
                claims.append(row)
        won: Rows = []
        if claims or not rows:
            won = list(self.store.claim_ownership(claims, **kwargs))
        written = [*requests.values()]
        if any(row.get("owner_id") for row in rows):
            written += self._withdrawals()
        if written:
            self._ask(written)
        # The client must not reopen a partition that it has released meanwhile, after a drain.
        won = [row for row in won if not self._is_released(row)]
        if not departing:
            return won
        kept = [row for row in won if row["partition_id"] not in departing]
        gone = [row for row in won if row["partition_id"] in departing and row["owner_id"]]
        return ClaimResult(kept, gone)

    def _answer(self, claim: Any) -> tuple[Answer, Rows]:
        """Return what becomes of a claim, and for `Answer.ASK` the rows of requests."""
        try:
            scope, claimant = Scope.from_dict(claim), claim.get("owner_id")
        except InvalidRecordError:
            return Answer.CLAIM, []  # the store below reports it, after it has tried the others
        partition_id = claim.get("partition_id")
        if not isinstance(partition_id, str) or not isinstance(claimant, str):
            return Answer.CLAIM, []
        with self._group(scope) as group:
            if claimant == RELEASED:
                group.closed(partition_id)
                return Answer.CLAIM, []
            group.me = claimant
            answer = group.answer(partition_id, claimant, time.time())
            asked = group.asked(partition_id) if answer is Answer.ASK else []
        consumer_group, row = scope.handover_requests.consumer_group, checked_row(claim)
        return answer, [
            HandoverRequest.row({**row, "partition_id": key}, consumer_group, owner, etag)
            for key, owner, etag in asked
        ]

    def _is_released(self, row: dict[str, Any]) -> bool:
        if not row["owner_id"]:
            return False  # the answer to a release
        with self._group(Scope.from_dict(row)) as group:
            return row["partition_id"] in group.released

    def _withdrawals(self) -> Rows:
        """Return the rows that withdraw the requests that are spent or void."""
        rows: Rows = []
        groups = self._groups.value
        with groups.guard:
            for folded, group in groups.by_scope.items():
                requests = groups.scopes[folded].handover_requests
                rows += [
                    HandoverRequest.withdrawal(requests, *each)
                    for each in group.withdrawn().items()
                ]
        return rows

    def _ask(self, requests: Rows) -> None:
        try:
            innermost(self.store).claim_ownership(requests)
        except Exception as error:
            asked = ", ".join(
                request["partition_id"] for request in requests if request["owner_id"]
            )
            if asked:
                log.warning(
                    "the owners of partitions %s could not be asked: %s", asked, described(error)
                )
            else:  # requests of a consumer that is gone expire, and the next round tries again
                log.debug("hand-over requests could not be withdrawn: %s", described(error))

    def withdraw(self) -> None:
        """Withdraw all hand-over requests of this store's client, and write no more of them.

        A client that stops needs this: others may then claim what was released for it.
        `EventProcessor.stop` and `Checkpointer.close` call this method. If it is not called, a
        partition that is released for the client stays unclaimed until the request expires,
        `expires_after` after it was written. Errors are logged.
        """
        groups = self._groups.value
        with groups.guard:
            asking = []
            for folded, group in groups.by_scope.items():
                group.left = group.me
                if group.asking:
                    asking.append((groups.scopes[folded], group.me))
        for scope, me in asking:
            rows = self._list_requests(scope) or []
            mine = [
                row
                for row in rows
                if (request := HandoverRequest.from_row(row)) and request.requester == me
            ]
            if mine:
                self._ask(
                    [
                        HandoverRequest.withdrawal(
                            scope.handover_requests, row["partition_id"], row["etag"]
                        )
                        for row in mine
                    ]
                )

    @with_checked_arguments
    def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all checkpoints of a consumer group."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return self.store.list_checkpoints(*names, **kwargs)

    def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        """Store how far a partition was processed.

        If the caller is cancelled, as an aio client does with the handler of a partition that it
        closes, the write still ends first: otherwise its event would be read again.
        """
        if self._is_quick:  # it only records the checkpoint, and this runs for every event
            self.store.update_checkpoint(checkpoint, **kwargs)  # type: ignore[arg-type]
        else:
            write = partial(self.store.update_checkpoint, dict(checked_row(checkpoint)), **kwargs)
            to_the_end(write, seconds=LAST_WRITE)
