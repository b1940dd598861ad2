"""The store as a guest: what it opens it closes, what it was given it leaves as it is."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.query import dict_factory, named_tuple_factory, tuple_factory

from backends.cassandra import Cassandra, Keyspace
from eventhub_checkpoints import ConfigurationError, aio
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope
from waiting import LIMIT

Make = Callable[..., Client]
FACTORIES = [dict_factory, named_tuple_factory, tuple_factory]


@pytest.fixture(params=FACTORIES, ids=lambda one: one.__name__)
def session(request: pytest.FixtureRequest, server: Cassandra) -> Iterator[Session]:
    profile = ExecutionProfile(row_factory=request.param)
    hosts, port = server.session.cluster.contact_points, server.session.cluster.port
    with Cluster(hosts, port=port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
        yield cluster.connect("system")


def test_a_ready_session_is_used_and_left_as_it_was(
    client: Make, session: Session, keyspace: Keyspace
) -> None:
    made = client(session=session, namespace=keyspace.keyspace)
    won = made.take("0", "a")
    assert made.take("0", "a", won["etag"])
    made.save("0", 7)
    assert [row["sequence_number"] for row in made.list_checkpoints()] == [7]
    assert made.scope.folded in made.call("list_scopes")
    made.close()
    made.close()
    assert session.keyspace == "system"
    assert not session.is_shutdown
    assert session.execute("SELECT key FROM local").one()


def test_a_session_with_rows_of_its_own_kind_is_refused(
    client: Make, session: Session, keyspace: Keyspace
) -> None:
    session.cluster.profile_manager.default.row_factory = lambda names, rows: [set(names)]
    made = client(session=session, namespace=keyspace.keyspace)
    with pytest.raises(ConfigurationError, match="row_factory"):
        made.list_ownership()


def test_a_session_and_a_way_to_log_in_contradict_each_other(
    client: Make, session: Session
) -> None:
    with pytest.raises(ConfigurationError, match="either a session, or contact_points"):
        client(session=session, contact_points=["a"])
    with pytest.raises(ConfigurationError, match="pass contact_points"):
        client()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"username": "me"}, "username and password must be passed together"),
        ({"connect_timeout": 0}, "connect_timeout is 0"),
        ({"namespace": "No"}, "namespace is 'No'"),
        ({"replication": 0}, "replication is 0"),
        ({"unknown": 1}, "unknown is not a setting"),
        ({"port": 0}, "not a host with a port"),
        ({"port": "9" * 5000}, "not a host with a port"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(
    client: Make, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        client(**{"contact_points": ["a"], **settings})


ENDED = """
import asyncio, inspect, sys, threading
from eventhub_checkpoints import aio, open_store
SCOPE = {"fully_qualified_namespace": sys.argv[3], "eventhub_name": "h", "consumer_group": "g"}
ROW = {**SCOPE, "partition_id": "0", "owner_id": "a"}

async def aio_store():
    store = aio.open_store(sys.argv[2])
    await store.claim_ownership([ROW])
    await store.close()
    await store.close()

def used():
    if sys.argv[1] == "aio":
        return asyncio.run(aio_store())
    store = open_store(sys.argv[2])
    store.claim_ownership([ROW])
    store.close()
    store.close()

used()  # the driver keeps one thread for all clusters
before = set(threading.enumerate())
used()
for thread in set(threading.enumerate()) - before:
    thread.join()
print("ended")
"""


def run(program: str, variant: str, keyspace: Keyspace, scope: Scope) -> str:
    """Run a program with a store, in a process of its own; return what it printed."""
    ran = subprocess.run(
        [sys.executable, "-c", program, variant, keyspace.url, scope.fully_qualified_namespace],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert "Error" not in ran.stderr
    return ran.stdout.strip() or ran.stderr


def test_its_own_threads_end_with_it(variant: str, keyspace: Keyspace, scope: Scope) -> None:
    """In a process of its own: a cluster of another test may start a thread at any time."""
    assert run(ENDED, variant, keyspace, scope) == "ended"


def test_a_store_that_was_never_used_is_closed(client: Make) -> None:
    client(contact_points=["127.0.0.1:1"]).close()


FORKED = """
import asyncio, inspect, os, sys
from eventhub_checkpoints import aio, open_store
SCOPE = {"fully_qualified_namespace": sys.argv[3], "eventhub_name": "h", "consumer_group": "g"}
store = (aio.open_store if sys.argv[1] == "aio" else open_store)(sys.argv[2])

def done(answer):
    return asyncio.run(waited(answer)) if inspect.isawaitable(answer) else answer

async def waited(answer):
    return await answer

def claim(partition_id):
    return done(store.claim_ownership([{**SCOPE, "partition_id": partition_id, "owner_id": "a"}]))

assert claim("0")
child = os.fork()
if not child:
    assert claim("1"), "the child's claim"
    done(store.close())
    sys.exit(0)
for number in range(20):
    assert claim(f"p{number}"), "the parent's claim"
_, status = os.waitpid(child, 0)
assert status == 0, status
assert claim("2")
done(store.close())
print("went on")
"""


def test_parent_and_child_go_on_after_a_fork(
    variant: str, keyspace: Keyspace, scope: Scope
) -> None:
    assert run(FORKED, variant, keyspace, scope) == "went on"


def test_one_store_is_used_in_two_event_loops(keyspace: Keyspace, scope: Scope) -> None:
    store = aio.open_store(keyspace.url)
    proposal = {**scope.as_dict(), "owner_id": "a"}
    for name in ("0", "1"):
        assert asyncio.run(store.claim_ownership([{**proposal, "partition_id": name}]))
    asyncio.run(store.close())


def test_a_loop_that_ends_in_the_middle_of_calls_leaves_no_noise(
    keyspace: Keyspace, scope: Scope, capfd: pytest.CaptureFixture[str]
) -> None:
    names = scope.as_dict().values()

    async def leave() -> None:
        store = aio.open_store(keyspace.url)
        await store.list_ownership(*names)
        pending = [asyncio.ensure_future(store.list_ownership(*names)) for _ in range(20)]
        await asyncio.sleep(0)
        await store.close()
        for one in pending:
            one.cancel()

    asyncio.run(leave())
    assert capfd.readouterr().err == ""


def test_deleted_rows_are_counted_and_scopes_are_listed(client: Make, keyspace: Keyspace) -> None:
    made = client(keyspace)
    names = made.scope.as_dict().values()
    for number in range(140):
        made.save(str(number), number)
    made.take("0", "a")
    assert made.scope.folded in made.call("list_scopes")
    assert made.call("delete_partition", *names, "0") == 2
    assert made.call("delete_scope", *names) == 139
    assert made.call("delete_scope", *names) == 0
    assert made.scope.folded not in made.call("list_scopes")
