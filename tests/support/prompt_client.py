"""The official client, made to look more often whether its links are open, and never to spin.

A `conftest.py` that imports `prompt_client` applies it to all tests of its folder.
"""

import asyncio
import time
from typing import Any

import pytest
from azure.eventhub._eventprocessor.event_processor import EventProcessor

from waiting import let_pass

POLL = 0.05
"""Seconds between two looks of the client, several of which it needs for each link.

Source: azure-eventhub 5.15.1, `_client_base.py` and `aio/_client_base_async.py`,
`_management_request` and `_open`.
"""
SHORTER = 0.005


class Clock:
    """The module `time` or `asyncio` as the client sees it."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def sleep(self, seconds: float, **kwargs: Any) -> Any:
        """Sleep for less time if this is the pause between two looks."""
        wait = self._module.sleep
        return wait(SHORTER if seconds == POLL else seconds, **kwargs)


class Consumers(dict[str, Any]):
    """The partitions of a sync client, which loops over them without a pause if there are none.

    Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `start`.
    """

    def items(self) -> Any:
        """Wait a moment if there are none: the loop would take the time of all other threads."""
        if not self:
            let_pass(SHORTER)
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
    monkeypatch.setattr("azure.eventhub._client_base.time", Clock(time))
    monkeypatch.setattr("azure.eventhub.aio._client_base_async.asyncio", Clock(asyncio))
