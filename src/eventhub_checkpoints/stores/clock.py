"""Times of the backend's clock on this process's clock."""

from dataclasses import replace

from eventhub_checkpoints.records import Ownership
from eventhub_checkpoints.stores.hook_results import Listing


def on_local_clock(listing: Listing[Ownership], local_now: float) -> list[Ownership]:
    """The rows, each as old on this process's clock as it is on the backend's.

    The client compares `last_modified_time` with its own clock, so a clock that is off would
    make it steal partitions that are in work. An age is never negative.
    """
    server_now = local_now if listing.server_now is None else listing.server_now
    return [
        replace(row, last_modified_time=local_now - max(server_now - row.last_modified_time, 0.0))
        for row in listing.rows
    ]
