"""Names and contents of the lease blobs of the Event Processor Hosts, older than the SDKs' stores.

A lease blob has the position of one partition in a JSON body, together with its owner.

Source: azure-event-hubs-dotnet, `AzureStorageCheckpointLeaseManager.cs` and `Lease.cs`;
azure-event-hubs-java, `AzureBlobLease.java`; azure-event-hubs-python 1, `azure_blob_lease.py`;
azure-event-hubs-go 3, `storage/storage.go`; Azure Functions extension 4, `EventHubOptions.cs`;
KEDA, `azure_eventhub_checkpoint.go`, for the names of Dapr 1.6 to 1.9.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.offset_words import is_of_a_new_lease, meaning_of
from eventhub_checkpoints.records import LEAST_INT64, MOST_INT64, Checkpoint, Scope

LONGEST_LEASE = 64 * 1024
"""Bytes; the `event_processor_context` of Python's leases is the application's own."""
PARTITION_ID = re.compile("0|[1-9][0-9]{0,8}")
UNESCAPED = re.compile("[^a-z0-9._-]")


class LeaseFormat(StrEnum):
    """Program that wrote the leases.

    Attributes:
        EPH: Event Processor Host of .NET or Java.
        EPH_PYTHON: that of Python, package azure-eventhub 1.
        EPH_GO: that of Go, package azure-event-hubs-go.
        FUNCTIONS: Azure Functions with version 4 or older of the Event Hubs extension.
        DAPR: Dapr 1.6 to 1.9.
    """

    EPH = "eph"
    EPH_PYTHON = "eph-python"
    EPH_GO = "eph-go"
    FUNCTIONS = "functions"
    DAPR = "dapr"


def prefixes(format: LeaseFormat, scope: Scope, prefix: str = "") -> list[str]:
    """Return the prefixes after which a blob's name has the partition id.

    Args:
        format: the program that wrote the leases.
        scope: names of the group, in the case in which the program had them.
        prefix: the `storageBlobPrefix` or the like with which the program was configured.
    """
    namespace, hub, group = scope
    match format:
        case LeaseFormat.EPH:
            return [f"{prefix}{group}/"]
        case LeaseFormat.EPH_PYTHON:  # later versions have the group as a folder
            return [f"{prefix}{group}/", prefix]
        case LeaseFormat.EPH_GO:
            return [prefix]
        case LeaseFormat.FUNCTIONS:
            return [f"{prefix}{escaped(namespace)}/{escaped(hub)}/{group}/"]
        case LeaseFormat.DAPR:
            return [f"{prefix}dapr-{hub}-{group}-"]


def escaped(name: str) -> str:
    """Return a name as Azure Functions escaped it: in lower case, with `:XX` and `::XXXX`."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f":{code:02X}" if code < 0x100 else f"::{code:04X}"

    return UNESCAPED.sub(escape, name.lower())


class Lease(NamedTuple):
    """Contents of one blob.

    Attributes:
        where: location of the blob, for messages.
        body: None if it is too long.
    """

    where: str
    partition_id: str
    body: str | None


def checkpoints_of(
    leases: Iterable[Lease], scope: Scope, report: Callable[[str], None]
) -> list[Checkpoint]:
    """Return the checkpoints that leases have, in numeric order of the partitions.

    A lease of a partition of which nothing was processed yields none, and is not reported.

    Args:
        leases: the leases that were found; of two of one partition, the first one counts.
        scope: the scope of the checkpoints.
        report: called with a sentence for each lease that cannot be read.
    """
    checkpoints: dict[int, Checkpoint] = {}
    for where, partition_id, body in leases:
        try:
            offset, number = position_of(parse_json(body or ""))
        except (ValueError, TypeError):
            report(f"{where} was left out: it holds no position")
            continue
        if not is_of_a_new_lease(offset, number):
            checkpoints.setdefault(
                int(partition_id), Checkpoint(scope, partition_id, offset, number)
            )
    return [checkpoints[number] for number in sorted(checkpoints)]


def position_of(lease: Any) -> tuple[str, int | None]:
    """Return offset and sequence number of a lease; 0 or None if it has none.

    A word in place of the offset counts as none: what it stands for is only a start, so a number
    beside it is the position.

    Raises:
        ValueError: it is not a lease.
        TypeError: it is not a lease.
    """
    fields = without_case(lease)
    if "checkpoint" in fields:
        nested = fields["checkpoint"]
        if nested is None:  # as Go creates a lease, until a partition is opened
            return "", None
        if isinstance(nested, Mapping):
            fields = without_case(nested)
    if not {"offset", "sequencenumber"} & fields.keys():
        raise ValueError("neither offset nor sequence number")
    offset, number = fields.get("offset"), fields.get("sequencenumber")
    if not isinstance(offset, str | int | None) or isinstance(offset, bool | float):
        raise TypeError("the offset is neither a string nor a number")
    if isinstance(number, bool | float):
        raise TypeError("the sequence number is not an integer")
    offset = "" if offset is None or meaning_of(str(offset)) is not None else str(offset)
    number = None if number is None or number == "" else int(number)
    if not offset.isprintable() or not LEAST_INT64 <= (number or 0) <= MOST_INT64:
        raise ValueError("not a position")
    return offset, number


def without_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON fields by name, without case and underscores."""
    if not isinstance(fields, Mapping):
        raise TypeError("not a JSON object")
    return {name.replace("_", "").lower(): value for name, value in fields.items()}
