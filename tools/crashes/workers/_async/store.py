"""Store of a worker, which records its calls."""

from collections.abc import Iterable, Mapping
from typing import Any

from azure.eventhub.aio import CheckpointStore

from crashes.workers.diary import Diary, Fate
from eventhub_checkpoints._shared._async.compat import sleep


class WatchedStore(CheckpointStore):
    """Store that records its calls in the journal, and delays its writes."""

    forward_only = True

    def __init__(self, store: Any, diary: Diary, fate: Fate) -> None:
        self._store, self._diary, self._fate = store, diary, fate

    async def list_ownership(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        rows = list(await self._store.list_ownership(*names, **kwargs))
        self._diary.owners(rows)
        return rows

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        proposals = [dict(proposal) for proposal in ownership_list]
        # The official store edits the rows that it is called with.
        copies = [dict(proposal) for proposal in proposals]
        self._diary.releasing(proposals)
        won = list(await self._store.claim_ownership(copies, **kwargs))
        self._diary.won(proposals, won)
        return won

    async def list_checkpoints(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        self._diary.listing()
        rows = list(await self._store.list_checkpoints(*names, **kwargs))
        self._diary.listed(rows)
        return rows

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        self._diary.saving(checkpoint)
        error: BaseException | None = None
        try:
            await sleep(self._fate.write_seconds())
            await self._store.update_checkpoint(dict(checkpoint), **kwargs)
            await sleep(self._fate.write_seconds())
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._diary.saved(checkpoint, error)
