"""The official client, made to look more often at its links, and never to spin.

A `conftest.py` that imports `prompt_client` applies it to all tests of its folder.
"""

import asyncio
import threading
import time
from typing import Any

import pytest
from azure.eventhub._eventprocessor.event_processor import EventProcessor

from simulated_time import is_running
from waiting import LIMIT, let_pass

PAUSES = {0.05: 0.005, 1: 0.02}
"""Seconds between two looks of the client, and those that tests replace them by.

It needs several of the first for each link that it opens. The others are at its end: `close` waits
for `_keep_alive`, which looks whether the client is closed, and `stop` looks whether an aio client
has closed its partitions.

Source: azure-eventhub 5.15.1, `_management_request` and `_open` in `_client_base.py` and
`aio/_client_base_async.py`; `_keep_alive` in `_pyamqp/client.py`, `_keep_alive_async` in
`_pyamqp/aio/_client_async.py`; `stop` in `aio/_eventprocessor/event_processor.py`.
"""
MODULES = {
    "azure.eventhub._client_base.time": time,
    "azure.eventhub._pyamqp.client.time": time,
    "azure.eventhub.aio._client_base_async.asyncio": asyncio,
    "azure.eventhub._pyamqp.aio._client_async.asyncio": asyncio,
    "azure.eventhub.aio._eventprocessor.event_processor.asyncio": asyncio,
}
"""What sleeps, by where the client has it."""


class Clock:
    """The module `time` or `asyncio` as the client sees it."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def sleep(self, seconds: float, **kwargs: Any) -> Any:
        """Sleep for less time if this is a pause between two looks, and takes real time."""
        wait = self._module.sleep
        return wait(seconds if is_running() else PAUSES.get(seconds, seconds), **kwargs)


class Consumers(dict[str, Any]):
    """The partitions of a sync client, which loops over them without a pause if there are none.

    Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `start`.
    """

    def items(self) -> Any:
        """Wait a moment if there are none: the loop would take the time of all other threads."""
        if not self:
            let_pass(min(PAUSES.values()))
        return super().items()


def made_patient(self: EventProcessor, *args: Any, **kwargs: Any) -> None:
    """Take the place of `__init__`."""
    make(self, *args, **kwargs)
    self._consumers = Consumers()


make = EventProcessor.__init__


@pytest.fixture(autouse=True)
def prompt_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of a hub on this machine come within milliseconds: do not wait 0.35 s for each."""
    monkeypatch.setattr(EventProcessor, "__init__", made_patient)
    for path, module in MODULES.items():
        monkeypatch.setattr(path, Clock(module))


THREADS = ("receive-", "_load_balancing")


def wait_for_clients() -> None:
    """Wait for connections that are closed in the background: they must not meet a stopped hub."""
    for thread in threading.enumerate():
        if any(name in thread.name for name in THREADS):
            thread.join(LIMIT)
