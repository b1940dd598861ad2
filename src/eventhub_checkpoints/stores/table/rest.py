"""Requests to Table Storage, and the reading of entities in their responses.

Everything here is data and pure functions; `_async.requests` sends and receives.

Source: Azure Storage REST API, "Create Table", "Query Entities", "Insert Entity", "Update Entity",
"Insert Or Replace Entity" and "Delete Entity"; requests of azure-data-tables 12.7.0.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from azure.core.exceptions import DecodeError

from eventhub_checkpoints.stores.azure_storage.messages import (
    NOT_JSON,
    Request,
    Response,
    common_headers,
)

SENT = "application/json"
"""Type of an entity whose properties are all strings, so that none has to name its type."""
ACCEPTED = "application/json;odata=minimalmetadata"
DATA_VERSION = "3.0"
"""Version of OData whose format is JSON."""
NEXT = {
    "NextPartitionKey": "x-ms-continuation-NextPartitionKey",
    "NextRowKey": "x-ms-continuation-NextRowKey",
}
"""Parameters of a query for the next page, and the headers that have their values."""
OF_KEYS = "PartitionKey,RowKey"


class Key(NamedTuple):
    """Key of an entity.

    Attributes:
        partition: the `PartitionKey`.
        row: the `RowKey`.
    """

    partition: str
    row: str


class Entity(NamedTuple):
    """An entity.

    Attributes:
        key: its two keys.
        etag: of this version of the entity.
        modified: when it was written, on the service's clock, in epoch seconds.
        fields: its own properties, as strings.
    """

    key: Key
    etag: str
    modified: float
    fields: dict[str, str | None]


class Page(NamedTuple):
    """A page of a query.

    Attributes:
        entities: the entities on it; it may have none, and still not be the last.
        following: parameters of the next page; empty if this one is the last.
        date: the service's `Date`; None if a proxy has removed it.
    """

    entities: list[Entity]
    following: dict[str, str]
    date: str | None


class Update(NamedTuple):
    """Replacement of an entity, if it has this etag."""

    key: Key
    fields: Mapping[str, str]
    etag: str


class Table:
    """Builds the requests to one table.

    Args:
        account_url: encoded, without a SAS.
        name: of the table.
        api_version: version of the service.

    Attributes:
        url: of the table, without a SAS.
        batch_url: to which several writes are sent.
    """

    def __init__(self, account_url: str, name: str, api_version: str) -> None:
        self.url = f"{account_url}/{name}"
        self.batch_url = f"{account_url}/$batch"
        self._tables_url = f"{account_url}/Tables"
        self._name = name
        self._api_version = api_version

    def create_table(self) -> Request:
        """Return a Create Table."""
        body = json.dumps({"TableName": self._name}).encode()
        return self._insertion("create the table", self._tables_url, body)

    def insert(self, key: Key, fields: Mapping[str, str]) -> Request:
        """Return an Insert Entity, which is refused if the entity exists."""
        return self._insertion("add", self.url, body_of(key, fields))

    def _insertion(self, operation: str, url: str, body: bytes) -> Request:
        request = self.request(operation, "POST", url, expected=204, body=body)
        request.headers["Prefer"] = "return-no-content"
        return request

    def update(self, key: Key, fields: Mapping[str, str], etag: str | None) -> Request:
        """Return an Update Entity if the etag matches; None: an Insert Or Replace Entity."""
        body = body_of(key, fields)
        request = self.request("update", "PUT", self.entity_url(key), expected=204, body=body)
        if etag is not None:
            request.headers["If-Match"] = etag
        return request

    def read(self, key: Key) -> Request:
        """Return a Query Entities for one entity."""
        return self.request("query", "GET", self.entity_url(key))

    def delete(self, key: Key) -> Request:
        """Return a Delete Entity."""
        request = self.request("delete", "DELETE", self.entity_url(key), expected=204)
        request.headers["If-Match"] = "*"
        return request

    def query(self, condition: str, following: Mapping[str, str], keys_only: bool) -> Request:
        """Return a Query Entities for one page; `condition` may be empty."""
        query = {"$filter": condition} if condition else {}
        if keys_only:
            query["$select"] = OF_KEYS
        return self.request("query", "GET", f"{self.url}()", {**query, **following})

    def entity_url(self, key: Key) -> str:
        """Return the URL of an entity."""
        partition, row = (quote(each.replace("'", "''"), safe="") for each in key)
        return f"{self.url}(PartitionKey='{partition}',RowKey='{row}')"

    def request(
        self,
        operation: str,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        expected: int = 200,
        body: bytes = b"",
    ) -> Request:
        """Return a request with the headers that all have in common."""
        headers = common_headers(self._api_version, ACCEPTED)
        headers["DataServiceVersion"] = DATA_VERSION
        if body:
            headers["Content-Type"] = SENT
        return Request(operation, method, url, query or {}, headers, expected, body)


def body_of(key: Key, fields: Mapping[str, str]) -> bytes:
    """Return an entity as JSON."""
    return json.dumps({"PartitionKey": key.partition, "RowKey": key.row, **fields}).encode()


def equals(name: str, value: str) -> str:
    """Return the condition that a property has a value."""
    return f"{name} eq {literal(value)}"


def literal(value: str) -> str:
    """Return a string as a literal of OData."""
    return "'" + value.replace("'", "''") + "'"


def page_of(response: Response) -> Page:
    """Return the page in the response to a query.

    Raises:
        DecodeError: the response is not a page.
    """
    values = json_of(response).get("value")
    if not isinstance(values, list):
        raise DecodeError("the list has no entities")
    following = {
        name: response.headers[header]
        for name, header in NEXT.items()
        if response.headers.get(header)
    }
    return Page([*map(entity_of, values)], following, response.headers.get("Date"))


def json_of(response: Response) -> dict[str, Any]:
    """Return the JSON object in a response.

    Raises:
        DecodeError: it is none.
    """
    try:
        value = json.loads(response.body)
    except NOT_JSON as error:
        raise DecodeError(f"the answer is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DecodeError("the answer is not a JSON object")
    return value


def entity_of(value: Any) -> Entity:
    """Return an entity from its JSON.

    Raises:
        DecodeError: it has no keys.
    """
    if not isinstance(value, dict):
        raise DecodeError("the list has an entity that is no JSON object")
    key = Key(value.get("PartitionKey"), value.get("RowKey"))  # type: ignore[arg-type]  # checked
    if not all(isinstance(each, str) for each in key):
        raise DecodeError("the list has an entity without keys")
    time = value.get("Timestamp")
    etag = value.get("odata.etag")
    if not isinstance(etag, str):
        # Without metadata, an etag is made of the time. Source: azure-data-tables 12.7.0,
        # `_deserialize.py`, `_convert_to_entity`.
        etag = f"W/\"datetime'{quote(str(time), safe='')}'\"" if time else ""
    fields = {name: text_of(each) for name, each in value.items() if is_own(name)}
    return Entity(key, etag, seconds(time), fields)


def is_own(name: str) -> bool:
    """Return whether a name in the JSON is that of a property of the writer's."""
    return name not in {"PartitionKey", "RowKey", "Timestamp"} and "odata." not in name


def text_of(value: Any) -> str | None:
    """Return a property as a string; another program may have stored a number."""
    if value is None or isinstance(value, str):
        return value
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def seconds(time: Any) -> float:
    """Return a time of the service, of 100 ns, in epoch seconds; 0.0 if it is missing."""
    try:
        moment = datetime.fromisoformat(time)
    except (TypeError, ValueError):
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
