"""The store as a guest: what it opens it closes, and it shares a process well."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eventhub_checkpoints.conformance.clients import Loop
from waiting import LIMIT

PARTITIONS = 64


def test_a_store_is_closed_twice_without_harm(variant, blob_container) -> None:
    client = variant.open(blob_container)
    client.take("0", "owner-1")
    client.call("close")
    client.call("close")


def test_a_store_that_was_never_used_is_closed(variant, blob_container) -> None:
    variant.open(blob_container).call("close")


def test_a_store_closes_its_own_client_at_the_end_of_a_with_block(variant, blob_container) -> None:
    arguments = (blob_container.connection_string, blob_container.name)
    made = []

    def connect(**kwargs):
        made.append(variant.driver.from_connection_string(*arguments, **kwargs))
        return made[-1]

    store = variant.store(connect=connect)
    client = variant.client(store)
    if variant.name == "sync":
        with store:
            client.take("0", "owner-1")
    else:
        variant.finished(used(store, client.proposal("0", "owner-1")))
    with pytest.raises(Exception, match="closed"):
        variant.finished(made[0].get_container_properties())


async def used(store, proposal) -> None:
    async with store:
        assert await store.claim_ownership([proposal])


def test_a_client_that_was_given_stays_open(variant, blob_container) -> None:
    ready = variant.driver.from_connection_string(
        blob_container.connection_string, blob_container.name
    )
    client = variant.client(variant.store(container_client=ready))
    client.take("0", "owner-1")
    client.call("close")
    assert variant.finished(ready.exists())
    variant.finished(ready.close())


@pytest.mark.parametrize(("setting", "limit"), [({}, 32), ({"max_concurrency": 8}, 8)])
def test_claims_of_a_batch_overlap_and_no_more_than_allowed(
    variant, proxied, proxy, setting, limit
) -> None:
    client = variant.open(proxied, operation_timeout=LIMIT, **setting)
    proxy.on("PUT").together(limit)
    proxy.delay = 0.1
    proposals = [client.proposal(str(n), "owner-1") for n in range(PARTITIONS)]
    won = client.claim_ownership(proposals)
    assert [row["partition_id"] for row in won] == [row["partition_id"] for row in proposals]
    assert proxy.busiest == limit


def test_releases_of_a_batch_overlap(variant, proxied, proxy) -> None:
    client = variant.open(proxied, operation_timeout=LIMIT, write_timeout=LIMIT)
    won = client.claim_ownership([client.proposal(str(n), "o") for n in range(PARTITIONS)])
    proxy.forget()
    proxy.on("PUT").together(32)
    assert len(client.claim_ownership([{**row, "owner_id": ""} for row in won])) == PARTITIONS
    assert proxy.busiest == 32


def test_a_client_that_was_given_is_used_with_ten_connections(variant, proxied, proxy) -> None:
    ready = variant.driver.from_connection_string(proxied.connection_string, proxied.name)
    client = variant.client(
        variant.store(container_client=ready, max_concurrency=32, operation_timeout=LIMIT)
    )
    proxy.on("PUT").together(10)
    proxy.delay = 0.1
    client.claim_ownership([client.proposal(str(n), "owner-1") for n in range(PARTITIONS)])
    assert proxy.busiest == 10
    variant.finished(ready.close())


def test_batches_of_one_store_may_overlap_too(variant, blob_container) -> None:
    client = variant.open(blob_container)
    with ThreadPoolExecutor(8) as pool:
        won = pool.map(
            lambda n: client.claim_ownership([client.proposal(f"{n}-{m}", "o") for m in range(8)]),
            range(8),
        )
    assert sum(len(rows) for rows in won) == 64
    assert len(client.list_ownership()) == 64


def test_checkpoints_of_one_partition_go_one_after_another(variant, proxied, proxy) -> None:
    client = variant.open(proxied)
    client.save("0", 0)
    proxy.delay = 0.02
    proxy.forget()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: client.save("0", n), range(1, 9)))
    assert proxy.busiest == 1
    assert len(proxy.requests) == 8


def test_no_thread_is_left_behind(blob_container, scope) -> None:
    from eventhub_checkpoints.blob import BlobCheckpointStore

    before = set(threading.enumerate())
    with BlobCheckpointStore.from_connection_string(
        blob_container.connection_string, blob_container.name
    ) as store:
        rows = [scope.as_dict() | {"partition_id": str(n), "owner_id": "o"} for n in range(40)]
        assert len(store.claim_ownership(rows)) == 40
        assert not set(threading.enumerate()) - before


FORKING = """
import os, sys
from azure.storage.blob import ContainerClient
from eventhub_checkpoints.blob import BlobCheckpointStore

text, container = sys.argv[1:]
made = []

def connect(**arguments):
    made.append(os.getpid())
    return ContainerClient.from_connection_string(text, container, **arguments)

def work(store, partition_id):
    names = ("ns", "orders", "$default")
    keys = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
    row = dict(zip(keys, names), partition_id=partition_id)
    won = store.claim_ownership([dict(row, owner_id=str(os.getpid()))])
    store.update_checkpoint(dict(row, offset="1", sequence_number=1))
    return [one["partition_id"] for one in won] == [partition_id]

store = BlobCheckpointStore(connect=connect)
assert work(store, "parent")
child = os.fork()
if child == 0:
    try:
        good = work(store, "child") and made == [os.getppid(), os.getpid()]
    finally:
        os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert work(store, "parent again") and made == [os.getpid()]
store.close()
"""


def test_a_forked_child_works_with_connections_of_its_own(blob_container) -> None:
    arguments = [blob_container.connection_string, blob_container.name]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    with blob_container.client() as raw:
        names = {name.rpartition("/")[2] for name in raw.list_blob_names()}
    assert names == {"parent", "child", "parent again"}


WITHOUT_BLOBS = """
import importlib, sys

def drivers():
    names = ("azure.storage", "aiohttp", "requests", "pyspark", "typer")
    return {name for name in sys.modules if name.startswith(names)}

import azure.eventhub
before = drivers()
for module in (
    "eventhub_checkpoints",
    "eventhub_checkpoints.memory",
    "eventhub_checkpoints.aio.memory",
    "eventhub_checkpoints.base",
    "eventhub_checkpoints.aio.base",
    "eventhub_checkpoints.registry",
):
    importlib.import_module(module)
    if brought := drivers() - before:
        print(module, "imports", *sorted(brought))
        before |= brought
"""


def test_what_needs_no_blobs_imports_no_driver() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_BLOBS], capture_output=True, text=True, check=True
    )
    assert ran.stdout == ""


def test_a_missing_driver_is_said_with_the_extra_that_brings_it() -> None:
    code = (
        "import sys\n"
        "sys.modules['azure.storage.blob'] = None\n"
        "from eventhub_checkpoints import MissingDriverError, open_store\n"
        "try:\n"
        "    open_store('https://acc.blob.core.windows.net/positions')\n"
        "except MissingDriverError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "python -m pip install 'eventhub-checkpoints[blob]'" in ran.stdout


def test_an_aio_store_may_be_made_before_its_loop_runs(blob_container, scope) -> None:
    from eventhub_checkpoints.aio.blob import BlobCheckpointStore

    store = BlobCheckpointStore.from_connection_string(
        blob_container.connection_string, blob_container.name
    )
    with Loop() as loop:
        assert loop.finished(store.list_ownership(*scope.as_dict().values())) == []
        loop.finished(store.close())
