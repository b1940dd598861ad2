"""One store object, of either colour, called as its client calls it."""

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
    """An event loop in a thread of its own, where the calls of aio stores run."""

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
        """The result of a call: itself, or what it comes to when it is awaited."""
        if not inspect.isawaitable(result):
            return result
        return asyncio.run_coroutine_threadsafe(waited(result), self._loop).result(CALL_TIMEOUT)


async def waited(result: Awaitable[Any]) -> Any:
    """Any awaitable as a coroutine."""
    return await result


class Client:
    """A store object and the scope of one check, with the client's calls in short forms.

    Attributes:
        store: the object under test.
        scope: what the short forms are about.
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
        """Whether the store fills in the hooks of our base class."""
        return isinstance(self.store, (BaseCheckpointStore, AioBaseCheckpointStore))

    @property
    def is_for_one_process(self) -> bool:
        """Whether the store declares that no other process reaches its rows."""
        return getattr(self.store, "for_one_process", False) is True

    def within(self, scope: Scope) -> "Client":
        """The same store object, asked about another scope."""
        return Client(self.store, scope, self._loop, self._settle)

    def set(self, **settings: Any) -> None:
        """Change settings of a store on our base."""
        self.store.settings = replace(self.store.settings, **settings)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method and wait for it."""
        return self._loop.finished(getattr(self.store, name)(*args, **kwargs))

    def close(self) -> None:
        """Close the store, by the first way to do so that it has."""
        for method, arguments in CLOSING.items():
            if hasattr(self.store, method):
                self.call(method, *arguments)
                return

    def list_ownership(self, **kwargs: Any) -> Any:
        """All ownerships, as the store gives them."""
        return self._list("list_ownership", kwargs)

    def list_checkpoints(self, **kwargs: Any) -> Any:
        """All checkpoints, as the store gives them."""
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
        """A claim as the client builds it: without an etag where it has seen no row."""
        row: Row = {**self.scope.as_dict(), "partition_id": partition_id, "owner_id": owner_id}
        return row if etag is None else {**row, "etag": etag}

    def claim(self, partition_id: str, owner_id: str, etag: str | None = None) -> Row | None:
        """Claim one partition; None if it was left out."""
        won = list(self.claim_ownership([self.proposal(partition_id, owner_id, etag)]))
        return won[0] if won else None

    def take(self, partition_id: str, owner_id: str, etag: str | None = None) -> Row:
        """Claim one partition, which must be won."""
        won = self.claim(partition_id, owner_id, etag)
        assert won is not None, f"{owner_id}'s claim of partition {partition_id} was left out"
        return won

    def take_listed(self, partition_id: str, owner_id: str) -> Row:
        """Take a partition over, and list its checkpoint: as a client begins to work on it."""
        row = self.row(partition_id)
        won = self.take(partition_id, owner_id, row["etag"] if row else None)
        self.list_checkpoints()
        return won

    def release(self, row: Row) -> Any:
        """Give a partition up."""
        return self.claim_ownership([{**row, "owner_id": RELEASED}])

    def row(self, partition_id: str) -> Row | None:
        """The ownership of one partition as it is listed."""
        return one_of(self.list_ownership(), partition_id)

    def owner(self, partition_id: str) -> Any:
        """Who owns a partition as it is listed; None if it is not listed."""
        return self.holder(partition_id)[0]

    def holder(self, partition_id: str) -> tuple[Any, Any]:
        """Owner and etag of a partition as it is listed."""
        row = self.row(partition_id) or {}
        return row.get("owner_id"), row.get("etag")

    def checkpoint(self, partition_id: str, sequence_number: int, offset: str | int | None) -> Row:
        """A checkpoint as the client builds it."""
        position = {"sequence_number": sequence_number, "offset": offset}
        return {**self.scope.as_dict(), "partition_id": partition_id, **position}

    def save(self, partition_id: str, sequence_number: int, **kwargs: Any) -> None:
        """Store a checkpoint with an offset that goes with its number."""
        row = self.checkpoint(partition_id, sequence_number, str(1000 + sequence_number))
        self.update_checkpoint(row, **kwargs)

    def save_or_be_refused(self, partition_id: str, sequence_number: int) -> None:
        """Store a checkpoint; a store may say or not say that it was refused."""
        try:
            self.save(partition_id, sequence_number)
        except StaleCheckpointError:
            return

    def saved(self, partition_id: str) -> Row | None:
        """The checkpoint of one partition as it is listed."""
        return one_of(self.list_checkpoints(), partition_id)

    def position(self, partition_id: str) -> Any:
        """The sequence number of a listed checkpoint; None if there is no checkpoint."""
        row = self.saved(partition_id)
        return None if row is None else row["sequence_number"]


def one_of(rows: Iterable[Row], partition_id: str) -> Row | None:
    """The row of a partition, which is listed at most once."""
    found = [row for row in rows if row["partition_id"] == partition_id]
    assert len(found) <= 1, f"partition {partition_id} is listed {len(found)} times"
    return found[0] if found else None
