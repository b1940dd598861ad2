"""The same operations on Blob by each side: our store, the official one, and bare requests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import astuple
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import ResourceNotFoundError
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore as Official
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as OfficialAio
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as ContainerClientAio

from benchmarks.measuring import BARE, OFFICIAL, OURS
from benchmarks.places import place
from benchmarks.rows import Row, scope_of
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as OursAio
from eventhub_checkpoints.blob import BlobCheckpointStore as Ours
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY

API_VERSION = "2019-07-07"
"""What both stores send."""


def official(kind: Callable[..., Any]) -> Callable[[str], Any]:
    """What opens the official store on a container."""
    return lambda url: kind(*url.rsplit("/", 1), credential=EMULATOR_KEY)


def blob_name(row: Row, kind: str) -> str:
    """The name that both stores give a row's blob."""
    return f"{'/'.join(scope_of(row))}/{kind}/{row['partition_id']}"


def condition(etag: str) -> dict[str, Any]:
    """The keyword arguments of a write over this etag only."""
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def position(row: Row) -> dict[str, str]:
    """The metadata of a checkpoint's blob."""
    return {"offset": row["offset"], "sequencenumber": str(row["sequence_number"])}


class Bare:
    """The fewest requests that do the same, by a program that keeps its blob clients."""

    def __init__(self, container: ContainerClient) -> None:
        self._container = container
        self._blobs: dict[str, Any] = {}

    def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        return [self._claim(row) for row in rows]

    def _claim(self, row: Row) -> Row:
        blob, metadata = self._blob(blob_name(row, "ownership")), {"ownerid": row["owner_id"]}
        if row["etag"]:
            answer = blob.set_blob_metadata(metadata, **condition(row["etag"]))
        else:
            answer = blob.upload_blob(b"", overwrite=False, metadata=metadata)
        return {**row, "etag": answer["etag"]}

    def update_checkpoint(self, row: Row) -> None:
        blob, metadata = self._blob(blob_name(row, "checkpoint")), position(row)
        try:
            blob.set_blob_metadata(metadata)
        except ResourceNotFoundError:
            blob.upload_blob(b"", metadata=metadata)

    def list_ownership(self, *names: str) -> list[Any]:
        prefix = f"{'/'.join(names)}/ownership/"
        return list(self._container.list_blobs(name_starts_with=prefix, include=["metadata"]))

    def close(self) -> None:
        self._container.close()

    def _blob(self, name: str) -> Any:
        if name not in self._blobs:
            self._blobs[name] = self._container.get_blob_client(name)
        return self._blobs[name]


class BareAio:
    """The same for a program with an event loop: one task for each request."""

    def __init__(self, container: ContainerClientAio) -> None:
        self._container = container
        self._blobs: dict[str, Any] = {}

    async def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        return await asyncio.gather(*[self._claim(row) for row in rows])

    async def _claim(self, row: Row) -> Row:
        blob, metadata = self._blob(blob_name(row, "ownership")), {"ownerid": row["owner_id"]}
        if row["etag"]:
            answer = await blob.set_blob_metadata(metadata, **condition(row["etag"]))
        else:
            answer = await blob.upload_blob(b"", overwrite=False, metadata=metadata)
        return {**row, "etag": answer["etag"]}

    async def update_checkpoint(self, row: Row) -> None:
        blob, metadata = self._blob(blob_name(row, "checkpoint")), position(row)
        try:
            await blob.set_blob_metadata(metadata)
        except ResourceNotFoundError:
            await blob.upload_blob(b"", metadata=metadata)

    async def list_ownership(self, *names: str) -> list[Any]:
        prefix = f"{'/'.join(names)}/ownership/"
        blobs = self._container.list_blobs(name_starts_with=prefix, include=["metadata"])
        return [blob async for blob in blobs]

    async def close(self) -> None:
        await self._container.close()

    def _blob(self, name: str) -> Any:
        if name not in self._blobs:
            self._blobs[name] = self._container.get_blob_client(name)
        return self._blobs[name]


@contextmanager
def sync_sides(delay_ms: float = 0.0) -> Iterator[dict[str, Any]]:
    """All three, on a server of their own."""
    with ExitStack() as opened:
        here = astuple(opened.enter_context(place(delay_ms)))
        container = ContainerClient.from_connection_string(*here, api_version=API_VERSION)
        sides: dict[str, Any] = {
            OURS: Ours.from_connection_string(*here),
            OFFICIAL: Official.from_connection_string(*here),
            BARE: Bare(container),
        }
        for side in sides.values():
            opened.enter_context(closing(side))
        yield sides


@asynccontextmanager
async def aio_sides(delay_ms: float = 0.0) -> AsyncIterator[dict[str, Any]]:
    """All three for an event loop, on a server of their own."""
    async with AsyncExitStack() as opened:
        here = astuple(opened.enter_context(place(delay_ms)))
        container = ContainerClientAio.from_connection_string(*here, api_version=API_VERSION)
        sides: dict[str, Any] = {
            OURS: OursAio.from_connection_string(*here),
            OFFICIAL: OfficialAio.from_connection_string(*here),
            BARE: BareAio(container),
        }
        for side in sides.values():
            opened.push_async_callback(side.close)
        yield sides
