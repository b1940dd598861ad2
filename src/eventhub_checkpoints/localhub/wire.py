"""Outgoing side of a connection, with an optional injected delay."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventhub_checkpoints.localhub.faults import Faults


class Wire:
    """Writer to a transport, immediate or delayed, always in order.

    A delay adds latency and does not limit throughput: any number of writes may be pending.
    """

    def __init__(self, transport: asyncio.Transport, faults: Faults) -> None:
        self._transport = transport
        self._faults = faults
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[float, bytes | None]] = deque()
        self._closed = False

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._faults.delay or self._held:
            self._hold(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the transport after everything written so far."""
        self._closed = True
        if self._held:
            self._hold(None)
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the transport at once and discard pending writes."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self._closed or self._transport.is_closing()

    def _hold(self, data: bytes | None) -> None:
        last = self._held[-1][0] if self._held else 0.0
        due = max(last, self._loop.time() + self._faults.delay)
        self._held.append((due, data))
        if len(self._held) == 1:
            self._loop.call_at(due, self._release)

    def _release(self) -> None:
        # The clock may be slightly behind the timer that called.
        now = max(self._loop.time(), self._held[0][0])
        while self._held and self._held[0][0] <= now:
            _, data = self._held.popleft()
            if data is None:
                self._transport.close()
            elif not self._transport.is_closing():
                self._transport.write(data)
        if self._held:
            self._loop.call_at(self._held[0][0], self._release)
