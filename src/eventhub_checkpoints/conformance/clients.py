"""Test client of one store object, sync or async.

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from eventhub_checkpoints.aio.base import BaseCheckpointStore as AioBaseCheckpointStore
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import StaleCheckpointError
from eventhub_checkpoints.records import RELEASED, Scope

CALL_TIMEOUT = 120.0
CLOSING: dict[str, tuple[None, ...]] = {
    "close": (),
    "__aexit__": (None, None, None),
    "__exit__": (None, None, None),
}
Row = dict[str, Any]


class Loop:
    """Event loop in a background thread, in which the calls of aio stores run.

    A subclass may run them elsewhere, such as on a simulated clock.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="conformance")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finished(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def finished(self, result: Any) -> Any:
        """Return the result of a call, awaited if it is awaitable."""
        if not inspect.isawaitable(result):
            return result
        return asyncio.run_coroutine_threadsafe(waited(result), self._loop).result(CALL_TIMEOUT)


async def waited(result: Awaitable[Any]) -> Any:
    """Wrap any awaitable in a coroutine."""
    return await result


class Client:
    """Store object with the scope of one check, and short forms of the client's calls.

    Attributes:
        store: the object under test.
        scope: the scope of the short forms.
    """

    def __init__(
        self, store: Any, scope: Scope, loop: Loop, settle: Callable[[], None] | None = None
    ) -> None:
        self.store = store
        self.scope = scope
        self._loop = loop
        self._settle = settle

    @property
    def is_on_base(self) -> bool:
        """Return whether the store implements the hooks of this package's base class."""
        return isinstance(self.store, (BaseCheckpointStore, AioBaseCheckpointStore))

    def within(self, scope: Scope) -> "Client":
        """Return a client of the same store object for another scope."""
        return Client(self.store, scope, self._loop, self._settle)

    def set(self, **settings: Any) -> None:
        """Change settings of a store on the base class."""
        self.store.settings = replace(self.store.settings, **settings)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method and wait for it."""
        return self._loop.finished(getattr(self.store, name)(*args, **kwargs))

    def close(self) -> None:
        """Close the store, by the first closing method that it has."""
        for method, arguments in CLOSING.items():
            if hasattr(self.store, method):
                self.call(method, *arguments)
                return

    def list_ownership(self, **kwargs: Any) -> Any:
        """Return all ownerships, as the store returns them."""
        return self._list("list_ownership", kwargs)

    def list_checkpoints(self, **kwargs: Any) -> Any:
        """Return all checkpoints, as the store returns them."""
        return self._list("list_checkpoints", kwargs)

    def _list(self, method: str, kwargs: Mapping[str, Any]) -> Any:
        if self._settle is not None:
            self._settle()
        names = self.scope.as_dict().values()
        return self.call(method, *names, **kwargs)

    def claim_ownership(self, rows: Iterable[Row], **kwargs: Any) -> Any:
        """Claim a batch."""
        return self.call("claim_ownership", rows, **kwargs)

    def update_checkpoint(self, row: Row, **kwargs: Any) -> None:
        """Store a checkpoint."""
        self.call("update_checkpoint", row, **kwargs)

    def proposal(self, partition_id: str, owner_id: str, etag: str | None = None) -> Row:
        """Return a claim as the client builds it: without an etag if it has seen no row."""
        row: Row = {**self.scope.as_dict(), "partition_id": partition_id, "owner_id": owner_id}
        return row if etag is None else {**row, "etag": etag}

    def proposals(self, partition_ids: Iterable[object], owner_id: str) -> list[Row]:
        """Return first claims of several partitions."""
        return [self.proposal(str(partition_id), owner_id) for partition_id in partition_ids]

    def claim(self, partition_id: str, owner_id: str, etag: str | None = None) -> Row | None:
        """Claim one partition; return None if the claim was lost."""
        won = list(self.claim_ownership([self.proposal(partition_id, owner_id, etag)]))
        return won[0] if won else None

    def take(self, partition_id: str, owner_id: str, etag: str | None = None) -> Row:
        """Claim one partition; the claim must be won."""
        won = self.claim(partition_id, owner_id, etag)
        assert won is not None, f"{owner_id}'s claim of partition {partition_id} was left out"
        return won

    def take_listed(self, partition_id: str, owner_id: str) -> Row:
        """Take a partition over and list its checkpoint, as a client does at the start."""
        row = self.row(partition_id)
        won = self.take(partition_id, owner_id, row["etag"] if row else None)
        self.list_checkpoints()
        return won

    def release(self, row: Row) -> Any:
        """Release a partition."""
        return self.claim_ownership([{**row, "owner_id": RELEASED}])

    def row(self, partition_id: str) -> Row | None:
        """Return the listed ownership of one partition."""
        return one_of(self.list_ownership(), partition_id)

    def ownership_of(self, partition_id: str) -> Row:
        """Return the listed ownership of a partition that was claimed."""
        row = self.row(partition_id)
        assert row is not None, f"the ownership of partition {partition_id} is not listed"
        return row

    def owner(self, partition_id: str) -> Any:
        """Return the listed owner of a partition; None if it is not listed."""
        return self.holder(partition_id)[0]

    def holder(self, partition_id: str) -> tuple[Any, Any]:
        """Return the listed owner and etag of a partition."""
        row = self.row(partition_id) or {}
        return row.get("owner_id"), row.get("etag")

    def checkpoint(self, partition_id: str, sequence_number: int, offset: str | int | None) -> Row:
        """Return a checkpoint as the client builds it."""
        position = {"sequence_number": sequence_number, "offset": offset}
        return {**self.scope.as_dict(), "partition_id": partition_id, **position}

    def save(self, partition_id: str, sequence_number: int, **kwargs: Any) -> None:
        """Store a checkpoint with an offset derived from its number."""
        row = self.checkpoint(partition_id, sequence_number, str(1000 + sequence_number))
        self.update_checkpoint(row, **kwargs)

    def save_or_be_refused(self, partition_id: str, sequence_number: int) -> None:
        """Store a checkpoint; a store may raise a refusal or only log it."""
        try:
            self.save(partition_id, sequence_number)
        except StaleCheckpointError:
            return

    def saved(self, partition_id: str) -> Row | None:
        """Return the listed checkpoint of one partition."""
        return one_of(self.list_checkpoints(), partition_id)

    def checkpoint_of(self, partition_id: str) -> Row:
        """Return the listed checkpoint of a partition that has one."""
        row = self.saved(partition_id)
        assert row is not None, "the stored checkpoint is not listed"
        return row

    def position(self, partition_id: str) -> Any:
        """Return the sequence number of a listed checkpoint; None if there is none."""
        row = self.saved(partition_id)
        return None if row is None else row["sequence_number"]


def one_of(rows: Iterable[Row], partition_id: str) -> Row | None:
    """Return the row of a partition, which is listed at most once."""
    matches = [row for row in rows if row["partition_id"] == partition_id]
    assert len(matches) <= 1, f"partition {partition_id} is listed {len(matches)} times"
    return matches[0] if matches else None
