"""Pages of queries as the service may send them: it decides how many entities each has."""

import json
from typing import Any

from eventhub_checkpoints.stores.azure_storage.messages import Request, Response
from eventhub_checkpoints.stores.table import rest
from eventhub_checkpoints.stores.table._sync.requests import TableRequests

TABLE = rest.Table("https://account.table.core.windows.net", "positions", "2019-02-02")
NEXT = {
    "x-ms-continuation-NextPartitionKey": "1!4!YQ--",
    "x-ms-continuation-NextRowKey": "1!4!MA--",
    "Date": "Fri, 27 Nov 2026 23:33:09 GMT",
}
FOLLOWING = {"NextPartitionKey": "1!4!YQ--", "NextRowKey": "1!4!MA--"}
LAST = {"Date": "Fri, 27 Nov 2026 23:33:10 GMT"}


class Scripted(TableRequests):
    """Answers with pages in turn, each with these partition keys."""

    def __init__(self, *pages: tuple[list[str], dict[str, str]]) -> None:
        self._table = TABLE
        self._pages = iter(pages)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def send(self, request: Request) -> Any:
        query = dict(request.query)
        self.asked.append((query.pop("$filter", ""), query))
        keys, headers = next(self._pages)
        values = [{"PartitionKey": key, "RowKey": str(number)} for number, key in enumerate(keys)]
        return Response(200, "", headers, json.dumps({"value": values}).encode())


def test_a_page_without_entities_is_not_the_last() -> None:
    requests = Scripted((["a"], NEXT), ([], NEXT), (["a", "a"], LAST))
    entities, now = requests.list_entities("PartitionKey eq 'a'")
    assert len(entities) == 3
    assert now == 1795822390.0
    condition = "PartitionKey eq 'a'"
    assert requests.asked == [(condition, {}), (condition, FOLLOWING), (condition, FOLLOWING)]


def test_no_page_is_read_after_as_many_as_are_needed() -> None:
    requests = Scripted((["a"], NEXT), (["a", "a"], NEXT))
    assert len(requests.list_entities("PartitionKey eq 'a'", most=2)[0]) == 3
    assert len(requests.asked) == 2


def test_partition_keys_are_looked_for_after_the_last_one_of_a_page() -> None:
    pages = [(["a", "a", "b"], NEXT), ([], NEXT), (["it's"], NEXT), (["z"], LAST)]
    requests = Scripted(*pages)
    assert requests.list_partition_keys() == ["a", "b", "it's", "z"]
    keys = {"$select": "PartitionKey,RowKey"}
    assert requests.asked == [
        ("", keys),
        ("PartitionKey gt 'b'", keys),
        ("PartitionKey gt 'b'", {**keys, **FOLLOWING}),
        ("PartitionKey gt 'it''s'", keys),
    ]


def test_a_table_without_entities_has_no_partition_keys() -> None:
    assert Scripted(([], LAST)).list_partition_keys() == []
