"""The calls of a program that has a client of azure-data-tables, with the entities of the store."""

from collections.abc import Sequence
from typing import Any

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AioTableClient

from benchmarks.rows import Row, scope_of
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from eventhub_checkpoints.stores.table.transactions import LIMIT


def client(kind: type, url: str) -> Any:
    """A client of the table that a store's URL names."""
    endpoint, _, name = url.removeprefix("table+").rpartition("/")
    return kind(endpoint, name, credential=AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY))


def key(row: Row, kind: str) -> dict[str, str]:
    """The keys of a row's entity."""
    return {"PartitionKey": " ".join([*scope_of(row), kind]), "RowKey": row["partition_id"]}


def ownership(row: Row) -> dict[str, str]:
    """The entity of a claim."""
    return {**key(row, "Ownership"), "ownerid": row["owner_id"]}


def checkpoint(row: Row) -> dict[str, str]:
    """The entity of a checkpoint."""
    position = {"sequencenumber": str(row["sequence_number"]), "offset": row["offset"]}
    return {**key(row, "Checkpoint"), **position}


def condition(row: Row) -> dict[str, Any]:
    """The keyword arguments of a replacement of this etag only."""
    etag, only = row["etag"], MatchConditions.IfNotModified
    return {"mode": UpdateMode.REPLACE, "etag": etag, "match_condition": only}


class BareTable:
    """Calls that wait: renewals as transactions, everything else as single requests."""

    def __init__(self, url: str) -> None:
        self._table = client(TableClient, url)

    def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        if len(rows) == 1 or not rows[0]["etag"]:
            return [{**row, "etag": self._claim(row)["etag"]} for row in rows]
        answers: list[Any] = []
        for start in range(0, len(rows), LIMIT):
            part = rows[start : start + LIMIT]
            updates = [("update", ownership(row), condition(row)) for row in part]
            answers += self._table.submit_transaction(updates)
        return [{**row, "etag": answer["etag"]} for row, answer in zip(rows, answers, strict=True)]

    def _claim(self, row: Row) -> Any:
        if row["etag"]:
            return self._table.update_entity(ownership(row), **condition(row))
        return self._table.create_entity(ownership(row))

    def update_checkpoint(self, row: Row) -> None:
        self._table.upsert_entity(checkpoint(row), UpdateMode.REPLACE)

    def list_ownership(self, *names: str) -> list[Any]:
        text = " ".join([*names, "Ownership"])
        return list(self._table.query_entities(f"PartitionKey eq '{text}'"))

    def close(self) -> None:
        self._table.close()


class BareTableAio:
    """The same for tasks."""

    def __init__(self, url: str) -> None:
        self._table = client(AioTableClient, url)

    async def update_checkpoint(self, row: Row) -> None:
        await self._table.upsert_entity(checkpoint(row), UpdateMode.REPLACE)

    async def list_ownership(self, *names: str) -> list[Any]:
        text = " ".join([*names, "Ownership"])
        return [row async for row in self._table.query_entities(f"PartitionKey eq '{text}'")]

    async def close(self) -> None:
        await self._table.close()
