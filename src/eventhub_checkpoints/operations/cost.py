"""Cost of a month on each backend, at the prices in `PRICES`.

Replace them by your own: prices depend on region, size and contract.
"""

from collections.abc import Mapping
from typing import NamedTuple

MONTH_SECONDS = 730 * 3600
PER_REQUESTS = 10_000
MEAN_EXTENSION = 1.1
"""Mean factor by which the client extends its load balancing interval.

Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`: `1 + random() * 0.2`.
"""


class Price(NamedTuple):
    """Price of a server, in US dollars per month; of Blob, per 10,000 writes or lists."""

    dollars: float
    what: str
    source: str


INFRACOST = "Infracost, test data of `{}`, commit {}"
PRICES = {
    "blob": Price(
        0.055,
        "per 10,000 writes, and per 10,000 lists: hot tier, LRS",
        'Microsoft Learn, "Estimate the cost of using Azure Blob Storage", 2024-07-26, section '
        '"Sample prices"; the same in ' + INFRACOST.format("azurerm_storage_account", "027bec3"),
    ),
    "postgres": Price(
        289.12,
        "Flexible Server, D4s_v3 with 32 GB of storage, West US, without a standby",
        INFRACOST.format("azurerm_postgresql_flexible_server", "027bec3"),
    ),
    "redis": Price(
        40.15,
        "Azure Cache for Redis, Basic C1, East US: one node without persistence",
        INFRACOST.format("azurerm_redis_cache", "21716c3"),
    ),
    "cassandra": Price(
        232.65,
        "three virtual machines F2 with a P4 disk, East US, operated by yourself",
        INFRACOST.format("azurerm_linux_virtual_machine", "1be2f75"),
    ),
}
PRICES_READ = "2026-11-23"
"""When the prices were read."""
SMALLEST_SERVER = PRICES["redis"].dollars
"""Dollars per month above which Blob costs more than a server for checkpoints."""


def per_month(backend: str, rates: Mapping[str, float], dollars: float | None = None) -> float:
    """Return dollars per month for these requests per second, by kind.

    On Blob, claims are writes, and lists of ownerships and of checkpoints are lists.

    Args:
        backend: a key of `PRICES`.
        rates: requests per second, by kind.
        dollars: price that replaces that in `PRICES`, in the same unit.
    """
    price = PRICES[backend].dollars if dollars is None else dollars
    if backend == "blob":
        return sum(rates.values()) * MONTH_SECONDS / PER_REQUESTS * price
    return price


def balancing_requests(consumers: int, partitions: int, interval: float) -> dict[str, float]:
    """Return requests per second of load balancing: one list a consumer, one claim a partition."""
    seconds = MEAN_EXTENSION * interval
    return {"lists": consumers / seconds, "claims": partitions / seconds}


def blob_per_month(consumers: int, partitions: int, interval: float) -> float:
    """Return dollars per month of load balancing on Blob."""
    return per_month("blob", balancing_requests(consumers, partitions, interval))
