"""Lag in seconds: which events are read for it, how often, and what stays unknown."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from eventhub_checkpoints.errors import HubUnavailableError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag, lag
from eventhub_checkpoints.operations.lag_seconds import (
    EnqueuedTimes,
    KnownEvent,
    enqueued_time,
    readable,
    with_seconds,
)
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
POSITION = PartitionLag("0", 0, 19, 4, "4", 15, 0, 1.0, "", None)
LONG_AGO = 1_700_000_000


def sample(*positions: PartitionLag) -> GroupLag:
    return GroupLag(SCOPE, LONG_AGO + 100.0, positions, [])


def test_the_events_of_a_live_owner_need_another_group() -> None:
    owned = replace(POSITION, partition_id="1", owner_id="me")
    following = replace(POSITION, partition_id="2", lag=0)
    unknown = replace(POSITION, partition_id="3", lag=None)
    group = sample(POSITION, owned, following, unknown)
    assert readable(group, "$default") == [POSITION]
    assert readable(group, "peek") == [POSITION, owned]


def test_seconds_are_the_age_of_the_event_zero_or_unknown() -> None:
    positions = [
        POSITION,
        replace(POSITION, partition_id="1"),
        replace(POSITION, partition_id="2", lag=0),
        replace(POSITION, partition_id="3", lag=None),
    ]
    found = with_seconds(sample(*positions), {"0": LONG_AGO})
    assert [each.lag_seconds for each in found.partitions] == [100.0, None, 0.0, None]
    # The hub's clock may be ahead.
    [ahead] = with_seconds(sample(POSITION), {"0": LONG_AGO + 101}).partitions
    assert ahead.lag_seconds == 0.0


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, True),
        ({"last": 29, "lag": 25}, True),  # more events
        ({"checkpoint": 5, "lag": 14}, False),
        ({"begin": 10, "lag": 10, "lost": 5}, False),  # it has expired
        ({"checkpoint": None, "last": 9, "lag": 5}, False),  # re-created
        ({"last": 9, "lag": 5}, False),  # re-created, too
        ({"lag": 0}, False),
    ],
)
def test_an_event_is_remembered_while_it_is_the_first_unprocessed_one(change, stays) -> None:
    known = KnownEvent(4, 5, 19, LONG_AGO)
    assert known.is_that_of(replace(POSITION, **change)) is stays


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    """A hub with 20 events in each of two partitions, one second apart."""
    with LocalHub({"orders": 2}) as running:
        for partition_id in "01":
            for number in range(20):
                time_ = LONG_AGO + number
                running.publish("orders", partition_id, [b"event"], enqueued_time=time_)
        yield running


@pytest.fixture
def address(hub: LocalHub) -> HubAddress:
    return HubAddress.from_connection_string(hub.connection_string("orders"))


def test_each_event_is_read_once(hub, address) -> None:
    first, second = POSITION, replace(POSITION, partition_id="1", checkpoint=9, lag=10)
    times = EnqueuedTimes()
    assert times.read(address, [first, second]) == {"0": LONG_AGO + 5, "1": LONG_AGO + 10}
    hub.stop()
    assert times.read(address, [first, second]) == {"0": LONG_AGO + 5, "1": LONG_AGO + 10}
    moved = replace(second, checkpoint=11, lag=8)
    with pytest.raises(HubUnavailableError):
        times.read(address, [first, moved], timeout=0.5)
    assert times.known == {"0": LONG_AGO + 5}
    hub.start()
    assert times.read(address, [moved]) == {"1": LONG_AGO + 12}


def test_an_event_that_has_expired_is_followed_by_the_first_retained_one(hub, address) -> None:
    hub.trim("orders", "0", 8)
    assert enqueued_time(address, "0", 5, timeout=LIMIT) == LONG_AGO + 8


def test_a_partition_without_such_an_event_is_named(address) -> None:
    with pytest.raises(HubUnavailableError, match=r"partition 0 .* no event from .* 20 on"):
        enqueued_time(address, "0", 20, timeout=0.3)


def test_a_checkpoint_that_is_newer_than_the_properties_is_not_that_of_a_new_hub(
    hub, address, tmp_path, monkeypatch
) -> None:
    read = threading.Event()

    def properties(*arguments: Any, **options: Any) -> Any:
        found = partition_properties(*arguments, **options)
        read.set()
        return found

    # By its name, the package has the function.
    module = import_module("eventhub_checkpoints.operations.lag")
    monkeypatch.setattr(module, "partition_properties", properties)

    class Late(SqlCheckpointStore):
        """Lists checkpoints while a consumer reads on, when the properties have been read."""

        def read_checkpoints(self, scope):
            assert read.wait(LIMIT)
            hub.publish("orders", "0", [b"event"] * 10)
            row = {"partition_id": "0", "offset": "25", "sequence_number": 25}
            self.update_checkpoint({**address.scope().as_dict(), **row})
            return super().read_checkpoints(scope)

    with Late(f"sqlite:///{tmp_path}/checkpoints.db", create_tables=True) as store:
        found = lag(store, address)
    assert [(each.is_gone, each.lag) for each in found.partitions] == [(False, 4), (False, 20)]
