"""An aio store in one event loop after another, and in a forked child."""

import subprocess
import sys
from typing import Any

import pytest

from waiting import LIMIT

CONSUMER = """
import asyncio, gc, os, sys
from eventhub_checkpoints.aio.blob import BlobCheckpointStore

text, container = sys.argv[1:]
store = BlobCheckpointStore.from_connection_string(text, container, write_timeout=60)
keys = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
row = dict(zip(keys, ("ns", "orders", "$default")), offset="1")

async def save(partition_id, number):
    await store.update_checkpoint(dict(row, partition_id=partition_id, sequence_number=number))
"""
FORKING = """
async def work():
    await save("parent", 1)
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(save("child", 1))
            gc.collect()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    attempts = []
    write = store.write_checkpoint
    store.write_checkpoint = lambda *args: attempts.append(args) or write(*args)
    await save("parent", 2)
    assert len(attempts) == 1, "the parent's connection was taken out of its loop"
    await store.close()

asyncio.run(work())
"""
ONE_AFTER_ANOTHER = """
async def work(number):
    await asyncio.gather(*[save(str(n % 2), number) for n in range(8)])
    if number == 3:
        await store.close()

for number in (1, 2, 3):
    asyncio.run(work(number))
"""


@pytest.mark.parametrize("code", [FORKING, ONE_AFTER_ANOTHER], ids=["forked", "next loop"])
def test_an_aio_store_works_in_its_next_place_and_in_the_one_before(
    blob_container: Any, code: str
) -> None:
    arguments = [blob_container.connection_string, blob_container.name]
    ran = subprocess.run(
        [sys.executable, "-c", CONSUMER + code, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
