"""A hub or a consumer group that does not exist is reported, and is not healthy."""

from dataclasses import replace
from typing import Any

import pytest
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.processing._async import client_callbacks as aio_callbacks
from eventhub_checkpoints.processing._async import position_validator as aio_position_validator
from eventhub_checkpoints.processing._sync import client_callbacks, position_validator
from variants import ONLY_SIMULATED, REAL_AIO
from waiting import LIMIT

HUB_PARTITIONS = 2
CONSUMER_GROUPS = ("audit",)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client_callbacks, aio_callbacks):
        monkeypatch.setattr(module, "FIRST_EVENT_CHECK", 0.25)


@REAL_AIO
def test_a_consumer_group_that_does_not_exist_is_reported(runs: Any, wait: Any) -> None:
    runs.publish(3)
    # On a busy machine the first answer of the hub may take seconds, and is not what is meant here.
    run = runs.start(runs.stage.store(), runs.maker(consumer_group="nope"), unhealthy_after=LIMIT)
    wait(lambda: run.seen.errors)
    run.processor._options = replace(run.processor._options, unhealthy_after=0.25)
    assert not run.processor.healthy()
    ((partition_id, error),) = run.seen.errors
    assert partition_id == "0"
    assert isinstance(error, HubUnavailableError)
    assert "check that the consumer group 'nope' exists" in str(error)


@ONLY_SIMULATED
@pytest.mark.parametrize("is_ready", [False, True], ids=["made", "ready"])
def test_one_that_exists_is_healthy_with_and_without_events(
    runs: Any, wait: Any, elapse: Any, is_ready: bool
) -> None:
    store, client = runs.stage.store(), runs.maker()
    if is_ready:
        client = client(checkpoint_store=store)
    run = runs.start(store, client, unhealthy_after=0.5)
    elapse(3)
    assert (run.seen.errors, run.processor.healthy()) == ([], True)
    runs.publish(1)
    wait(lambda: run.seen.has(0))
    assert (run.seen.errors, run.processor.healthy()) == ([], True)
    run.stop()
    if is_ready:
        runs.stage.finished(client.close())


def test_what_was_processed_before_is_not_missed(runs: Any, wait: Any, elapse: Any) -> None:
    store = runs.stage.store()
    runs.publish(3)
    first = runs.start(store)
    wait(lambda: runs.saved(store) == {"0": 2})
    first.stop()
    run = runs.start(store, unhealthy_after=0.5)
    elapse(3)
    assert (run.seen.errors, run.processor.healthy()) == ([], True)


@REAL_AIO
@pytest.mark.parametrize("is_ready", [False, True], ids=["made", "ready"])
def test_a_hub_that_does_not_exist_is_unhealthy(runs: Any, wait: Any, is_ready: bool) -> None:
    there = runs.hub.connection_string("orders")
    elsewhere = there.replace("EntityPath=orders", "EntityPath=nope")
    client = runs.maker(conn_str=elsewhere, retry_total=0, load_balancing_interval=0.4)
    store = runs.stage.store()
    if is_ready:
        client = client(checkpoint_store=store)
    run = runs.start(store, client, unhealthy_after=1)
    wait(lambda: run.seen.errors)
    wait(lambda: not run.processor.healthy())
    assert {partition_id for partition_id, _ in run.seen.errors} == {None}
    run.stop()
    if is_ready:
        runs.stage.finished(client.close())


@REAL_AIO
def test_a_hub_that_does_not_exist_is_unhealthy_once_it_is_reported(runs: Any, wait: Any) -> None:
    elsewhere = runs.hub.connection_string("orders").replace("=orders", "=nope")
    client = runs.maker(conn_str=elsewhere, retry_total=0)
    run = runs.start(runs.stage.store(), client, unhealthy_after=1e6)
    assert run.processor.healthy()
    wait(lambda: run.seen.errors)
    assert not run.processor.healthy()
    runs.hub.create("nope", 1)
    wait(lambda: run.seen.opened)
    wait(run.processor.healthy)
    runs.hub.delete("nope")


@REAL_AIO
def test_a_hub_that_never_answers_is_unhealthy_and_reported(runs: Any, wait: Any) -> None:
    runs.hub.delay(3600)
    run = runs.start(runs.stage.store(), unhealthy_after=0.5)
    wait(lambda: not run.processor.healthy())
    wait(lambda: run.seen.errors)
    ((partition_id, error),) = run.seen.errors
    assert (partition_id, type(error)) == (None, HubUnavailableError)
    assert "has not answered the client for" in str(error)
    runs.hub.delay(0)
    runs.hub.drop_connections()
    wait(lambda: run.seen.opened)
    wait(run.processor.healthy)


@REAL_AIO
def test_a_hub_that_does_not_exist_is_named(runs: Any, wait: Any) -> None:
    elsewhere = runs.hub.connection_string("orders").replace("=orders", "=nope")
    client = runs.maker(conn_str=elsewhere, retry_total=0)
    run = runs.start(runs.stage.store(), client)
    wait(lambda: run.seen.errors)
    error = run.seen.errors[0][1]
    assert isinstance(error, ConfigurationError)
    assert str(error) == f"{runs.hub.host}:{runs.hub.port} has no event hub 'nope'"
    assert isinstance(error.__cause__, EventHubError)


@REAL_AIO
def test_a_wrong_key_is_told_with_the_hub_and_what_to_check(runs: Any, wait: Any) -> None:
    runs.hub.refuse_tokens()
    run = runs.start(runs.stage.store(), runs.maker(retry_total=0))
    wait(lambda: run.seen.errors)
    error = run.seen.errors[0][1]
    assert isinstance(error, ConfigurationError)
    assert "refuses access to event hub 'orders': wrong key" in str(error)


@REAL_AIO
def test_start_positions_by_partition_of_a_hub_that_does_not_exist(runs: Any) -> None:
    elsewhere = runs.hub.connection_string("orders").replace("=orders", "=nope")
    client = runs.maker(conn_str=elsewhere, retry_total=0)
    run = runs.make(runs.stage.store(), client, starting_position={"0": "-1"})
    with pytest.raises(ConfigurationError, match="has no event hub 'nope'"):
        run.start()


def test_an_event_that_is_on_its_way_is_not_missed(
    runs: Any, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = runs.stage.store()
    run = runs.start(store)
    asked: list[str] = []

    def once(validator: Any, partition_id: str) -> bool:
        asked.append(partition_id)
        return len(asked) == 1

    async def aio_once(validator: Any, partition_id: str) -> bool:
        return once(validator, partition_id)

    monkeypatch.setattr(position_validator.PositionValidator, "has_events", once)
    monkeypatch.setattr(aio_position_validator.PositionValidator, "has_events", aio_once)
    wait(lambda: len(asked) > 4)
    assert (run.seen.errors, run.processor.healthy()) == ([], True)
