"""`Checkpoints`: what a store holds for a hub, and waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from eventhub_checkpoints._shared.settings import require, require_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eventhub_checkpoints.abilities import FullCheckpointStore

DEFAULT_GROUP = "$Default"
SECONDS = 10.0
PAUSE = 0.01
"""Seconds between two looks at the store."""


class Checkpoints:
    """Checkpoints of a hub, as they are stored at the time of each call.

    Calling the object returns them: `checkpoints() == {"0": 41}`.

    Args:
        store: synchronous; it may share its storage with an asyncio store.
        eventhub_name: of which hub, in any namespace.
    """

    def __init__(self, store: FullCheckpointStore, eventhub_name: str) -> None:
        self._store = store
        self._hub = eventhub_name

    def __call__(self, consumer_group: str = DEFAULT_GROUP) -> dict[str, int]:
        """Return the sequence number that is stored for each partition of a consumer group."""
        return self._by_group().get(consumer_group.lower(), {})

    def _by_group(self) -> dict[str, dict[str, int]]:
        groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for scope in self._store.list_scopes():
            if scope.eventhub_name.lower() == self._hub.lower():
                for row in self._store.list_checkpoints(*scope):
                    number = row["sequence_number"]
                    # A row of another SDK may have only an offset.
                    if number is not None:
                        groups[scope.consumer_group.lower()][row["partition_id"]] = number
        return groups

    def eventually(
        self,
        expected: Mapping[str, int] | Callable[[dict[str, int]], object],
        *,
        consumer_group: str = DEFAULT_GROUP,
        seconds: float = SECONDS,
    ) -> dict[str, int]:
        """Wait until the expected checkpoints are stored, and return them.

        Args:
            expected: sequence numbers by partition, such as `publish` returns; or a function of
                such a dict that returns whether it is the expected one.
            consumer_group: of which group.
            seconds: how long to wait.

        Raises:
            AssertionError: it did not happen in time; the message has what is stored.
            ConfigurationError: what is expected can never be stored, or `seconds` is no time.
            RuntimeError: it is called in an event loop, which it would block.
        """
        if _is_in_event_loop():
            raise RuntimeError(
                "checkpoints.eventually would block the event loop, and the consumer with it; use "
                "await checkpoints.aio_eventually(...)"
            )
        for stored in self._looks(expected, consumer_group, seconds):
            if stored is not None:
                return stored
            time.sleep(PAUSE)
        raise AssertionError(self._explanation(expected, consumer_group, seconds))

    async def aio_eventually(
        self,
        expected: Mapping[str, int] | Callable[[dict[str, int]], object],
        *,
        consumer_group: str = DEFAULT_GROUP,
        seconds: float = SECONDS,
    ) -> dict[str, int]:
        """Wait in the same way in a test of asyncio, without blocking the event loop.

        Raises:
            AssertionError, ConfigurationError: as for `eventually`.
        """
        for stored in self._looks(expected, consumer_group, seconds):
            if stored is not None:
                return stored
            await asyncio.sleep(PAUSE)
        raise AssertionError(self._explanation(expected, consumer_group, seconds))

    def _looks(
        self,
        expected: Mapping[str, int] | Callable[[dict[str, int]], object],
        consumer_group: str,
        seconds: float,
    ) -> Iterator[dict[str, int] | None]:
        """Yield the checkpoints if they are the expected ones, else None, until time is up."""
        is_expected = callable(expected) or (
            isinstance(expected, Mapping)
            and all(isinstance(partition_id, str) for partition_id in expected)
            and all(isinstance(number, int) for number in expected.values())
        )
        what = "a dict such as {'0': 41}, with the sequence number of each partition, or a function"
        require("expected", expected, is_expected, what)
        require_seconds("seconds", seconds, or_zero=True)
        deadline = time.monotonic() + seconds
        is_last = False
        while not is_last:
            # The last look is after the deadline, however long the pause before it took.
            is_last = time.monotonic() >= deadline
            stored = self(consumer_group)
            holds = expected(stored) if callable(expected) else stored == expected
            yield stored if holds else None

    def _explanation(self, expected: object, consumer_group: str, seconds: float) -> str:
        groups = self._by_group()
        stored = groups.pop(consumer_group.lower(), {})
        reason = "the function returned false" if callable(expected) else f"expected {expected}"
        text = (
            f"after {seconds:g} s the checkpoints of {self._hub} in consumer group "
            f"{consumer_group} are {stored}; {reason}"
        )
        if groups and not stored:
            text += f". Consumer groups with checkpoints: {', '.join(groups)}"
        elif not stored:
            text += ". Nothing is stored: does the client have the store of the fixture?"
        return text


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
