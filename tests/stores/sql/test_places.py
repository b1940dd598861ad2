"""A SQL store in other places: processes, threads, forks, event loops."""

import asyncio
import json
import multiprocessing
import subprocess
import sys
import threading
from typing import Any

import aiosqlite
import pytest

from eventhub_checkpoints import open_store
from eventhub_checkpoints.aio import open_store as aio_open_store
from eventhub_checkpoints.aio.sql import DeadLetterTable as AioDeadLetterTable
from waiting import LIMIT, eventually

NAMES = ("ns.example.net", "orders", "$Default")
PROGRAM = """
import json, sys
from eventhub_checkpoints import open_store

url, owner = sys.argv[1:]
names = ("ns.example.net", "orders", "$Default")
keys = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
scope = dict(zip(keys, names))
with open_store(url) as store:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    won = store.claim_ownership([
        scope | {"partition_id": str(n), "owner_id": owner} for n in range(64)
    ])
    for number in range(5):
        renewed = store.claim_ownership([row | {"owner_id": owner} for row in won])
        assert len(renewed) == len(won), (owner, len(renewed), len(won))
        won = renewed
        for row in won[:4]:
            store.update_checkpoint(scope | {
                "partition_id": row["partition_id"], "offset": "1", "sequence_number": number,
            })
print(json.dumps(sorted(row["partition_id"] for row in won)))
"""


def test_four_processes_share_a_file_and_each_partition_has_one_owner(sqlite: Any) -> None:
    command = [sys.executable, "-c", PROGRAM, sqlite.url]
    running = [
        subprocess.Popen(
            [*command, f"owner-{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won: list[str] = []
    for process in running:
        output, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0
        won += json.loads(output)
    assert sorted(won, key=int) == [str(number) for number in range(64)]
    assert {row["ownerid"] for row in sqlite.rows("ownership").values()} <= {
        f"owner-{n}" for n in range(4)
    }
    checkpoints = sqlite.rows("checkpoint").values()
    assert checkpoints
    assert {row["sequencenumber"] for row in checkpoints} == {"4"}


def test_threads_of_one_store_do_not_disturb_each_other(place: Any) -> None:
    errors: list[Exception] = []
    with open_store(place.url) as store:

        def work(partition: int) -> None:
            row = dict(zip(KEYS, NAMES, strict=True)) | {"partition_id": str(partition)}
            try:
                for number in range(10):
                    store.update_checkpoint(row | {"offset": "1", "sequence_number": number})
                    store.list_checkpoints(*NAMES)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert {row["sequence_number"] for row in store.list_checkpoints(*NAMES)} == {9}


KEYS = ("fully_qualified_namespace", "eventhub_name", "consumer_group")


def checkpoint(number: int) -> dict[str, Any]:
    row = dict(zip(KEYS, NAMES, strict=True)) | {"partition_id": "0", "offset": "1"}
    return row | {"sequence_number": number}


def test_a_forked_process_and_its_parent_both_go_on(place: Any) -> None:
    store = open_store(place.url)
    store.update_checkpoint(checkpoint(1))

    def in_child() -> None:
        store.list_checkpoints(*NAMES)
        store.update_checkpoint(checkpoint(2))
        store.close()

    child = multiprocessing.get_context("fork").Process(target=in_child)
    child.start()
    child.join(LIMIT)
    assert child.exitcode == 0
    assert store.list_checkpoints(*NAMES)[0]["sequence_number"] == 2
    store.update_checkpoint(checkpoint(3))
    store.close()
    assert place.rows("checkpoint")["0"]["sequencenumber"] == "3"


def test_closing_in_a_forked_process_leaves_the_parents_connections(place: Any) -> None:
    store = open_store(place.url)
    store.update_checkpoint(checkpoint(1))
    child = multiprocessing.get_context("fork").Process(target=store.close)
    child.start()
    child.join(LIMIT)
    assert child.exitcode == 0
    pool = store.database._engine.pool
    before = pool.checkedin()
    store.update_checkpoint(checkpoint(2))
    assert pool.checkedin() == before == 1  # the same connection, which still works
    store.close()


def test_a_store_is_used_in_one_event_loop_after_another(place: Any) -> None:
    store = aio_open_store(place.url)

    async def use(number: int) -> None:
        await store.update_checkpoint(checkpoint(number))
        await store.close()

    for number in range(3):
        asyncio.run(use(number))
    assert place.rows("checkpoint")["0"]["sequencenumber"] == "2"


PROGRAM_OF_LOOPS = """
import asyncio, sys
from eventhub_checkpoints.aio import open_store

store = open_store(sys.argv[1])
for number in range(3):
    asyncio.run(store.list_checkpoints("ns.example.net", "orders", "$Default"))
asyncio.run(store.close())
"""


def test_a_store_that_was_left_open_in_a_loop_that_ended_goes_on(place: Any) -> None:
    for scheme in ("sqlite", "postgresql", "postgresql+asyncpg"):
        if not scheme.startswith(place.url.partition(":")[0]):
            continue
        url = place.url.replace(place.url.partition(":")[0], scheme, 1)
        command = [sys.executable, "-c", PROGRAM_OF_LOOPS, url]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr, ran.stderr


def aio_connections() -> set[threading.Thread]:
    """The threads of aiosqlite, one for each connection; before 0.22, they are the connections."""
    return {
        thread
        for thread in threading.enumerate()
        if isinstance(thread, aiosqlite.Connection) or "_connection_worker" in thread.name
    }


@pytest.mark.parametrize("ends", ["where it began", "in a third loop"])
def test_a_store_that_was_used_in_two_loops_leaves_no_connection(sqlite: Any, ends: str) -> None:
    before = aio_connections()
    store = aio_open_store(sqlite.url)

    async def use() -> None:
        await store.create()
        await store.list_checkpoints(*NAMES)

    async def use_twice() -> None:
        await use()
        await asyncio.to_thread(asyncio.run, use())
        # The connection of the first loop is closed as soon as the second one has its own.
        eventually(lambda: len(aio_connections() - before) == 1)
        await use()
        if ends == "where it began":
            await store.close()

    asyncio.run(use_twice())
    if ends == "in a third loop":
        asyncio.run(store.close())
    eventually(lambda: not aio_connections() - before)


def test_a_table_of_dead_letters_that_was_used_in_two_loops_leaves_no_connection(
    sqlite: Any,
) -> None:
    before = aio_connections()
    table = AioDeadLetterTable(sqlite.url)

    async def use() -> None:
        await table.create()
        await table.dead_letters()

    asyncio.run(use())
    asyncio.run(use())
    asyncio.run(table.close())
    eventually(lambda: not aio_connections() - before)
