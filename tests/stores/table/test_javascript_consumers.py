"""Real consumers of JavaScript and Python share a group in a table, while one after the other dies.

Each is a process that saves after each batch, and is killed as `kill -9` does. Whoever is started
next takes its partitions over when they have expired, and goes on at what it had saved.
"""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends.table import Table, TablePlace
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from javascript_store import JavaScriptMissingError, found_node, node_path
from waiting import eventually

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
AMQP = 5672
PARTITIONS = ["0", "1", "2", "3"]
EVENTS = 40
"""Published to each partition before each of the consumers is started."""
BATCH = 5
"""Most events that a consumer is given at once, after which it saves."""
EXPIRY = 3.0
"""Seconds until the ownership of a consumer that was killed ends."""
TURNS = ["javascript", "python", "javascript", "python"]


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    """On AMQP's own port: beside another one, the clients give the namespace different names."""
    for last in range(100, 200):
        running = LocalHub({"orders": len(PARTITIONS)}, host=f"127.0.0.{last}", port=AMQP)
        try:
            running.start()
        except OSError:
            continue
        yield running
        running.stop()
        return
    pytest.skip(f"no address 127.0.0.N of this machine has port {AMQP} free")


class Consumer:
    """A consumer of one of the two languages, and what it has printed."""

    def __init__(self, language: str, arguments: list[str], log: Path) -> None:
        self._log = log
        if language == "python":
            command = [sys.executable, HERE / "consumer.py", *arguments]
            self._child = Child(command, log=log, env={"PYTHONPATH": ":".join(sys.path)})
            return
        command = [found_node().program, HERE / "consumer.js", *arguments]
        self._child = Child(command, log=log, env={"NODE_PATH": node_path()})

    def lines(self, kind: str) -> list[Any]:
        """What it has printed of one kind; the last line may be incomplete."""
        whole = self._log.read_text().rpartition("\n")[0].splitlines()
        found = [json.loads(line) for line in whole if line.startswith("{")]
        return [line[kind] for line in found if kind in line]

    def saved(self) -> dict[str, int]:
        """The last position that it has saved of each partition."""
        return dict(map(tuple, self.lines("saved")))

    def has_saved(self, least: dict[str, int]) -> bool:
        """Whether it has saved at least these positions."""
        saved = self.saved()
        return all(saved.get(name, -1) >= number for name, number in least.items())

    def kill(self) -> None:
        """Kill it; nothing is released."""
        self._child.kill()


def test_consumers_of_both_languages_take_over_from_each_other(
    hub: LocalHub, server: Table, tmp_path: Path
) -> None:
    try:
        node_path()
    except JavaScriptMissingError as missing:
        pytest.skip(str(missing))
    with server.place() as place:
        assert isinstance(place, TablePlace)
        connection = hub.connection_string("orders").replace(f":{AMQP}", "")
        arguments = [connection, "orders", server.url, place.url.rpartition("/")[2]]
        arguments += [EMULATOR_ACCOUNT, EMULATOR_KEY, str(EXPIRY)]
        seen: set[tuple[str, int]] = set()
        saved = dict.fromkeys(PARTITIONS, -1)
        for turn, language in enumerate(TURNS):
            for partition_id in PARTITIONS:
                hub.publish("orders", partition_id, [b"x"] * EVENTS)
            consumer = Consumer(language, arguments, tmp_path / str(turn))
            # The last one goes on to the end; the others are killed on the way.
            most = dict.fromkeys(PARTITIONS, len(TURNS) * EVENTS - 1)
            least = most if turn == len(TURNS) - 1 else {name: saved[name] + 8 for name in saved}
            try:
                eventually(partial(consumer.has_saved, least))
            finally:
                consumer.kill()
            events = [(name, number) for name, number in consumer.lines("event")]
            for partition_id, number in saved.items():
                first = min(each for name, each in events if name == partition_id)
                # What was saved at the moment of the kill may not have been printed any more.
                assert number < first <= number + 1 + BATCH, (language, partition_id)
            seen.update(events)
            saved = consumer.saved()
        assert seen == {(name, number) for name in PARTITIONS for number in range(most["0"] + 1)}
        keys = {entity["PartitionKey"] for entity in place.table.list_entities()}
        assert keys == {
            f"{hub.host} orders $Default {kind}" for kind in ("Ownership", "Checkpoint")
        }
