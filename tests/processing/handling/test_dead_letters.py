"""A poison event lands in each sink, is redriven, and is then processed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints import dead_letters, sql
from eventhub_checkpoints.aio import dead_letters as aio_dead_letters
from eventhub_checkpoints.aio import sql as aio_sql
from eventhub_checkpoints.localhub import LocalHub
from operators import ehcp_json

PAIRS = [("sync", "file"), ("aio", "table"), ("sync", "hub")]
"""Each sink once, and a sink of each variant, in the deterministic suite; the others are long."""
OTHERS = [("aio", "file"), ("sync", "table"), ("aio", "hub")]
Wait = Callable[..., Any]
ENDED = "process_events ended"
PROPERTIES = {"kind": "order", "attempt": 3, "at": 2**40, "mark": b"\xff", "ok": True}


class BadEventError(Exception):
    """What a handler raises."""


class Storage:
    """A sink of one variant, and the option that names it to the commands."""

    def __init__(self, kind: str, site: Any, folder: Path, dead: LocalHub) -> None:
        module: Any = aio_dead_letters if site.is_aio else dead_letters
        self._finished = site.loop.finished
        self.sink: Any
        if kind == "file":
            self.source = str(folder / "dead-letters.jsonl")
            self.sink = module.DeadLetterFile(self.source)
        elif kind == "hub":
            self.source = dead.connection_string("dead")
            self.sink = module.DeadLetterHub.from_connection_string(self.source, retry_total=0)
        else:
            self.source = f"sqlite:///{folder}/dead-letters.db"
            self.sink = (aio_sql if site.is_aio else sql).DeadLetterTable(self.source)
            self._finished(self.sink.create())

    def close(self) -> None:
        if hasattr(self.sink, "close"):
            self._finished(self.sink.close())


@pytest.fixture
def dead() -> Iterator[LocalHub]:
    with LocalHub({"dead": 2}) as hub:
        yield hub


def each_sink(*reasons: str) -> Any:
    """Run with each sink, and with what it says of a failure if that is asked for."""
    names = ["variant", "storage", *(["reason"] if reasons else [])]
    said = {kind: [each] for kind, each in zip(("file", "table", "hub"), reasons, strict=False)}
    rows = [
        pytest.param(*pair, *said.get(pair[1], []), marks=marks)
        for pairs, marks in ((PAIRS, []), (OTHERS, [pytest.mark.long]))
        for pair in pairs
    ]
    return pytest.mark.parametrize(names, rows, indirect=["variant", "storage"])


@pytest.fixture
def storage(
    request: pytest.FixtureRequest, site: Any, tmp_path: Path, dead: LocalHub
) -> Iterator[Storage]:
    made = Storage(request.param, site, tmp_path, dead)
    yield made
    made.close()


def send(hub: LocalHub) -> None:
    """Send an event with everything that a dead letter has to keep."""
    event = EventData(b'{"order": 1}')
    event.properties = {**PROPERTIES, "at": {"TYPE": "LONG", "VALUE": PROPERTIES["at"]}}
    event.content_type, event.message_id = "application/json", "m-1"
    with EventHubProducerClient.from_connection_string(hub.connection_string("orders")) as producer:
        producer.send_batch([event], partition_key="customer-7")


def seen_in(event: Any) -> dict[str, Any]:
    """What an event has besides the origin of the dead letter."""
    dead_letter = dead_letters.DeadLetter.of(Anywhere, event, BadEventError())
    parts = "body", "properties", "amqp_properties", "partition_key"
    return {name: getattr(dead_letter, name) for name in parts}


class Anywhere:
    """Names of a context, where they do not matter."""

    fully_qualified_namespace = eventhub_name = consumer_group = "any"
    partition_id = "0"


@each_sink()
def test_a_dead_letter_is_redriven_with_all_that_it_was(
    site: Any, wait: Wait, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, is_mended, events = site.stage.store(), [], []

    def steps(one: Any, batch: list[Any]) -> Any:
        yield None
        events.extend(event for event in batch if event.body_as_str() != "event")
        if not is_mended and events and events[-1] in batch:
            raise BadEventError("cannot reach postgresql://app:S3CR3T@host/orders")

    site.publish(2)
    send(site.hub)
    site.publish(2)
    run = site.processor(store, attempts=1, on_poison=storage.sink, prefetch=1)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 4)
    assert run.processor.stopped == {}
    assert sorted(run.deeds.numbers(ENDED)) == [0, 1, 3, 4]

    monkeypatch.setenv("EHCP_DEAD_LETTERS", storage.source)
    monkeypatch.setenv("EHCP_HUB", site.hub.connection_string("orders"))
    [row] = ehcp_json("dead-letters", "list")
    assert (row["partition_id"], row["sequence_number"], row["body"]) == ("0", 2, '{"order": 1}')
    assert row["error_type"].endswith("BadEventError")
    assert row["error_message"] == "cannot reach postgresql://app:***@host/orders"
    assert row["properties"] == {**PROPERTIES, "mark": {"bytes": "/w=="}}
    assert row["amqp_properties"] == {"content_type": "application/json", "message_id": "m-1"}

    is_mended.append(True)
    assert ehcp_json("dead-letters", "redrive", "--execute")["executed"]
    wait(lambda: site.row(store) == 5)
    first, redriven = events[0], events[-1]
    assert seen_in(redriven) == seen_in(first)
    assert seen_in(first)["properties"] == PROPERTIES
    origin = {key.decode(): value for key, value in redriven.properties.items()}
    assert origin["dead-letter-sequence-number"] == 2
    assert origin["dead-letter-consumer-group"] == b"$Default"
    assert origin["dead-letter-id"].decode() == row["id"]


@pytest.mark.parametrize("variant", ["sync"], indirect=True)
@pytest.mark.parametrize("storage", ["file"], indirect=True)
def test_an_event_that_fails_again_after_a_redrive_counts_its_redrives(
    site: Any, wait: Wait, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = site.stage.store()

    def steps(one: Any, batch: list[Any]) -> Any:
        yield None
        raise BadEventError

    site.publish(1)
    run = site.processor(store, attempts=1, on_poison=storage.sink)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 0)
    monkeypatch.setenv("EHCP_DEAD_LETTERS", storage.source)
    monkeypatch.setenv("EHCP_HUB", site.hub.connection_string("orders"))
    ehcp_json("dead-letters", "redrive", "--execute")
    wait(lambda: site.row(store) == 1)
    [row] = ehcp_json("dead-letters", "list")
    assert (row["sequence_number"], row["redrives"], row["properties"]) == (1, 1, {})


@each_sink(
    "a dead letter could not be written to",
    "has no table",
    "a dead letter could not be sent to hub dead",
)
def test_a_sink_that_fails_stops_the_partition_before_the_event(
    site: Any, wait: Wait, storage: Storage, dead: LocalHub, tmp_path: Path, reason: str
) -> None:
    store = site.stage.store()
    dead.delete("dead")
    (tmp_path / "dead-letters.db").unlink(missing_ok=True)
    (tmp_path / "dead-letters.jsonl").mkdir()

    def steps(one: Any, batch: list[Any]) -> Any:
        yield None
        if any(event.sequence_number == 1 for event in batch):
            raise BadEventError

    site.publish(3)
    run = site.processor(store, attempts=1, on_poison=storage.sink)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.processor.stopped and site.row(store) == 0)
    assert reason in str(run.deeds.all("process_error")[-1][0])
