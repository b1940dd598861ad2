"""Spans of what a client asks of a store."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

from eventhub_checkpoints import StaleCheckpointError, StoreAccessError, StoreUnavailableError
from telemetry_records import Records, id_of, parent_of, recording


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as records:
        yield records


def claim_of(store: Any, partition_id: str = "0", **more: str) -> dict[str, Any]:
    return {**store.scope.as_dict(), "partition_id": partition_id, "owner_id": "me", **more}


def attributes(span: Any) -> dict[str, Any]:
    return dict(span.attributes)


def test_a_batch_of_claims_is_one_span_that_counts(store, records: Records) -> None:
    store.take("0", "other")
    store.claim(*(claim_of(store, str(number)) for number in range(3)))
    single, batch = records.spans("claim_ownership orders")
    assert attributes(single)["messaging.destination.partition.id"] == "0"
    assert "messaging.destination.partition.id" not in attributes(batch)
    counted = {"eventhub_checkpoints.proposed": 3, "eventhub_checkpoints.won": 2}
    assert counted.items() <= attributes(batch).items()
    assert "error.type" not in attributes(batch)


def test_a_release_is_named_so(store, records: Records) -> None:
    etag = store.take()["etag"]
    store.claim(claim_of(store, owner_id="", etag=etag))
    (span,) = records.spans("release_ownership orders")
    assert attributes(span)["eventhub_checkpoints.won"] == 1


def test_a_claim_that_is_refused_has_its_error(store, make_fault, records: Records) -> None:
    store.faults.plan("try_claim", make_fault(StoreAccessError("may not claim")))
    with pytest.raises(StoreAccessError):
        store.claim(claim_of(store))
    (span,) = records.spans("claim_ownership")
    assert attributes(span)["error.type"] == "eventhub_checkpoints.errors.StoreAccessError"
    assert span.status.description == "may not claim"


def test_a_checkpoint_is_one_span_however_often_it_is_tried(
    store, make_fault, records: Records
) -> None:
    store.faults.plan("write_checkpoint", make_fault(StoreUnavailableError("no answer")))
    store.update(7)
    (span,) = records.spans("checkpoint orders")
    assert attributes(span)["eventhub_checkpoints.sequence_number"] == 7
    assert store.faults.count("write_checkpoint") == 2


@pytest.mark.parametrize("on_stale", ["log", "raise"])
def test_a_stale_checkpoint_is_an_error_even_where_it_is_only_logged(
    make, records: Records, on_stale: Any
) -> None:
    store = make(on_stale=on_stale)
    store.update(1)
    store.official_write(100)
    try:
        store.update(50)
    except StaleCheckpointError:
        assert on_stale == "raise"
    failed = records.spans("checkpoint")[-1]
    assert attributes(failed)["error.type"] == "eventhub_checkpoints.errors.StaleCheckpointError"
    points = records.points("messaging.client.operation.duration")
    assert sum(point.count for point in points if "error.type" in point.attributes) == 1


def test_spans_of_a_driver_are_children(store, records: Records) -> None:
    store.faults.before_write = lambda checkpoint, seen: records.tracer.start_span("driver").end()
    store.update(1)
    (span,), (driver,) = records.spans("checkpoint"), records.spans("driver")
    assert parent_of(driver) == id_of(span)
    assert not trace.get_current_span().get_span_context().is_valid


def test_the_span_of_the_caller_is_the_parent(store, records: Records) -> None:
    with records.tracer.start_as_current_span("caller") as caller:
        store.update(1)
        store.take()
    expected = caller.get_span_context()
    spans = [*records.spans("checkpoint"), *records.spans("claim")]
    assert [parent_of(span) for span in spans] == [(expected.trace_id, expected.span_id)] * 2


def test_no_proposal_has_no_span(store, records: Records) -> None:
    assert store.claim() == []
    assert records.spans() == []


def test_a_secret_in_an_error_of_a_driver_is_masked_in_its_span(
    store, make_fault, records: Records
) -> None:
    secret = "planted-key-8f3a"
    error = RuntimeError(f"Endpoint=sb://x;SharedAccessKey={secret};failed")
    store.faults.plan("write_checkpoint", make_fault(error))
    with pytest.raises(Exception, match="failed"):
        store.update(1)
    assert attributes(records.spans("checkpoint")[0])["error.type"].endswith(".StoreError")
    assert secret not in records.text()
