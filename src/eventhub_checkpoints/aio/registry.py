"""Registry that opens stores for `azure.eventhub.aio`; see `eventhub_checkpoints.registry`."""

from collections.abc import Mapping
from typing import Any, cast

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints.aio.abilities import FullCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.registry import is_async_store, opened, shown

GROUP = "eventhub_checkpoints.aio_stores"


@with_checked_arguments
def open_store(
    url: str | Mapping[str, Any], *, credential: Any = None, **settings: Any
) -> FullCheckpointStore:
    """Open a store by URL or mapping; it connects on first use.

    Args:
        url: a URL, or a mapping with `backendType` and other keys (see the page on configuration).
            The scheme of the URL selects the store: `memory:`, `sqlite:///FILE` and so on, as the
            page on stores lists them; a scheme that another installed package adds; or
            `package.module:factory`, a callable without arguments.
        credential: for the backend; see `from_url` of the store.
        **settings: passed to the store; see `StoreSettings`.

    Returns:
        A store for the asynchronous client; every store of this package is a `FullCheckpointStore`.

    Raises:
        ConfigurationError: the scheme, factory or key does not exist (the message lists those that
            do), or the result is not a store for `azure.eventhub.aio`.
        MissingDriverError: the backend's extra is not installed.
    """
    store = opened(GROUP, url, credential, settings)
    if not is_async_store(store, url):
        raise ConfigurationError(
            f"{shown(url)} makes a sync store; open it with eventhub_checkpoints.open_store"
        )
    return cast("FullCheckpointStore", store)
