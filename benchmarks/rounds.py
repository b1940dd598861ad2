"""What a round of load balancing costs on Azure Storage: a list, and a renewal of what is owned.

On Table, on Blob, and on Blob with the official store, each for a consumer of 4, 32 and 100
partitions. Requests are counted by a proxy in one round; CPU time is that of the client's process,
without the proxy. Prints a table of medians.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore as Official
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as OfficialAio

from backends import BACKENDS
from benchmarks.measuring import OFFICIAL, blocking, in_turns
from benchmarks.rows import ownership, scope
from benchmarks.sides import official
from eventhub_checkpoints import aio, open_store
from fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from benchmarks.measuring import Sides

SIZES = (4, 32, 100)
SIDES = {"table": "table", "blob": "blob", OFFICIAL: "blob"}
"""The backend of each side."""
OPEN = {"table": open_store, "blob": open_store, OFFICIAL: official(Official)}
OPEN_AIO = {"table": aio.open_store, "blob": aio.open_store, OFFICIAL: official(OfficialAio)}
OPERATIONS = 10
"""Rounds in a row, of one side."""


@contextmanager
def in_threads(urls: dict[str, str]) -> Iterator[Sides]:
    """The stores of the synchronous client."""
    with ExitStack() as stack:
        yield {side: stack.enter_context(closing(OPEN[side](url))) for side, url in urls.items()}


@asynccontextmanager
async def in_tasks(urls: dict[str, str]) -> AsyncIterator[Sides]:
    """Those of the asynchronous client."""
    stores = {side: OPEN_AIO[side](url) for side, url in urls.items()}
    try:
        yield stores
    finally:
        for store in stores.values():
            await store.close()


def round_of(store: Any, size: int) -> Callable[[], None]:
    """Claim so many partitions; return what a round of their consumer does."""
    group = scope(f"group{size}")
    rows = store.claim_ownership([ownership(f"group{size}", each) for each in range(size)])

    def once() -> None:
        assert len(store.list_ownership(*group.values())) == size
        rows[:] = store.claim_ownership(rows)
        assert len(rows) == size

    return once


def requests_of(side: str, url: str, endpoint: str, size: int) -> int:
    """Count the requests of one round."""
    with FaultProxy(endpoint) as proxy:
        behind = url.replace(endpoint, proxy.endpoint)
        with in_threads({side: behind}) as stores:
            once = round_of(stores[side], size)
            proxy.forget()
            once()
            return len(proxy.requests)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side (7)")
    rounds = parser.parse_args().rounds
    print("| partitions | client | measure | table | blob | official |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        servers = {name: stack.enter_context(BACKENDS[name]()) for name in ("table", "blob")}
        for size in SIZES:
            with ExitStack() as places:
                urls = {
                    (side, use): places.enter_context(servers[name].place()).url
                    for side, name in SIDES.items()
                    for use in ("count", "sync", "aio")
                }
                found = [
                    requests_of(side, urls[side, "count"], servers[name].url, size)
                    for side, name in SIDES.items()
                ]
                print(f"| {size} | both | requests | {' | '.join(map(str, found))} |", flush=True)
                with in_threads({side: urls[side, "sync"] for side in SIDES}) as stores:
                    print(f"| {size} | sync | {measured(stores, size, rounds)}", flush=True)
                of_tasks = partial(in_tasks, {side: urls[side, "aio"] for side in SIDES})
                with blocking(of_tasks) as stores:
                    print(f"| {size} | aio | {measured(stores, size, rounds)}", flush=True)


def measured(stores: Sides, size: int, rounds: int) -> str:
    """The rest of a row: CPU time of a round on each side, in milliseconds."""
    works = {side: round_of(store, size) for side, store in stores.items()}
    in_turns(works, 0, operations=2)  # connections are opened, code is warm
    costs = [in_turns(works, number, operations=OPERATIONS) for number in range(rounds)]
    medians = [1000 * median(cost[side].cpu for cost in costs) for side in SIDES]
    return f"CPU | {' | '.join(f'{each:.2f} ms' for each in medians)} |"


if __name__ == "__main__":
    main()
