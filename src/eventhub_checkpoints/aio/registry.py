"""Stores by URL or by a mapping, for `azure.eventhub.aio`; see `eventhub_checkpoints.registry`."""

from collections.abc import Mapping
from typing import Any, cast

from eventhub_checkpoints.aio.abilities import FullCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.registry import is_async_store, opened, shown

GROUP = "eventhub_checkpoints.aio_stores"


def open_store(
    url: str | Mapping[str, Any], *, credential: Any = None, **settings: Any
) -> FullCheckpointStore:
    """Open the store that a URL or a mapping names; all is as with the sync one."""
    store = opened(GROUP, url, credential, settings)
    if not is_async_store(store, url):
        raise ConfigurationError(
            f"{shown(url)} makes a sync store; open it with eventhub_checkpoints.open_store"
        )
    return cast("FullCheckpointStore", store)
