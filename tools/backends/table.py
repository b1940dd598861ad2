"""Table Storage on Azurite."""

import uuid
from contextlib import suppress
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient, UpdateMode

import javascript_store
from azurite import TABLE
from backends.azurite_server import AzuriteServer
from backends.base import Fields, Kind, Place
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY


class TablePlace(Place):
    """Table of an emulator, bypassed by the official driver."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.url = f"table+{endpoint}/{name}"
        key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
        self.table = TableClient(endpoint, name, credential=key)

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        if "/" in partition_id:
            return  # no key of a table has a slash
        partition = " ".join([*scope, kind.title()])
        if fields is None:
            with suppress(ResourceNotFoundError):
                self.table.delete_entity(partition, partition_id)
            return
        entity = {"PartitionKey": partition, "RowKey": partition_id}
        own = {name: value for name, value in fields.items() if value is not None}
        self.table.upsert_entity({**entity, **own}, UpdateMode.REPLACE)

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        return {
            entity["RowKey"]: {
                name: value
                for name, value in entity.items()
                if name not in {"PartitionKey", "RowKey"}
            }
            for entity in self.table.list_entities()
            if entity["PartitionKey"].endswith(f" {kind.title()}")
        }

    def vanish(self) -> None:
        self.table.delete_table()

    def drop(self) -> None:
        with suppress(ResourceNotFoundError):
            self.vanish()
        self.table.close()


class Table(AzuriteServer):
    """Azurite's service of tables."""

    name = "table"
    service = TABLE
    variable = TABLE.variable
    compares_case = True

    def install(self) -> str:
        source = super().install()
        try:
            javascript_store.install()
        except javascript_store.JavaScriptMissingError:
            return source  # its tests are skipped then
        return f"{source}, and the JavaScript store"

    def place(self) -> TablePlace:
        return TablePlace(self.azurite.endpoint, f"test{uuid.uuid4().hex}")
