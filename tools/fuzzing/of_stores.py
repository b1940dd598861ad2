"""Targets: rows and answers of the stores' backends, and positions that older programs saved."""

import json
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from azure.core.exceptions import DecodeError
from azure.core.utils import case_insensitive_dict

from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.azure_storage.authorization import TokenCache
from eventhub_checkpoints.stores.azure_storage.messages import (
    Response,
    error_code,
    error_message,
    server_time,
)
from eventhub_checkpoints.stores.blob import protocol as blob
from eventhub_checkpoints.stores.blob import rest
from eventhub_checkpoints.stores.cassandra import protocol as cassandra
from eventhub_checkpoints.stores.hook_results import Listing, on_local_clock
from eventhub_checkpoints.stores.legacy import iothub_react, leases
from eventhub_checkpoints.stores.redis import protocol as redis
from eventhub_checkpoints.stores.sql import statements as sql
from eventhub_checkpoints.stores.table import protocol as table
from eventhub_checkpoints.stores.table import rest as table_rest
from eventhub_checkpoints.stores.table import transactions
from fuzzing.target import Target, json_of, require_equal, samples, text_of

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
NOW = 1_795_514_400.0


def use(listing: Listing[Any]) -> None:
    """Do with rows what the base class does: each has to be usable, or to be reported."""
    for row in listing.rows:
        if isinstance(row, Checkpoint):
            shown = row.as_dict(SCOPE)
            require_equal(isinstance(shown["offset"], str | int), True)
            require_equal(type(shown["sequence_number"]) in (int, type(None)), True)
        else:
            row.as_dict(SCOPE, NOW)
        row.partition_id.encode("utf-8", "surrogatepass")
    on_local_clock(Listing([row for row in listing.rows if isinstance(row, Ownership)]), NOW)


def blob_list(data: bytes) -> None:
    """Parse pages of a list, fed in two slices."""
    blobs: list[rest.Blob] = []
    for page in data.split(b"\0\0page\0\0")[:4]:
        parser = rest.PageParser()
        parser.feed(page[: len(page) // 2])
        parser.feed(page[len(page) // 2 :])
        blobs += parser.close(None).blobs
    start = "ns/orders/$default/ownership/"
    use(blob.listing(blobs, start, NOW, partial(blob.ownership_row, SCOPE)))
    use(blob.listing(blobs, start, NOW, partial(blob.checkpoint_row, SCOPE)))


def blob_headers(data: bytes) -> None:
    """Parse the headers and the body of an answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    pairs = [line.partition(":") for line in head.decode("latin-1").split("\r\n")]
    headers = case_insensitive_dict({name.strip(): value.strip() for name, _, value in pairs})
    response = Response(401, "", headers, body)
    found = rest.properties("ns/orders/$default/checkpoint/0", response)
    start = "ns/orders/$default/checkpoint/"
    use(blob.listing([found], start, None, partial(blob.checkpoint_row, SCOPE)))
    error_code(response)
    TokenCache().follow(response)
    server_time(headers.get("Date"))


LIST = b"""<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs><Blob>
<Name>ns/orders/$default/ownership/0</Name><Properties>
<Last-Modified>Tue, 24 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x8DE</Etag></Properties>
<Metadata><ownerid>a</ownerid><offset>4711</offset><sequencenumber>7</sequencenumber></Metadata>
</Blob><BlobPrefix><Name Encoded="true">a%2F</Name></BlobPrefix></Blobs><NextMarker>m</NextMarker>
</EnumerationResults>"""

HEADERS = b"\r\n".join(
    [
        b'ETag: "0x8DE"',
        b"Last-Modified: Tue, 24 Nov 2026 10:00:00 GMT",
        b"Date: Tue, 24 Nov 2026 10:00:00 GMT",
        b"x-ms-meta-offset: 4711",
        b"x-ms-meta-sequencenumber: 7",
        b"WWW-Authenticate: Bearer authorization_uri=https://login.example/tenant/oauth2 "
        b"resource_id=https://storage.example",
        b"",
        b"<Error><Code>ContainerNotFound</Code></Error>",
    ]
)


def table_page(data: bytes) -> None:
    """Parse a page of a query, and the error that a service answers in its place."""
    response = Response(200, "", case_insensitive_dict(), data)
    error_code(response)
    error_message(response)
    entities = table_rest.page_of(response).entities
    use(table.listing(entities, NOW, partial(table.ownership_row, SCOPE)))
    use(table.listing(entities, NOW, partial(table.checkpoint_row, SCOPE)))
    for entity in entities:
        table.scope_of(entity.key.partition)
        table.sendable_etag(entity.etag).encode("ascii")


def table_transaction(data: bytes) -> None:
    """Parse the answer to two updates that are one transaction."""
    found = transactions.outcome_of(Response(202, "", {}, data), 2)
    if isinstance(found, transactions.Failed):
        require_equal(found.index in (0, 1, None), True)
        table.verdict(found.refusal)
    else:
        require_equal(len(found), 2)


PAGE = {
    "odata.metadata": "https://a.table.core.windows.net/$metadata#t",
    "value": [
        {
            "odata.etag": "W/\"datetime'2026-11-27T23%3A33%3A08.8948674Z'\"",
            "PartitionKey": "ns orders $Default Ownership",
            "RowKey": "0",
            "Timestamp": "2026-11-27T23:33:08.8948674Z",
            "ownerid": "a",
            "offset": "4711",
            "sequencenumber@odata.type": "Edm.Int64",
            "sequencenumber": "7",
        }
    ],
}
ODATA_ERROR = {"odata.error": {"code": "TableNotFound", "message": {"value": "1:It is gone."}}}
STORED = b'HTTP/1.1 204 No Content\r\nETag: W/"a"\r\n\r\n\r\n--changesetresponse_1\r\n\r\n'
REFUSED = b"HTTP/1.1 412 Precondition Failed\r\n\r\n" + json.dumps(ODATA_ERROR).encode()


def redis_values(data: bytes) -> None:
    """Parse the values of a hash, one in each line, with and without a partition id."""
    lines = data.split(b"\n")
    pairs = [part for number, line in enumerate(lines) for part in (str(number).encode(), line)]
    reply = [[b"1795514400", b"123456"], [*pairs, lines[0], lines[-1]]]
    use(redis.ownerships(SCOPE, reply))
    use(redis.checkpoints(SCOPE, reply))
    for line in lines:
        redis.stored_checkpoint(SCOPE, "0", line)


def sql_rows(data: bytes) -> None:
    """Read rows whose columns have values of any type, as SQLite stores them."""
    rows = [padded(row, 5) for row in rows_of(json_of(data))]
    owned = [(*row[:4], NOW) for row in rows]
    use(sql.listing(owned, SCOPE, sql.ownership_of))
    use(sql.listing([(*row, NOW) for row in rows], SCOPE, sql.readable_checkpoint))


def cassandra_rows(data: bytes) -> None:
    """Read rows with columns of the table's types, any of which may be null or out of use."""
    owned, saved = [], []
    for row in rows_of(json_of(data)):
        id_, offset, number, version, time = padded(row, 5)
        modified = datetime(2026, 11, 24) + timedelta(hours=time) if is_hours(time) else None
        texts = [each if isinstance(each, str) else None for each in (offset, version)]
        owned.append((str(id_), *texts, modified, datetime(2026, 11, 24)))
        is_bigint = type(number) is int and -(2**63) <= number < 2**63
        bigint = number if is_bigint else None
        saved.append((str(id_), texts[0], bigint, texts[1], modified, datetime(2026, 11, 24)))
    use(cassandra.ownerships(SCOPE, owned))
    use(cassandra.checkpoints(SCOPE, saved))


def is_hours(value: object) -> bool:
    """Return whether the driver has a time that is so many hours from now."""
    return type(value) is int and -10_000_000 < value < 10_000_000


def rows_of(value: Any) -> list[list[Any]]:
    """Return the lists among the items of a list."""
    return [row for row in value if isinstance(row, list)] if isinstance(value, list) else []


def padded(row: list[Any], length: int) -> list[Any]:
    """Return so many columns."""
    return [*row, *[None] * length][:length]


def iothub_react_rows(data: bytes) -> None:
    """Read rows of iothub-react: partition and offset in each line."""
    reports: list[str] = []
    lines = [line.partition(" ") for line in text_of(data).split("\n")]
    stored = [
        iothub_react.StoredOffset(name, name, offset if space else None)
        for name, space, offset in lines
    ]
    iothub_react.checkpoints_of(stored, SCOPE, reports.append)
    iothub_react.keyspace_of(text_of(data))


def lease_bodies(data: bytes) -> None:
    """Read leases of the Event Processor Hosts."""
    reports: list[str] = []
    bodies = text_of(data).split("\n\n")
    found = [leases.Lease(str(n), str(n), body) for n, body in enumerate(bodies)]
    for row in leases.checkpoints_of(found, SCOPE, reports.append):
        use(Listing([row]))
        require_equal(row.offset.isprintable(), True)
    leases.prefixes(leases.LeaseFormat.FUNCTIONS, SCOPE._replace(eventhub_name=text_of(data)))


POSITION = {"offset": "4711", "sequencenumber": "7", "modified": 1795514400.5, "version": "v"}
TARGETS = [
    Target("blob-list", blob_list, samples(LIST, LIST + b"\0\0page\0\0" + LIST), (DecodeError,)),
    Target("blob-headers", blob_headers, samples(HEADERS)),
    Target("table-page", table_page, samples(PAGE, PAGE | ODATA_ERROR), (DecodeError,)),
    Target("table-transaction", table_transaction, samples(2 * STORED, REFUSED), (DecodeError,)),
    Target(
        "redis-values",
        redis_values,
        samples(
            POSITION,
            {"ownerid": "a", "etag": "e", "modified": "1795514400.123"},
            {"offset": "", "sequencenumber": 7, "version": None},
        ),
    ),
    Target(
        "sql-rows",
        sql_rows,
        samples([["0", "a", "etag", 1795514400.5], ["1", "4711", 7, "version", 1795514400.5]]),
    ),
    Target(
        "cassandra-rows",
        cassandra_rows,
        samples([["0", "a", None, "etag", 1], ["1", "4711", 7, "version", -5], ["2"]]),
    ),
    Target(
        "iothub-react-rows",
        iothub_react_rows,
        samples("0 4711\n1 -1\n2 {offset checkpoint not found}\n31 8591964920"),
    ),
    Target(
        "lease-bodies",
        lease_bodies,
        samples(
            {"PartitionId": "0", "Epoch": 386, "Offset": "8591964920", "SequenceNumber": 960180},
            {"partition_id": "0", "offset": "8591964920", "sequence_number": "960180"},
            {"checkpoint": {"offset": "8591964920", "sequenceNumber": 960180}, "state": "a"},
        ),
    ),
]
