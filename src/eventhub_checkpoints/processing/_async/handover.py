"""Checkpoint store with which consumers hand partitions over instead of taking them."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from azure.eventhub.aio import CheckpointStore, PartitionContext

from eventhub_checkpoints._shared._async.client_check import check_store, own_client_only
from eventhub_checkpoints._shared.per_process import PerProcess
from eventhub_checkpoints._shared.settings import require_seconds
from eventhub_checkpoints._shared.wrapping import innermost, require_wrappable
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._async.coalescing import CoalescingCheckpointStore
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.processing._async.session import names_of
from eventhub_checkpoints.processing.handover import Answer, GroupHandover, Wish
from eventhub_checkpoints.records import RELEASED, Scope, checked_row, checked_rows

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

    The client iterates over it at once, to learn which partitions to keep open, and again when it
    has closed one, to find the row to release. The first iteration leaves out the partitions that
    are handed over, so that the client closes them; later ones include them, so that the client
    releases each of them when it is closed.

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


def is_handing_over(store: object, partition_context: PartitionContext) -> bool:
    """Return whether a client with this store hands a partition over, and does not lose it."""
    return isinstance(store, HandoverStore) and store.is_handing_over(*names_of(partition_context))


class HandoverStore(CheckpointStore):
    """Checkpoint store that asks the owner of a partition for it, instead of taking it.

    It wraps another store, and has to be the outermost: `checkpoint_store=HandoverStore(store,
    expires_after=180)`. Where the client would take a partition of another that is alive, it leaves
    a wish in the store. The owner finds it in its next round of load balancing, and its client
    closes the partition: it stops receiving, calls `on_partition_close`, and then releases the
    partition, which the first client claims in its next round. So no event is processed twice,
    if all that was processed is saved before `on_partition_close` returns.

    An owner that does not answer within `expires_after` is taken from, as without this class:
    for example, a client without a `HandoverStore`. Partitions that are released, expired or
    without an owner are claimed at once, except those that another client has asked for, which are
    left to it while its wish is open.

    Args:
        store: the store to use; it is not closed. One for each client, as always.
        expires_after: seconds until an ownership expires: the client's
            `partition_ownership_expiration_interval`, by default six times its
            `load_balancing_interval`, which is 180.

    Attributes:
        store: see above.
        expires_after: see above.

    Raises:
        ConfigurationError: `expires_after` is not a number of seconds, or `store` is not a store,
            or is a `HandoverStore` itself.
    """

    is_outermost = True

    def __init__(self, store: CheckpointStore, *, expires_after: float) -> None:
        check_store(store)
        require_seconds("expires_after", expires_after)
        require_wrappable(self, store)
        self.store = store
        self.expires_after = expires_after
        self._is_quick = isinstance(store, CoalescingCheckpointStore)
        self._groups = PerProcess(Groups)

    def is_handing_over(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> bool:
        """Return whether a partition is being handed over to another consumer.

        In `on_partition_close` this tells a hand-over from a loss: until the callback returns,
        nobody takes the partition, unless that takes longer than the wish is open.
        """
        scope = Scope(fully_qualified_namespace, eventhub_name, consumer_group).folded
        groups = self._groups.value
        with groups.guard:
            group = groups.by_scope.get(scope)
            return group is not None and group.is_departing(partition_id, time.time())

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
    async def list_ownership(
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
        rows = await self.store.list_ownership(*scope, **kwargs)
        wishes = await self._list_wishes(scope)
        with self._group(scope) as group:
            return group.listed(rows, wishes, time.time())

    async def _list_wishes(self, scope: Scope) -> Rows | None:
        try:
            return list(await innermost(self.store).list_ownership(*scope.wishes))
        except Exception as error:
            # Renewals must go on, and without the wishes nobody may be taken from.
            log.warning("the wishes of consumer group %s cannot be listed: %r", scope, error)
            return None

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Claim, renew or release partitions, and ask for those of others that are alive.

        Returns:
            What was won, without the partitions that are handed over; see `ClaimResult`.
        """
        rows, claims = list(checked_rows(ownership_list)), []
        wishes, departing = [], set[str]()
        for row in rows:
            answer, wish = self._answer(row)
            if answer is Answer.RELEASE:
                row = {**row, "owner_id": RELEASED}
            if answer in (Answer.KEEP, Answer.RELEASE):
                departing.add(row["partition_id"])
            if answer is Answer.ASK:
                wishes.append(wish)
            elif answer is not Answer.WAIT:
                claims.append(row)
        won: Rows = []
        if claims or not rows:
            won = list(await self.store.claim_ownership(claims, **kwargs))
        if any(row.get("owner_id") for row in rows):
            wishes += self._withdrawals()
        if wishes:
            await self._ask(wishes)
        # What the client has released meanwhile, at the end of a drain, it must not open again.
        won = [row for row in won if not self._is_released(row)]
        if not departing:
            return won
        kept = [row for row in won if row["partition_id"] not in departing]
        gone = [row for row in won if row["partition_id"] in departing and row["owner_id"]]
        return ClaimResult(kept, gone)

    def _answer(self, claim: Any) -> tuple[Answer, dict[str, Any]]:
        """Return what becomes of a claim, and the row of the wish that it may become."""
        try:
            scope, claimant = Scope.from_dict(claim), claim.get("owner_id")
        except InvalidRecordError:
            return Answer.CLAIM, {}  # the store below reports it, after it has tried the others
        partition_id = claim.get("partition_id")
        if not isinstance(partition_id, str) or not isinstance(claimant, str):
            return Answer.CLAIM, {}
        with self._group(scope) as group:
            if claimant == RELEASED:
                group.closed(partition_id)
                return Answer.CLAIM, {}
            group.me = claimant
            answer = group.answer(partition_id, claimant, time.time())
            if answer is not Answer.ASK:
                return answer, {}
            owner, etag = group.asked(partition_id)
            return answer, Wish.row(checked_row(claim), scope.wishes.consumer_group, owner, etag)

    def _is_released(self, row: dict[str, Any]) -> bool:
        if not row["owner_id"]:
            return False  # the answer to a release
        with self._group(Scope.from_dict(row)) as group:
            return row["partition_id"] in group.released

    def _withdrawals(self) -> Rows:
        """Return the rows that end the wishes that nobody needs any more."""
        rows: Rows = []
        groups = self._groups.value
        with groups.guard:
            for folded, group in groups.by_scope.items():
                wishes = groups.scopes[folded].wishes
                rows += [Wish.withdrawal(wishes, *each) for each in group.withdrawn().items()]
        return rows

    async def _ask(self, wishes: Rows) -> None:
        try:
            await innermost(self.store).claim_ownership(wishes)
        except Exception as error:
            asked = ", ".join(wish["partition_id"] for wish in wishes if wish["owner_id"])
            if asked:
                log.warning("the owners of partitions %s could not be asked: %r", asked, error)
            else:  # those of a consumer that is gone end by themselves, and any round tries again
                log.debug("wishes could not be withdrawn: %r", error)

    async def withdraw(self) -> None:
        """Withdraw what this store's client has asked for, and ask for nothing more.

        For a client that stops: nobody waits for it then. `EventProcessor.stop` and
        `Checkpointer.close` do this. Without it, a partition that is released for the client stays
        unclaimed until its wish ends, `expires_after` after it was written. What goes wrong is
        logged.
        """
        groups = self._groups.value
        with groups.guard:
            asking = []
            for folded, group in groups.by_scope.items():
                group.left = group.me
                if group.asking:
                    asking.append((groups.scopes[folded], group.me))
        for scope, me in asking:
            rows = await self._list_wishes(scope) or []
            mine = [row for row in rows if (wish := Wish.from_row(row)) and wish.asker == me]
            if mine:
                await self._ask(
                    [
                        Wish.withdrawal(scope.wishes, row["partition_id"], row["etag"])
                        for row in mine
                    ]
                )

    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all checkpoints of a consumer group."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return await self.store.list_checkpoints(*names, **kwargs)

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        """Store how far a partition was processed.

        If the caller is cancelled, as an aio client does with the handler of a partition that it
        closes, the write still ends first: otherwise its event would be read again.
        """
        if self._is_quick:  # it only records the checkpoint, and this runs for every event
            await self.store.update_checkpoint(checkpoint, **kwargs)  # type: ignore[arg-type]
        else:
            write = partial(self.store.update_checkpoint, dict(checkpoint), **kwargs)
            await to_the_end(write, seconds=LAST_WRITE)
