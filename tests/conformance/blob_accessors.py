"""Ways past a Blob store to its container, and to the proxy in front of it."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

from eventhub_checkpoints.cli.azurite import EMULATOR_KEY
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.records import Scope


def put_raw(
    container: ContainerClient,
    kind: str,
    scope: Scope,
    partition_id: str,
    fields: Mapping[str, str | None] | None,
) -> None:
    """Leave a blob as another program would."""
    name = f"{scope.folded}/{kind}/{partition_id}"
    if fields is not None:
        metadata = {key: value or "" for key, value in fields.items()}
        container.upload_blob(name, b"", overwrite=True, metadata=metadata)
        return
    with suppress(ResourceNotFoundError):
        container.delete_blob(name)


def stall(proxy: Any, seconds: float) -> None:
    """Have the proxy hold back its answers until so many seconds have passed from now."""
    end = time.monotonic() + seconds

    async def act(exchange: Any) -> Any:
        answer = await exchange.forward()
        await asyncio.sleep(max(0.0, end - time.monotonic()))
        return answer

    proxy.heal()
    if seconds:
        proxy.on().act = act


def of_container(container: ContainerClient, proxy: Any) -> Accessors:
    return Accessors(put_raw=partial(put_raw, container), stall=partial(stall, proxy))


def of_emulator(store: Any) -> Accessors:
    """For `--accessors blob_accessors:of_emulator`, with a container of an emulator."""
    url = store._requests.address
    container = ContainerClient.from_container_url(url, credential=EMULATOR_KEY)
    return Accessors(put_raw=partial(put_raw, container))
