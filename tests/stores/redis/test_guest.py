"""The store in its process: threads, forks and one event loop after another."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eventhub_checkpoints import StoreUnavailableError
from waiting import LIMIT, takes

CONSUMER = """
import asyncio, gc, os, sys
from eventhub_checkpoints.{module} import RedisCheckpointStore

store = RedisCheckpointStore(sys.argv[1], write_timeout=60)
attempts = []

def counted(hook):
    return lambda *args: attempts.append(args) or hook(*args)

# An attempt on a connection that is of no use is given up, and made again on another one.
store.write_checkpoint = counted(store.write_checkpoint)
keys = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
row = dict(zip(keys, ("ns", "orders", "$default")), offset="1")

def save(partition_id, number):
    return store.update_checkpoint(dict(row, partition_id=partition_id, sequence_number=number))
"""
FORKING_SYNC = """
save("parent", 1)
child = os.fork()
if child == 0:
    try:
        for number in range(20):
            save("child", number)
        gc.collect()
    finally:
        os._exit(0)
for number in range(20):
    save("parent", number)
assert os.waitpid(child, 0)[1] == 0
attempts.clear()
save("parent", 30)
assert len(attempts) == 1, attempts
store.close()
"""
FORKING_AIO = """
async def work():
    await save("parent", 1)
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(save("child", 19))
            gc.collect()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    attempts.clear()
    await save("parent", 30)
    assert len(attempts) == 1, "the parent's connection was taken out of its loop"
    await store.close()

asyncio.run(work())
"""
ONE_AFTER_ANOTHER = """
async def work(number):
    await asyncio.gather(*[save(partition, 10 * number) for partition in ("parent", "child")])
    if number == 3:
        await store.close()

for number in (1, 2, 3):
    asyncio.run(work(number))
"""


@pytest.mark.parametrize(
    ("module", "code", "expected"),
    [
        ("redis", FORKING_SYNC, {"parent": "30", "child": "19"}),
        ("aio.redis", FORKING_AIO, {"parent": "30", "child": "19"}),
        ("aio.redis", ONE_AFTER_ANOTHER, {"parent": "30", "child": "30"}),
    ],
    ids=["forked sync", "forked aio", "next loop"],
)
def test_a_store_works_in_its_next_place_and_in_the_one_before(
    place, module, code, expected
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CONSUMER.format(module=module) + code, place.url],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = place.rows("checkpoint")
    assert {one: row["sequencenumber"] for one, row in rows.items()} == expected


def test_more_writes_at_once_than_connections_wait_for_one(opener, place) -> None:
    client = opener(place.url, max_concurrency=4)
    most = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            names = [one["name"] for one in place.raw.client_list()]
            most[0] = max(most[0], names.count("eventhub-checkpoints"))

    watching = threading.Thread(target=watch)
    watching.start()
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda number: client.save(str(number % 64), number), range(320)))
    ended.set()
    watching.join()
    assert len(place.rows("checkpoint")) == 64
    assert 1 <= most[0] <= 4


@pytest.mark.long
def test_waiting_for_a_connection_is_bounded(opener, start) -> None:
    server = start()
    client = opener(server.url, max_concurrency=1, operation_timeout=1.0, write_timeout=1.0)
    client.save("0", 1)
    server.pause()
    with takes(1.0, 6.0), ThreadPoolExecutor(8) as pool:  # one after another they would take 8 s
        failed = list(pool.map(lambda number: is_unavailable(client, number), range(8)))
    assert all(failed)


def is_unavailable(client, number: int) -> bool:
    try:
        client.save(str(number), 2)
    except StoreUnavailableError:
        return True
    return False
