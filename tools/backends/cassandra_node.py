"""One node of Cassandra from the jars of Maven Central, with its own configuration."""

import socket
import struct
from pathlib import Path

from maven import Artifact, JarSet

VERSION = "5.0.9"
JARS = JarSet(
    name=f"cassandra-jars-{VERSION}",
    artifacts=(Artifact(f"org.apache.cassandra:cassandra-all:{VERSION}"),),
    fetched_by="run `python tools/prepare.py`",
)
WAYS = (
    "Cassandra needs one of three: CASSANDRA_URL with the address of a running one; a Docker "
    "engine and `python -m pip install testcontainers`; or Java 17 on the PATH, and for the first "
    "time Maven (mvn) and `python tools/prepare.py`"
)

YAML = """cluster_name: test
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 1
{commits}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seed}:{storage}"
listen_address: {host}
rpc_address: {host}
storage_port: {storage}
native_transport_port: {native}
auto_snapshot: false
hinted_handoff_enabled: false
disk_access_mode: standard
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
commitlog_segment_size: 8MiB
commitlog_total_space: 64MiB
key_cache_size: 4MiB
file_cache_size: 16MiB
concurrent_reads: 8
concurrent_writes: 8
"""
LOGBACK = """<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"""
HASTY = "commitlog_sync: periodic\ncommitlog_sync_period: 10s"
DURABLE = "commitlog_sync: batch"
"""For a server that is killed: what it has confirmed is on disk."""
WITH_ROLES = """authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
roles_validity: 0ms
permissions_validity: 0ms
credentials_validity: 0ms
"""
"""Appended for a server that requires login; its first user is `cassandra`, as is the password."""

OPTIONS, SUPPORTED = 5, 6
"""Opcodes of the native protocol: the request for supported options, and its response."""
HEAP = "-Xms256m -Xmx256m -Xss512k -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = """
    java.net.preferIPv4Stack=true jdk.attach.allowAttachSelf=true
    io.netty.tryReflectionSetAccessible=true cassandra-foreground=yes
    cassandra.skip_wait_for_gossip_to_settle=0 cassandra.ring_delay_ms=0
    cassandra.superuser_setup_delay_ms=0 cassandra.shutdown_announce_in_ms=0
    cassandra.available_processors=2
"""
UNSAFE = "cassandra.unsafesystem=true"
"""Makes creating keyspaces and tables ten times as fast; a killed server loses them."""
OPENS = """
    java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.io
    java.base/java.util java.base/jdk.internal.loader java.base/jdk.internal.ref
    java.base/jdk.internal.reflect java.base/jdk.internal.math java.base/jdk.internal.module
    java.base/jdk.internal.util.jar java.base/sun.nio.ch
    jdk.management/com.sun.management.internal jdk.compiler/com.sun.tools.javac
"""
EXPORTS = """
    java.base/jdk.internal.misc java.base/java.lang.ref
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry
    java.rmi/sun.rmi.server java.sql/java.sql jdk.unsupported/sun.misc
    jdk.compiler/com.sun.tools.javac.file jdk.attach/sun.tools.attach
"""


def configure(folder: Path, text: str) -> None:
    """Write the configuration of a node into its folder."""
    (folder / "cassandra.yaml").write_text(text)
    (folder / "logback.xml").write_text(LOGBACK)


def command(folder: Path, more: str) -> list[str]:
    """Return the command that starts a node with its configuration and data in the folder."""
    places = {
        "cassandra.config": (folder / "cassandra.yaml").as_uri(),
        "logback.configurationFile": folder / "logback.xml",
        "cassandra.storagedir": folder,
        "cassandra.logdir": folder,
        "java.io.tmpdir": folder,
    }
    return [
        "java",
        *HEAP.split(),
        *(f"-D{setting}" for setting in (SETTINGS + more).split()),
        *(f"-D{name}={value}" for name, value in places.items()),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS.split()),
        *(f"--add-exports={package}=ALL-UNNAMED" for package in EXPORTS.split()),
        *("-cp", f"{JARS.home}/*", "org.apache.cassandra.service.CassandraDaemon"),
    ]


def speaks(address: str) -> bool:
    """Return whether a node at `HOST:PORT` answers a request for its supported options."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1) as connection:
            connection.sendall(struct.pack(">BBhBi", 4, 0, 0, OPTIONS, 0))
            answer = connection.recv(9)
    except OSError:
        return False
    return len(answer) > 4 and answer[4] == SUPPORTED
