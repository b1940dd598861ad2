"""The plugin in runs of pytest: with asyncio, anyio and xdist, and what it leaves behind."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_eventhub_checkpoints as plugin

pytestmark = pytest.mark.waits

ROOT = Path(__file__).parents[2]
# Clients are imported when a test runs: what was imported before is the plugin's doing.
SYNC = """
import threading
import pytest

@pytest.mark.event_hub(partitions=3, name="orders")
def test_hub(event_hub, checkpoints):
    from azure.eventhub import EventData, EventHubProducerClient
    assert event_hub.partition_ids == ["0", "1", "2"]
    with EventHubProducerClient.from_connection_string(event_hub.connection_string) as producer:
        assert producer.get_eventhub_properties()["eventhub_name"] == "orders" == event_hub.name
        event = EventData("sent")
        event.properties = {"n": 1}
        producer.send_batch([event], partition_key="key")
    assert event_hub.publish("a", "b", "c", "d") == {"0": 1, "1": 1, "2": 0}
    first = event_hub.received("1")[0]
    assert (first.body_as_str(), first.properties, first.partition_key) == ("sent", {"n": 1}, "key")
    assert [e.body for e in event_hub.received()] == [b"a", b"d", b"sent", b"b", b"c"]
    assert event_hub.publish("e", partition_key="key") == {"0": 1, "1": 2, "2": 0}
    assert checkpoints() == {}

@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_store(event_hub, request, kind):
    from azure.eventhub import EventHubConsumerClient
    request.node.add_marker(pytest.mark.checkpoint_store(kind))
    store = request.getfixturevalue("checkpoint_store")
    checkpoints = request.getfixturevalue("checkpoints")
    client = EventHubConsumerClient.from_connection_string(
        event_hub.connection_string, "audit", checkpoint_store=store, load_balancing_interval=0.1
    )
    last = event_hub.publish("a", "b")
    def on_event_batch(context, events):
        if events:
            assert context.fully_qualified_namespace == event_hub.namespace
            context.update_checkpoint(events[-1])
            client.close()
    client.receive_batch(on_event_batch, starting_position="-1")
    assert checkpoints.eventually(last, consumer_group="Audit") == checkpoints("audit") == last
    assert checkpoints() == {}
    assert request.getfixturevalue("checkpoint_store_url").startswith(f"{kind}:")
    for thread in threading.enumerate():
        if "_load_balancing" in thread.name: # a thread of the client, which does not wait for it
            thread.join()
"""
ASYNC = """
import asyncio
import pytest

async def consume(event_hub, store):
    from azure.eventhub.aio import EventHubConsumerClient
    client = EventHubConsumerClient.from_connection_string(
        event_hub.connection_string, "$Default", checkpoint_store=store, load_balancing_interval=0.1
    )
    async def on_event_batch(context, events):
        if events:
            await context.update_checkpoint(events[-1])
    async with client:
        await client.receive_batch(on_event_batch, starting_position="-1")

async def check(event_hub, store, checkpoints):
    task = asyncio.create_task(consume(event_hub, store))
    await checkpoints.aio_eventually(event_hub.publish("a", "b", "c", "d"), seconds=100)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

{asyncio}
@pytest.mark.event_hub(partitions=2)
async def test_memory(event_hub, aio_checkpoint_store, checkpoints):
    await check(event_hub, aio_checkpoint_store, checkpoints)

{asyncio}
@pytest.mark.checkpoint_store("sqlite")
async def test_sqlite(event_hub, aio_checkpoint_store, checkpoints):
    await check(event_hub, aio_checkpoint_store, checkpoints)

{asyncio}
@pytest.mark.filterwarnings("ignore::ResourceWarning") # of azure-eventhub
async def test_drop(event_hub, aio_checkpoint_store, checkpoints):
    task = asyncio.create_task(consume(event_hub, aio_checkpoint_store))
    await checkpoints.aio_eventually(event_hub.publish("a"), seconds=100)
    assert event_hub.drop() > 0
    await checkpoints.aio_eventually(event_hub.publish("b"), seconds=100)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

{asyncio}
async def test_closed_by_the_test(aio_checkpoint_store):
    async with aio_checkpoint_store:
        assert await aio_checkpoint_store.list_scopes() == []
"""
ANYIO = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def passed(ran: Any, count: int) -> None:
    """Check that a run passed, and left nothing open that was not open before."""
    assert ran.status == 0, ran.output
    assert f" {count} passed" in ran.output
    states = ran.states()
    assert states
    for state in states:
        before, after = state["before"], state["after"]
        assert before["imported"] == [], "collecting tests imports nothing of the package"
        assert after["imported"] == ["azure", "eventhub_checkpoints"]
        assert (after["threads"], after["files"]) == (before["threads"], before["files"])


def test_with_asyncio_in_strict_mode_and_anyio_in_workers_of_xdist(
    run_pytest: Callable[..., Any],
) -> None:
    files = {
        "test_asyncio.py": ASYNC.format(asyncio="@pytest.mark.asyncio"),
        "test_anyio.py": ANYIO + ASYNC.format(asyncio="@pytest.mark.anyio"),
    }
    ran = run_pytest(files, "-n2", "--dist=loadfile")
    passed(ran, 8)
    assert len(ran.states()) == 2


def test_with_asyncio_in_auto_mode_and_without_any_plugin(run_pytest: Callable[..., Any]) -> None:
    files = {"test_auto.py": ASYNC.format(asyncio=""), "test_sync.py": SYNC}
    passed(run_pytest(files, "--asyncio-mode=auto"), 7)


MISTAKES = {
    "@pytest.mark.event_hub(partition=4)\ndef test_a(event_hub): pass": (
        "EventHub has no argument partition; did you mean partitions?"
    ),
    "@pytest.mark.event_hub(partitions=0)\ndef test_b(event_hub): pass": (
        "expected 1 to 2048 partitions"
    ),
    "@pytest.mark.event_hub(name='a/b')\ndef test_c(event_hub): pass": (
        "'a/b' is not a valid name of an event hub"
    ),
    "@pytest.mark.checkpoint_store('redis')\ndef test_d(checkpoint_store): pass": (
        "the marker checkpoint_store has 'redis'; expected memory or sqlite. For another store, "
        "define a fixture checkpoint_store_url that returns its URL"
    ),
    "@pytest.mark.checkpoint_store()\ndef test_e(checkpoint_store): pass": (
        "the marker checkpoint_store has None; expected memory or sqlite"
    ),
    "@pytest.mark.checkpoint_store('sqlite', 'x')\ndef test_s(checkpoint_store): pass": (
        "the marker checkpoint_store has 'sqlite', 'x'; expected memory or sqlite"
    ),
    "@pytest.mark.checkpoint_store('sqlite', kind='memory')\ndef test_t(checkpoint_store): pass": (
        "the marker checkpoint_store has 'sqlite', kind='memory'; expected memory or sqlite"
    ),
    "@pytest.mark.checkpoint_store('redis://:pa55word@host')\ndef test_u(checkpoint_store): pass": (
        "the marker checkpoint_store has 'redis://:***@host'; expected memory or sqlite"
    ),
    "def test_f(event_hub): event_hub.publish()": (
        "publish takes the bodies one by one: publish('first', 'second'), or publish(*bodies) for "
        "a list"
    ),
    "def test_g(event_hub): event_hub.publish(['a', 'b'])": "publish takes the bodies one by one",
    "def test_h(event_hub): event_hub.publish('a', partition_id='0', partition_key='k')": (
        "publish takes partition_id or partition_key, not both: a key chooses its partition"
    ),
    "def test_i(event_hub): event_hub.publish('a', partition_id='7')": (
        "has no partition '7'; it has '0' to '0'"
    ),
    "def test_j(event_hub): event_hub.publish('a', partition_key='k' * 129)": (
        "partition_key has 129 characters; expected at most 128"
    ),
    "def test_k(event_hub): event_hub.publish({'amount': 3})": (
        "a body must be bytes or a string, not dict"
    ),
    "@pytest.mark.event_hub(name='k')\n"
    "def test_l(checkpoints): checkpoints.eventually({'0': 5}, seconds=0)": (
        "after 0 s the checkpoints of k in consumer group $Default are {}; expected {'0': 5}. "
        "Nothing is stored: does the client have the store of the fixture?"
    ),
    "@pytest.mark.event_hub(name='l')\n"
    "def test_m(event_hub, checkpoints, checkpoint_store):\n"
    "    save(event_hub, checkpoint_store, 'audit')\n"
    "    checkpoints.eventually({'0': 5}, seconds=0)": (
        "are {}; expected {'0': 5}. Consumer groups with checkpoints: audit"
    ),
    "@pytest.mark.event_hub(name='m')\n"
    "def test_n(event_hub, checkpoints, checkpoint_store):\n"
    "    save(event_hub, checkpoint_store, '$Default')\n"
    "    checkpoints.eventually(lambda stored: '1' in stored, seconds=0)": (
        "the checkpoints of m in consumer group $Default are {'0': 3}; the function returned false"
    ),
    "async def test_o(checkpoints): checkpoints.eventually({'0': 5})": (
        "checkpoints.eventually would block the event loop, and the consumer with it; use await "
        "checkpoints.aio_eventually(...)"
    ),
    "async def test_p(checkpoints): await checkpoints.aio_eventually({'0': 5}, seconds=0)": (
        "after 0 s the checkpoints of"
    ),
    "def test_q(checkpoints): checkpoints.eventually({'0': '5'})": (
        "expected is {'0': '5'}; expected a dict such as {'0': 41}, with the sequence number of "
        "each partition, or a function"
    ),
    "def test_r(checkpoints): checkpoints.eventually({'0': 5}, seconds='1')": (
        "seconds is '1'; expected "
    ),
}
SAVE = """
import pytest

def save(event_hub, store, group):
    row = dict(fully_qualified_namespace=event_hub.namespace, eventhub_name=event_hub.name)
    row |= dict(consumer_group=group, partition_id="0", offset="9", sequence_number=3)
    store.update_checkpoint(row)

"""


def test_each_mistake_says_what_to_do(run_pytest: Callable[..., Any]) -> None:
    ran = run_pytest(
        {"test_mistakes.py": SAVE + "\n\n".join(MISTAKES)}, "--asyncio-mode=auto", "--tb=line"
    )
    assert ran.status == pytest.ExitCode.TESTS_FAILED, ran.output
    lacking = [sentence for sentence in MISTAKES.values() if sentence not in ran.output]
    assert not lacking, ran.output


def test_markers_and_fixtures_are_described(run_pytest: Callable[..., Any]) -> None:
    markers = run_pytest({}, "--markers").output
    assert "@pytest.mark.event_hub(partitions=1, name=None): the hub of" in markers
    assert "@pytest.mark.checkpoint_store(kind): where" in markers


def test_the_plugin_is_part_of_the_wheel_and_registered_by_its_own_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {plugin.__name__: plugin.__name__}
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert f"src/{plugin.__name__}.py" in wheel["only-include"]
    assert (ROOT / "src" / f"{plugin.__name__}.py").is_file()


CHEAP = """
import pytest

@pytest.mark.parametrize("number", range(101))
def test_it(event_hub, checkpoint_store, aio_checkpoint_store, checkpoints, number):
    event_hub.publish("a")
    assert checkpoints() == {}
"""
READINGS = """
import time

READINGS = []

def pytest_runtest_logfinish():
    READINGS.append(time.process_time())

def pytest_terminal_summary(terminalreporter):
    costs = sorted(after - before for before, after in zip(READINGS, READINGS[1:]))
    terminalreporter.write_line(f"median {costs[len(costs) // 2] * 1000:.1f} ms")
"""


@pytest.mark.long
def test_a_test_after_the_first_costs_less_than_20_ms(run_pytest: Callable[..., Any]) -> None:
    """Of the processor, whatever else the machine does."""
    ran = run_pytest({"test_it.py": CHEAP, "costs.py": READINGS}, "-p", "costs")
    found = re.search(r"median ([\d.]+) ms", ran.output)
    assert found, ran.output
    print(found[0])
    assert float(found[1]) < 20
