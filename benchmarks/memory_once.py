"""Claim, list and checkpoint all partitions of a group once, and print what the process took.

It imports nothing but what its side needs.
"""

import argparse
import asyncio
import time
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import Any

from benchmarks.measuring import BARE, OFFICIAL, OURS, SIDES
from benchmarks.rows import checkpoint, ownership, scope_of

MODULES = {
    OURS: ("eventhub_checkpoints", "eventhub_checkpoints.aio"),
    OFFICIAL: (
        "azure.eventhub.extensions.checkpointstoreblob",
        "azure.eventhub.extensions.checkpointstoreblobaio",
    ),
    BARE: ("azure.eventhub", "azure.eventhub.aio"),
}
"""By side: of the sync client, and of the aio client."""


async def consume(store: Any, group: str, partitions: int) -> None:
    """Call a store as a client does that owns all partitions."""
    proposals = [ownership(group, number) for number in range(partitions)]
    names = scope_of(proposals[0])
    assert len(await answer(store.claim_ownership(proposals))) == partitions
    assert len(await answer(store.list_ownership(*names))) == partitions
    for number in range(partitions):
        await answer(store.update_checkpoint(checkpoint(group, number, 1)))
    assert len(await answer(store.list_checkpoints(*names))) == partitions
    await answer(store.close())


async def answer(result: Any) -> Any:
    """What a call of either variant returns."""
    return await result if isawaitable(result) else result


def peak() -> list[int]:
    """The most memory that this process has had, in bytes; none where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]


async def run(options: argparse.Namespace) -> None:
    """Import what the side needs, and use its store if it has one."""
    module = import_module(MODULES[options.side][options.aio])
    if options.side == OURS:
        await consume(module.open_store(options.url), options.group, options.partitions)
    elif options.side == OFFICIAL:
        address = options.url.rsplit("/", 1)
        store = module.BlobCheckpointStore(*address, credential=options.credential)
        await consume(store, options.group, options.partitions)


def main() -> None:
    """Consume; print seconds of the processor, seconds on the clock, and bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("--url", help="of the store")
    parser.add_argument("--credential", help="of the official store")
    parser.add_argument("--group", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--aio", action="store_true", help="the store of event loops")
    wall = time.perf_counter()
    asyncio.run(run(parser.parse_args()))
    print(time.process_time(), time.perf_counter() - wall, *peak())


if __name__ == "__main__":
    main()
