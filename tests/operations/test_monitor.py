"""Polling in the background: what is shared, what is unknown, and what recovers."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreUnavailableError,
)
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.monitor import Monitor, PolledGroup
from eventhub_checkpoints.operations.states import State
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT, eventually

SIGNATURE = "SharedAccessSignature sr=orders&sig=c2ln&se=1&skn=name"


class CountingAddress(HubAddress):
    """Counts how often the hub is queried."""

    opened: list[str] = []  # noqa: RUF012 - one list for the test, emptied by the fixture

    def open_queries(self):
        self.opened.append(str(self))
        return super().open_queries()


class Store:
    """Store that can be told to fail or to hang; counts its lists."""

    lists = 0
    failure: Exception | None = None
    gate: threading.Event | None = None

    def __init__(self, store: SqlCheckpointStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def list_checkpoints(self, *scope, **options):
        self.lists += 1
        if self.gate:
            self.gate.wait()
        if self.failure:
            raise self.failure
        return self.store.list_checkpoints(*scope, **options)


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 2}) as running:
        running.publish("orders", "0", [b"event"] * 20, enqueued_time=time.time() - 100)
        yield running


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with SqlCheckpointStore(f"sqlite:///{tmp_path}/checkpoints.db", create_tables=True) as opened:
        yield Store(opened)


@pytest.fixture
def polled(hub, store) -> PolledGroup:
    CountingAddress.opened.clear()
    address = CountingAddress.from_connection_string(hub.connection_string("orders"))
    return PolledGroup(store, address, timeout=LIMIT)


def of_group(polled: PolledGroup, name: str) -> PolledGroup:
    return replace(polled, hub=replace(polled.hub, consumer_group=name))


def test_groups_of_a_hub_share_the_properties_of_its_partitions(polled, store) -> None:
    other = of_group(polled, "other")
    with Monitor([polled, other], interval=60) as monitor:
        eventually(lambda: all(status.polls == 1 for status in monitor.statuses))
        for _ in range(20):
            assert [status.newest.lag for status in monitor.statuses] == [20, 20]
    assert len(CountingAddress.opened) == 1
    assert store.lists == 2


def test_the_first_unprocessed_event_is_read(polled) -> None:
    with Monitor([replace(polled, has_seconds=True)], interval=60) as monitor:
        eventually(lambda: monitor.statuses[0].polls)
        first, second = monitor.statuses[0].newest.partitions
    assert first.lag_seconds is not None
    assert first.lag_seconds >= 100
    assert second.lag_seconds == 0


def test_an_event_that_cannot_be_read_leaves_the_lag_in_events(hub, polled) -> None:
    # A receiver with an owner level, without a row in the store.
    client = polled.hub.open_client()
    receiving = threading.Thread(
        target=client.receive,
        args=(lambda _context, _event: None,),
        kwargs={"partition_id": "0", "owner_level": 0, "starting_position": "-1"},
    )
    receiving.start()
    try:
        eventually(lambda: hub.receivers("orders"))
        with Monitor([replace(polled, has_seconds=True)], interval=60) as monitor:
            eventually(lambda: monitor.statuses[0].polls)
            newest = monitor.statuses[0].newest
    finally:
        client.close()
        receiving.join()
    assert [each.lag_seconds for each in newest.partitions] == [None, 0.0]
    assert newest.lag == 20


def test_what_cannot_be_read_is_unknown_until_it_can(polled, store, caplog) -> None:
    scope = polled.scope
    with Monitor([polled], interval=0.1, fresh=LIMIT) as monitor:
        eventually(lambda: not monitor.status(scope).error)
        store.failure = StoreUnavailableError("the store is away")
        eventually(lambda: monitor.status(scope).error)
        with pytest.raises(CheckpointStoreError, match=r"is unknown: the store is away"):
            assert monitor.status(scope).newest
        with pytest.raises(CheckpointStoreError, match=r"is unknown: the store is away"):
            monitor.status(scope).demand()
        failed = monitor.status(scope)
        assert 0 < failed.failures < failed.polls
        store.failure = ZeroDivisionError("AccountKey=c2VjcmV0; in no document")
        eventually(lambda: "ZeroDivisionError" in monitor.status(scope).error)
        assert "c2VjcmV0" not in monitor.status(scope).error
        store.failure = None
        eventually(lambda: not monitor.status(scope).error)
        assert monitor.status(scope).newest.lag == 20
        assert monitor.is_alive
    assert "the store is away" in caplog.text
    assert "is known again" in caplog.text


def test_a_store_that_fails_does_not_hide_the_groups_of_another(polled, store, tmp_path) -> None:
    store.failure = StoreUnavailableError("the store is away")
    with SqlCheckpointStore(f"sqlite:///{tmp_path}/other.db", create_tables=True) as other:
        groups = [polled, replace(of_group(polled, "other"), store=other)]
        with Monitor(groups, interval=60) as monitor:
            eventually(lambda: all(status.polls for status in monitor.statuses))
            assert [bool(status.error) for status in monitor.statuses] == [True, False]


def test_a_poll_that_hangs_makes_the_last_sample_unknown(polled, store) -> None:
    with Monitor([polled], interval=0.1, fresh=1.0) as monitor:
        eventually(lambda: not monitor.statuses[0].error)
        store.gate = threading.Event()
        eventually(lambda: "the next one has not ended" in monitor.statuses[0].error)
        store.gate.set()
        eventually(lambda: not monitor.statuses[0].error)


def test_a_store_that_hangs_is_unknown_after_the_timeout(polled, store, monkeypatch) -> None:
    store.gate = threading.Event()
    # The same time limits the queries to the hub, which may be slower on a busy machine.
    monkeypatch.setattr(
        "eventhub_checkpoints.operations.monitor.partition_properties", lambda *_, **__: {}
    )
    with Monitor([replace(polled, timeout=0.1)], interval=60) as monitor:
        eventually(lambda: monitor.statuses[0].polls)
        assert "the store gave no answer" in monitor.statuses[0].error
        store.gate.set()


def test_before_the_first_poll_nothing_is_known(polled, store) -> None:
    store.gate = threading.Event()
    with Monitor([polled], interval=60) as monitor:
        with pytest.raises(CheckpointStoreError, match="it has not been read yet"):
            monitor.status(polled.scope).demand()
        store.gate.set()


def test_states_come_from_a_window_of_samples(polled, store) -> None:
    row = {**polled.scope.as_dict(), "partition_id": "0"}
    store.update_checkpoint({**row, "offset": "4", "sequence_number": 4})
    store.claim_ownership([{**row, "owner_id": "me"}])
    with Monitor([polled], interval=0.1) as monitor:
        eventually(lambda: monitor.statuses[0].polls)
        assert monitor.statuses[0].states["1"] is State.UNOWNED
        eventually(lambda: monitor.statuses[0].states["0"] is State.STOP)


def test_a_waiting_reader_learns_of_a_poll_and_of_the_end(polled) -> None:
    with Monitor([polled], interval=0.1) as monitor:
        version = monitor.wait(-1, LIMIT)
        later = monitor.wait(version, LIMIT)
        assert later > version
        assert not monitor.is_stopped
    assert monitor.is_stopped
    assert monitor.wait(monitor.wait(-1, 0), LIMIT) > 0  # returns at once
    eventually(lambda: not monitor.is_alive)


def test_groups_are_found_by_any_of_their_names(polled) -> None:
    address = HubAddress.from_credential("NS.servicebus.windows.net", "Payments", SIGNATURE)
    payments = replace(polled, hub=replace(address, consumer_group="Billing"))
    monitor = Monitor([polled, of_group(polled, "other"), payments])
    assert len(monitor.find()) == 3
    assert len(monitor.find(eventhub="ORDERS")) == 2
    assert [scope.consumer_group for scope in monitor.find(consumer_group="OTHER")] == ["other"]
    for namespace in ("ns", "ns.servicebus.windows.net"):
        assert monitor.find(namespace=namespace) == [payments.scope]
    assert monitor.find("ns", "orders") == []


def test_a_group_that_is_named_twice_is_refused(polled) -> None:
    with pytest.raises(ConfigurationError, match="is named twice"):
        Monitor([of_group(polled, "other"), of_group(polled, "OTHER")])
    with pytest.raises(ConfigurationError, match="pass one group or more"):
        Monitor([])


def test_a_group_that_appears_later_is_polled_with_its_hub(polled) -> None:
    other = of_group(polled, "other")
    found = [polled]
    with Monitor([polled], interval=0.1, fresh=LIMIT, find=lambda: found) as monitor:
        eventually(lambda: monitor.statuses[0].polls)
        assert len(monitor.statuses) == 1
        found.append(other)
        eventually(lambda: len(monitor.statuses) == 2)
        eventually(lambda: not monitor.status(other.scope).error)
        assert monitor.find(consumer_group="other") == [other.scope]
        assert not monitor.add(other)
    eventually(lambda: not monitor.is_alive)


def test_a_group_of_another_hub_gets_its_own_thread(polled, hub) -> None:
    of_absent = hub.connection_string("orders").replace("EntityPath=orders", "EntityPath=absent")
    address = CountingAddress.from_connection_string(of_absent)
    absent = replace(polled, hub=address, timeout=0.5)
    with Monitor([polled], interval=0.1, fresh=LIMIT) as monitor:
        assert monitor.add(absent)
        eventually(lambda: monitor.status(absent.scope).failures)
        eventually(lambda: not monitor.status(polled.scope).error)


@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), RuntimeError("no answer")])
def test_a_search_for_groups_that_fails_is_said_once_and_repeated(polled, caplog, error) -> None:
    searches = []

    def find() -> list[PolledGroup]:
        searches.append(1)
        raise error

    with Monitor([polled], interval=0.02, fresh=LIMIT, find=find) as monitor:
        eventually(lambda: len(searches) > 2)
        assert monitor.is_alive
    assert caplog.text.count("groups that are new were not found") == 1


def test_every_poll_is_observed(polled) -> None:
    observed = []
    with Monitor([polled], interval=0.1, observe=observed.append) as monitor:
        eventually(lambda: len(observed) > 1)
        assert [status.polls for status in observed[:2]] == [1, 2]
        assert observed[0].window[-1].lag == 20
        assert monitor.is_alive
