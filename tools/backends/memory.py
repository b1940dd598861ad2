"""Memory of this process: no server, and unreachable for other processes."""

import uuid
from typing import Any, Self

from backends.base import Backend, Fields, Kind, Place
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows, rows_named


class MemoryPlace(Place):
    """Rows under a name."""

    def __init__(self) -> None:
        name = f"test-{uuid.uuid4().hex}"
        self.url = f"memory:{name}"
        self.shared: MemoryRows = rows_named(name)

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        self.shared.put_raw(kind, scope, partition_id, fields)

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        return self.shared.raw(kind)

    def vanish(self) -> None:
        for scope in self.shared.scopes():
            self.shared.delete(scope, None)

    def drop(self) -> None:
        self.vanish()


class Memory(Backend):
    """Backend without a server."""

    name = "memory"
    lacks = ("stall",)
    reaches_processes = False

    def install(self) -> str:
        return "this process"

    def start(self) -> Self:
        return self

    def stop(self) -> None:
        pass

    def place(self) -> MemoryPlace:
        return MemoryPlace()

    def accessors(self, place: Place) -> Accessors:
        assert isinstance(place, MemoryPlace)
        rows = place.shared

        def shift_clock(seconds: float) -> None:
            rows.clock_shift = seconds

        return Accessors(put_raw=place.put_raw, shift_clock=shift_clock)
