"""A server that is away, demoted, loading, full, or has forgotten everything."""

import itertools
import threading
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import BusyLoadingError

from backends.redis import LocalRedis
from eventhub_checkpoints import (
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.conformance.clients import Client
from refusals import says
from waiting import LIMIT, eventually, takes

pytestmark = pytest.mark.waits

SHORT: dict[str, Any] = {"operation_timeout": 1.0, "write_timeout": 1.0}


@contextmanager
def raw_of(server: LocalRedis):
    with Redis(port=server.port, decode_responses=True) as raw:
        yield raw


@contextmanager
def setting(server: LocalRedis, name: str, value: str):
    """Change a setting of a server inside of the block."""
    with raw_of(server) as raw:
        before = raw.config_get(name)[name]
        raw.config_set(name, value)
        try:
            yield
        finally:
            raw.config_set(name, before)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_policy_that_may_evict_our_keys_is_refused(opener, spare, policy) -> None:
    with setting(spare, "maxmemory-policy", policy):
        with pytest.raises(StoreNotReadyError, match=f"{policy}.*allow_eviction=True"):
            opener(spare.url).list_ownership()
        assert opener(spare.url, allow_eviction=True).list_ownership() == []


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_a_policy_that_cannot_evict_our_keys_is_fine(opener, spare, policy, caplog) -> None:
    with setting(spare, "maxmemory-policy", policy):
        assert opener(spare.url).list_ownership() == []
    assert caplog.text == ""


def test_a_full_server_says_so_and_stores_nothing(opener, spare) -> None:
    with spare.place() as place, setting(spare, "maxmemory-policy", "volatile-lru"):
        client = opener(place.url)
        mine = client.take("0", "owner-1")
        client.save("0", 1)
        with setting(spare, "maxmemory", "100kb"):
            for attempt in (lambda: client.claim("1", "owner-1"), lambda: client.save("0", 2)):
                with pytest.raises(StoreError, match="no memory left") as failed:
                    attempt()
                assert not isinstance(failed.value, StoreUnavailableError)
            assert client.holder("0") == ("owner-1", mine["etag"])
        client.save("0", 2)
        assert client.position("0") == 2


def test_a_server_that_cannot_save_to_disk_is_waited_for(opener, start) -> None:
    server = start("--stop-writes-on-bgsave-error", "yes", "--dbfilename", "folder")
    client = opener(server.url)
    mine = client.take("0", "owner-1")
    with raw_of(server) as raw:
        (server.folder / "folder").mkdir()
        raw.config_set("save", "3600 1")
        raw.bgsave()
        eventually(lambda: raw.info("persistence")["rdb_last_bgsave_status"] == "err")
        client.set(**SHORT)
        says(lambda: client.save("0", 1), StoreUnavailableError, "cannot save its data to disk")
        kept = client.take("0", "owner-1", mine["etag"])
        assert kept["etag"] == mine["etag"], "a renewal was made up"
        assert client.claim("1", "owner-1") is None
        raw.config_set("save", "")
        client.set(operation_timeout=LIMIT)
        assert client.take("0", "owner-1", mine["etag"])["etag"] != mine["etag"]


def test_a_connection_that_was_killed_is_replaced(opener, place) -> None:
    client = opener(place.url)
    row = client.take("0", "owner-1")
    for number in range(3):
        assert place.raw.client_kill_filter(_type="normal", skipme=True) >= 1
        row = client.take("0", "owner-1", row["etag"])
        assert place.raw.client_kill_filter(_type="normal", skipme=True) >= 1
        client.save("0", number)
    assert client.position("0") == 2


@pytest.mark.long
def test_killed_connections_cost_nothing(opener, place) -> None:
    client = opener(place.url)
    row = client.take("0", "owner-1")
    number, kills, ended = 0, 0, threading.Event()

    def kill() -> None:
        nonlocal kills
        # Growing pauses: a busy machine may need longer for one request than any fixed pause.
        for pause in itertools.cycle(0.005 * 2**power for power in range(7)):
            if ended.wait(pause):
                return
            place.raw.client_kill_filter(_type="normal", skipme=True)
            kills += 1

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        while kills < 21:  # every pause three times
            number += 1
            row = client.take("0", "owner-1", row["etag"])
            client.save("0", number)
    finally:
        ended.set()
        killing.join()
    assert client.position("0") == number
    assert client.owner("0") == "owner-1"


@pytest.mark.long
def test_a_demoted_primary_is_left_for_its_successor(opener, start) -> None:
    first, second = start(), start()
    client = opener(first.url, operation_timeout=20.0)
    mine = client.take("0", "owner-1")
    with raw_of(first) as one, raw_of(second) as two:
        two.replicaof("127.0.0.1", first.port)
        eventually(lambda: two.info("replication")["master_link_status"] == "up")
        before = one.info("stats")["total_connections_received"]
        one.replicaof("127.0.0.1", second.port)
        two.replicaof("NO", "ONE")
        promoting = threading.Timer(0.5, one.replicaof, ["NO", "ONE"])
        promoting.start()
        renewed = client.take("0", "owner-1", mine["etag"])
        promoting.join()
        assert one.info("stats")["total_connections_received"] > before, "it stayed connected"
    assert renewed["etag"] != mine["etag"]


def test_a_replica_reads_and_says_why_it_does_not_write(opener, start) -> None:
    primary, replica = start(), start()
    opener(primary.url).take("0", "owner-1")
    with raw_of(replica) as raw:
        raw.replicaof("127.0.0.1", primary.port)
        eventually(lambda: raw.info("replication")["master_link_status"] == "up")
    client = opener(replica.url)
    eventually(lambda: client.owner("0") == "owner-1")
    client.set(**SHORT)
    says(lambda: client.save("0", 1), StoreUnavailableError, "it is a replica")
    assert client.claim("1", "owner-1") is None


@pytest.mark.long
def test_a_server_that_loads_its_data_is_waited_for(opener, start) -> None:
    server = start("--save", "3600 1", "--rdbcompression", "no")
    client = opener(server.url)
    mine = client.take("0", "owner-1")
    with raw_of(server) as raw:
        for number in range(60):
            raw.set(f"filler {number}", "x" * 1_000_000)
        raw.save()
    # 20 ms for each key, by a hidden setting of the server; it looks up after every 2 MB.
    server.options += ("--key-load-delay", "20000")
    server.restart()
    store = opener(server.url).store
    with pytest.raises(BusyLoadingError) as loading:
        opener.finished(store.read_ownerships(client.scope))
    error = store.map_error(loading.value)
    assert isinstance(error, StoreUnavailableError)
    assert "still loading" in str(error)
    assert client.take("0", "owner-1", mine["etag"])["etag"] != mine["etag"]


@pytest.mark.long
def test_a_killed_server_comes_back_with_what_it_confirmed(opener, start) -> None:
    server = start("--appendonly", "yes", "--appendfsync", "always")
    client = opener(server.url)
    row = client.take("0", "owner-1")
    client.save("0", 1)
    writing = threading.Thread(target=write_until_400, args=[client])
    writing.start()
    eventually(lambda: (client.position("0") or 0) > 20)
    server.kill()
    server.restart()
    writing.join()
    assert client.position("0") == 400
    assert client.take("0", "owner-1", row["etag"])


def write_until_400(client: Client) -> None:
    for number in range(2, 401):
        client.save("0", number)


@pytest.mark.long
def test_a_server_that_hangs_is_cut_off(opener, start) -> None:
    server = start()
    client = opener(server.url, **SHORT)
    mine = client.take("0", "owner-1")
    server.pause()
    with takes(1.0), pytest.raises(StoreUnavailableError):
        client.list_ownership()
    with takes(1.0):
        assert client.take("0", "owner-1", mine["etag"]) == mine
    with takes(1.0), pytest.raises(StoreUnavailableError):
        client.save("0", 1)
    server.resume()
    client.save("0", 2)
    assert client.position("0") == 2


@pytest.mark.long
def test_a_server_that_hangs_from_the_start_is_cut_off(opener, start) -> None:
    server = start()
    server.pause()
    with takes(1.0), pytest.raises(StoreUnavailableError):
        opener(server.url, **SHORT).list_ownership()


def test_a_consumer_goes_on_after_everything_was_flushed(opener, spare) -> None:
    client = opener(spare.url)
    mine = client.take_listed("0", "owner-1")
    client.save("0", 100)
    with raw_of(spare) as raw:
        raw.flushall()
    renewed = client.take("0", "owner-1", mine["etag"])
    client.save("0", 101)
    assert client.holder("0") == ("owner-1", renewed["etag"])
    assert client.position("0") == 101
    assert client.claim("0", "owner-2") is None
