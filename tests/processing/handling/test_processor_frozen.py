"""A stop while the storage is frozen: partitions stop side by side, within the documented sum."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends import Place
from backends.redis import LocalRedis
from eventhub_checkpoints import every

pytestmark = [pytest.mark.long, pytest.mark.waits]
Wait = Callable[..., Any]
HUB_PARTITIONS = 8
PARTITIONS = [str(number) for number in range(HUB_PARTITIONS)]
TIMEOUT = 2.5
CLIENT = 9.0
"""Seconds that a client needs for itself to close eight partitions on a busy machine."""


@pytest.fixture
def server() -> Iterator[LocalRedis]:
    with LocalRedis() as running:
        yield running


@pytest.fixture
def place(server: LocalRedis) -> Iterator[Place]:
    with server.place() as created:
        yield created
        server.resume()


@pytest.mark.parametrize(
    ("variant", "has_rest"),
    [
        pytest.param("aio", False, id="aio-nothing in work"),
        pytest.param("sync", True, id="sync-all unsaved"),
    ],
    indirect=["variant"],
)
def test_a_frozen_storage_holds_a_stop_no_longer_than_its_limits(
    site: Any, wait: Wait, place: Place, server: LocalRedis, has_rest: bool
) -> None:
    settings = {"operation_timeout": 2 * TIMEOUT, "write_timeout": TIMEOUT}
    opened = place.open("aio" if site.is_aio else "sync", **settings)
    store = site.stage.recorded(opened)
    for partition_id in PARTITIONS:
        site.publish(3, partition_id)
    policy = every(events=10**6 if has_rest else 1)
    run = site.started(store, policy=policy, drain_timeout=1, write_timeout=TIMEOUT)
    wait(lambda: all(len(run.deeds.numbers(partition_id=key)) == 3 for key in PARTITIONS))
    if not has_rest:
        wait(lambda: all(store.saved[key][-1:] == [2] for key in PARTITIONS))
    server.pause()
    began = time.monotonic()
    run.call("stop")
    took = time.monotonic() - began
    server.resume()
    site.loop.finished(opened.close())
    assert took < 4 * TIMEOUT + CLIENT
    assert sorted(entry[1] for entry in run.deeds.log if entry[0] == "close ended") == PARTITIONS
