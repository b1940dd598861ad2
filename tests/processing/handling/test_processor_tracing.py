"""Spans and metrics of processors that run on a hub: the user's spans between, and checkpoints."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventhub_checkpoints import every
from telemetry_records import Records, id_of, links_of, parent_of, recording

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
NAMES = {
    "messaging.system": "eventhubs",
    "messaging.destination.name": "orders",
    "messaging.destination.partition.id": "0",
    "messaging.consumer.group.name": "$Default",
}


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as records:
        yield records


def publish(site: Any, *spans: int) -> None:
    """One event for each span of a producer."""
    for span in spans:
        header = f"00-{TRACE:032x}-{span:016x}-01"
        site.hub.publish("orders", "0", ["event"], properties={"traceparent": header})


def processed(records: Records) -> list[Any]:
    return records.spans("process")


def checkpoints(records: Records, count: int) -> Callable[[], bool]:
    return lambda: len(records.spans("checkpoint")) >= count


def test_a_batch_is_linked_to_its_producers_and_its_checkpoint_is_its_child(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    publish(site, 1, 2, 3)
    store = site.stage.store()
    run = site.started(store)
    wait(lambda: len(run.deeds.numbers("process_events ended")) == 3)
    wait(lambda: site.row(store) == 2)
    run.call("stop")
    spans = processed(records)
    assert [link for span in spans for link in links_of(span)] == [(TRACE, n) for n in (1, 2, 3)]
    counts = [span.attributes["messaging.batch.message_count"] for span in spans]
    assert sum(counts) == 3
    for span in spans:
        assert span.name == "process orders"
        assert span.kind.name == "CONSUMER"
        assert NAMES.items() <= span.attributes.items()
        assert span.attributes["messaging.operation.name"] == "process"
        assert span.attributes["server.address"] == site.hub.host
        assert all(link.attributes for link in span.links)
    saved = records.spans("checkpoint")[-1]
    assert parent_of(saved) == id_of(spans[-1])
    assert saved.kind.name == "CLIENT"
    assert NAMES.items() <= (saved.attributes or {}).items()
    assert (saved.attributes or {})["eventhub_checkpoints.sequence_number"] == 2
    assert (saved.attributes or {})["messaging.operation.type"] == "settle"


def test_claims_and_releases_have_spans_of_their_own(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    publish(site, 1)
    run = site.started(site.stage.store())
    wait(lambda: run.deeds.numbers())
    run.call("stop")
    first = records.spans("claim_ownership orders")[0]
    assert (first.attributes or {})["eventhub_checkpoints.proposed"] == 1
    assert (first.attributes or {})["eventhub_checkpoints.won"] == 1
    (release,) = records.spans("release_ownership orders")
    assert (release.attributes or {})["messaging.destination.partition.id"] == "0"
    assert parent_of(first) is None


def test_spans_of_a_handler_are_children_of_its_batch(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    def steps(one: Any, events: list[Any]) -> Any:
        with records.tracer.start_as_current_span("mine"):
            yield yield_once()

    publish(site, 1)
    run = site.processor(site.stage.store())
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.deeds.numbers("process_events ended"))
    run.call("stop")
    (mine,) = records.spans("mine")
    assert parent_of(mine) == id_of(processed(records)[0])


def yield_once() -> Callable[[], bool]:
    """A condition that a handler waits for once: an aio handler leaves its task in between."""
    answers = [True, False]
    return lambda: answers.pop()


def test_a_checkpoint_within_a_handler_is_a_child_of_the_batch_that_runs(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    def steps(one: Any, events: list[Any]) -> Any:
        yield one.checkpoints.update_checkpoint(events[-1])

    publish(site, 1)
    run = site.processor(site.stage.store(), policy=None)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.deeds.numbers("process_events ended"))
    run.call("stop")
    (saved,) = records.spans("checkpoint")
    (batch,) = processed(records)
    assert parent_of(saved) == id_of(batch)
    assert batch.end_time >= (saved.end_time or 0)


def test_each_failed_attempt_has_a_span_with_its_error(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    def steps(one: Any, events: list[Any]) -> Any:
        if len(one.deeds.all("process_events")) == 1:
            raise ValueError("not yet")
        return
        yield

    publish(site, 1)
    run = site.processor(site.stage.store())
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.deeds.numbers("process_events ended"))
    run.call("stop")
    failed, passed = processed(records)
    assert failed.attributes["error.type"] == "ValueError"
    assert failed.status.status_code.name == "ERROR"
    assert failed.events[0].name == "exception"
    assert "error.type" not in passed.attributes
    points = records.points("messaging.process.duration")
    assert {point.attributes.get("error.type"): point.count for point in points} == {
        "ValueError": 1,
        None: 1,
    }
    # The client has delivered it once.
    (consumed,) = records.points("messaging.client.consumed.messages")
    assert consumed.value == 1
    assert NAMES.items() <= consumed.attributes.items()


def test_an_event_that_is_finished_separately_has_a_child_until_then(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    apart: list[Any] = []

    def steps(one: Any, events: list[Any]) -> Any:
        apart.extend(one.checkpoints.track(event) for event in events)
        return
        yield

    publish(site, 1)
    store = site.stage.store()
    run = site.processor(store)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.deeds.numbers("process_events ended"))
    wait(lambda: processed(records))
    (batch,) = processed(records)
    apart[0].done()
    wait(lambda: site.row(store) == 0)
    run.call("stop")
    _, event = processed(records)
    assert parent_of(event) == id_of(batch)
    assert links_of(event) == [(TRACE, 1)]
    assert "messaging.batch.message_count" not in event.attributes
    assert parent_of(records.spans("checkpoint")[0]) == id_of(event)
    assert sum(p.value for p in records.points("messaging.client.consumed.messages")) == 1


def test_durations_of_requests_to_the_store_are_measured(
    site: Any, records: Records, wait: Callable[..., Any]
) -> None:
    publish(site, 1)
    run = site.started(site.stage.store(), policy=every(events=1))
    wait(checkpoints(records, 1))
    run.call("stop")
    points = records.points("messaging.client.operation.duration")
    names = {point.attributes["messaging.operation.name"] for point in points}
    assert names == {"checkpoint", "claim_ownership", "release_ownership"}
