"""Ready clients: of a cluster, and of the primary that a Sentinel knows."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module

import pytest
from redis import Redis

from backends import ServerMissingError
from backends.redis import LocalRedis, executable
from eventhub_checkpoints import StoreNotReadyError
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.redis.protocol import CLAIM
from ports import free_port
from waiting import LIMIT, eventually

pytestmark = pytest.mark.waits

SLOTS = 16384


class Cluster(LocalRedis):
    """One node that has all slots."""

    def __init__(self) -> None:
        super().__init__("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")

    @property
    def port(self) -> int:
        """One whose bus port, 10000 above it, exists too."""
        if "chosen" not in self.__dict__:
            self.chosen = next(port for port in iter(free_port, 0) if port < 55000)
        return self.chosen

    def launch(self) -> Child:
        child = super().launch()
        try:
            with Redis(port=self.port) as raw:
                raw.execute_command("CLUSTER", "ADDSLOTS", *range(SLOTS))
                child.wait_ready(lambda: is_up(raw), LIMIT)
        except BaseException:
            child.kill()
            raise
        return child


def is_up(raw: Redis) -> bool:
    return re.search(r"cluster_state\W+ok", str(raw.cluster("info"))) is not None


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalRedis]:
    with ExitStack() as opened:
        try:
            yield opened.enter_context(Cluster())
        except ServerMissingError as missing:
            pytest.skip(str(missing))


@pytest.fixture
def ready(cluster, opener):
    """Makes cluster clients."""
    kind = import_module(f"{opener.driver.__name__}.cluster").RedisCluster

    def make(**options):
        return opener.ready(kind(host="127.0.0.1", port=cluster.port, **options))

    return make


@pytest.mark.parametrize("decodes", [True, False])
def test_a_cluster_does_all_that_a_server_does(opener, cluster, ready, decodes) -> None:
    with Redis(port=cluster.port) as raw:
        raw.flushall()
    client = opener(client=ready(decode_responses=decodes, socket_timeout=60))
    other = client.within(Scope("ns", "other", "g"))
    batch = [one.proposal(str(number), "a") for number in range(64) for one in (client, other)]
    won = client.claim_ownership(batch)
    assert [row["partition_id"] for row in won] == [row["partition_id"] for row in batch]
    assert len(client.claim_ownership(won)) == 128
    assert client.claim("0", "b") is None
    client.save("0", 7)
    assert client.position("0") == 7
    assert client.call("list_scopes") == sorted([other.scope, client.scope.folded], key=str)
    assert client.call("delete_scope", *client.scope.as_dict().values()) == 65
    client.call("verify")


def test_a_cluster_that_forgot_the_scripts_is_told_them_again(opener, cluster, ready) -> None:
    client = opener(client=ready())
    row = client.take_listed("0", "a")
    with Redis(port=cluster.port) as raw:
        raw.script_flush()
        assert client.take("0", "a", row["etag"])
        assert raw.script_exists(CLAIM.digest) == [True]


def test_every_primary_is_asked_for_its_policy(opener, cluster, ready) -> None:
    with Redis(port=cluster.port) as raw:
        raw.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StoreNotReadyError, match="allkeys-lru"):
                opener(client=ready()).list_ownership()
        finally:
            raw.config_set("maxmemory-policy", "noeviction")


class SentinelProcess(LocalRedis):
    """A sentinel that watches one primary."""

    def __init__(self, primary: LocalRedis) -> None:
        super().__init__()
        self.primary = primary

    def launch(self) -> Child:
        file = self.folder / "sentinel.conf"
        file.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor orders 127.0.0.1 {self.primary.port} 1\n"
            "sentinel down-after-milliseconds orders 500\n"
            "sentinel failover-timeout orders 5000\n"
        )
        words = [executable(), str(file), "--sentinel"]
        child = Child(words, log=self.folder / "sentinel.log", name="redis-sentinel")
        child.wait_ready(self.is_ready, LIMIT)
        return child


@pytest.mark.long
def test_a_client_of_a_sentinel_follows_a_failover(opener, start) -> None:
    primary, replica = start(), start()
    with Redis(port=replica.port) as raw:
        raw.replicaof("127.0.0.1", primary.port)
        eventually(lambda: raw.info("replication")["master_link_status"] == "up")
        with SentinelProcess(primary) as sentinel, Redis(port=sentinel.port) as watching:
            eventually(lambda: watching.sentinel_slaves("orders"))
            client = opener(client=primary_of(opener, sentinel), operation_timeout=60.0)
            mine = client.take_listed("0", "owner-1")
            client.save("0", 7)
            eventually(lambda: len(raw.keys()) == 2)
            primary.kill()
            renewed = client.take("0", "owner-1", mine["etag"])
            client.save("0", 8)
        keys = [key for key in raw.scan_iter() if key.endswith(b":ownership")]
        assert renewed["etag"].encode() in raw.hget(keys[0], "0")


def primary_of(opener, sentinel: SentinelProcess):
    """A ready client of whoever is the primary."""
    kind = import_module(f"{opener.driver.__name__}.sentinel").Sentinel
    sentinels = kind([("127.0.0.1", sentinel.port)], socket_timeout=2)
    opener.opened.callback(lambda: close_all(opener, sentinels.sentinels))
    return opener.ready(sentinels.master_for("orders", socket_timeout=2))


def close_all(opener, clients) -> None:
    for one in clients:
        opener.finished(getattr(one, "aclose", one.close)())
