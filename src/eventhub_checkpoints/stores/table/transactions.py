"""Entity group transactions: updates of entities of one partition key, in one request.

All are carried out or none. A refusal names the first update that failed, by its index.

Source: Azure Storage REST API, "Performing entity group transactions"; requests of
azure-data-tables 12.7.0, and responses of Azurite 3.35.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from azure.core.exceptions import DecodeError

from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Request,
    Response,
    error_code,
    error_message,
)
from eventhub_checkpoints.stores.table.rest import (
    ACCEPTED,
    DATA_VERSION,
    SENT,
    Table,
    Update,
    body_of,
)

LIMIT = 100
"""Updates in one transaction."""
STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})[^\r\n]*\r\n", re.MULTILINE)
INDEX = re.compile(r"(\d+):")


@dataclass(frozen=True, slots=True)
class Failed:
    """A transaction of which nothing was carried out.

    Attributes:
        index: of the update that failed; None if the service does not say.
        refusal: what a request with this update alone would have been answered.
    """

    index: int | None
    refusal: Refusal


def request_of(table: Table, updates: Sequence[Update]) -> Request:
    """Return the request that carries out all of these updates, or none."""
    batch, changes = f"batch_{uuid4()}", f"changeset_{uuid4()}"
    parts = [f"--{changes}\r\n{part_of(table, update)}\r\n" for update in updates]
    body = (
        f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changes}\r\n\r\n"
        f"{''.join(parts)}--{changes}--\r\n\r\n--{batch}--\r\n"
    )
    request = table.request("update", "POST", table.batch_url, expected=202, body=body.encode())
    request.headers["Content-Type"] = f"multipart/mixed; boundary={batch}"
    return request


def part_of(table: Table, update: Update) -> str:
    """Return the part of the body that is one update."""
    body = body_of(update.key, update.fields).decode()
    return (
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"PUT {table.entity_url(update.key)} HTTP/1.1\r\n"
        f"Content-Type: {SENT}\r\nAccept: {ACCEPTED}\r\nContent-Length: {len(body)}\r\n"
        f"DataServiceVersion: {DATA_VERSION}\r\nIf-Match: {update.etag}\r\n\r\n{body}"
    )


def outcome_of(response: Response, count: int) -> list[str] | Failed:
    """Return the new etag of each update, in order, or why none was carried out.

    Args:
        response: with status 202.
        count: how many updates were sent.

    Raises:
        DecodeError: it is not the response to such a request.
    """
    answers = [*parts_of(response.body)]
    for answer in answers:
        if answer.status_code >= 400:
            refusal = Refusal("update", answer.status_code, error_code(answer), answer.headers)
            index = INDEX.match(error_message(answer))
            is_valid = index and int(index[1]) < count
            return Failed(int(index[1]) if index and is_valid else None, refusal)
    etags = [answer.headers.get("etag", "") for answer in answers]
    if len(etags) != count or not all(etags):
        raise DecodeError(f"{count} updates were answered with {sum(map(bool, etags))} etags")
    return etags


def parts_of(body: bytes) -> list[Response]:
    """Return the responses that the body has, with the names of headers in lower case."""
    starts = [*STATUS.finditer(body)]
    ends = [match.start() for match in starts[1:]] + [len(body)]
    answers: list[Response] = []
    for match, end in zip(starts, ends, strict=False):  # without starts, there is one end
        head, _, rest = body[match.end() : end].partition(b"\r\n\r\n")
        content = rest.partition(b"\r\n--")[0]
        answers.append(Response(int(match[1]), "", headers_of(head), content))
    return answers


def headers_of(head: bytes) -> Mapping[str, str]:
    """Return headers by name, in lower case."""
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
