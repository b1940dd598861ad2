"""What the SDK hands to a store, for the one hub of the benchmarks."""

from typing import Any

Row = dict[str, Any]


def ownership(group: str, partition: int = 0, owner: str = "owner") -> Row:
    """A proposal as the SDK makes it for a partition that nobody has owned yet."""
    return scope(group) | {"partition_id": str(partition), "owner_id": owner, "etag": None}


def checkpoint(group: str, partition: int, number: int) -> Row:
    """A checkpoint as the SDK makes it for an event of this number."""
    position = {"offset": str(100 * number), "sequence_number": number}
    return scope(group) | {"partition_id": str(partition)} | position


def scope(group: str) -> dict[str, str]:
    """A consumer group of the one hub."""
    return {
        "fully_qualified_namespace": "orders.servicebus.windows.net",
        "eventhub_name": "orders",
        "consumer_group": group,
    }


def scope_of(row: Row) -> tuple[str, str, str]:
    """The three names of a row."""
    return row["fully_qualified_namespace"], row["eventhub_name"], row["consumer_group"]
