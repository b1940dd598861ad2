"""Real Kafka broker (KRaft) from the jars of Maven Central, on its own ports."""

import base64
import re
import shutil
import socket
import tempfile
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from eventhub_checkpoints.cli.demo.children import Child
from maven import JarsMissingError
from spark_jars import KAFKA_BROKER

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.sasl.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required \
    user_$ConnectionString="{password}";
listener.name.sasl.oauthbearer.sasl.jaas.config={modules}.oauthbearer.OAuthBearerLoginModule \
    required unsecuredLoginStringClaim_sub="broker";
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=100
"""
MODULES = "org.apache.kafka.common.security"
CONNECTION_STRING = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=reader;SharedAccessKey=a2V5"
)
"""Password of the broker's only user, a connection string as with the service; the broker also
accepts unsigned tokens."""
HEAP = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
READY = re.compile("Kafka Server started")
START_SECONDS = 120


class KafkaBroker:
    """Broker without topics; leaving the `with` block stops it and removes its data.

    Raises:
        JarsMissingError: the jars are not in the cache, or there is no Java to run them.
    """

    _child: Child | None = None

    def __init__(self) -> None:
        if shutil.which("java") is None:
            raise JarsMissingError("a Kafka broker needs Java 17, and java is not on the PATH")
        KAFKA_BROKER.jars()
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        self.port = self.sasl_port = 0

    @property
    def address(self) -> str:
        """Value of `bootstrap.servers` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def sasl_address(self) -> str:
        """Value of `bootstrap.servers` for clients that log in, without TLS."""
        return f"127.0.0.1:{self.sasl_port}"

    @property
    def process(self) -> int:
        """Id of its process, while it is running."""
        assert self._child is not None, "the broker was not started"
        return self._child.pid

    def start(self) -> Self:
        """Format its folder and start it; returns when it serves."""
        settings = self._folder / "server.properties"
        self.port, self.sasl_port, controller = free_ports(3)
        known = {"modules": MODULES, "password": CONNECTION_STRING, "data": self._folder / "data"}
        settings.write_text(
            PROPERTIES.format(port=self.port, sasl=self.sasl_port, controller=controller, **known)
        )
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # `--option=value`: an identity that begins with a dash would be taken for an option.
        format_it = ("kafka.tools.StorageTool", "format", f"--cluster-id={identity}", "-c")
        with self._java("format", *format_it, settings) as formatting:
            formatting.wait(START_SECONDS)
        self._child = self._java("broker", "kafka.Kafka", settings)
        self._child.wait_ready(self._is_ready, START_SECONDS)
        return self

    def _java(self, name: str, *words: str | Path) -> Child:
        path = ("-cp", f"{KAFKA_BROKER.home}/*")
        return Child(("java", *HEAP, *path, *words), log=self._folder / f"{name}.log", name=name)

    def _is_ready(self) -> bool:
        return READY.search((self._folder / "broker.log").read_text(errors="replace")) is not None

    def stop(self) -> None:
        """Kill it; nothing in its folder is needed any more."""
        if self._child is not None:
            self._child.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_ports(count: int) -> list[int]:
    """Return distinct ports that are currently free."""
    with ExitStack() as open_:
        listeners = [open_.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
