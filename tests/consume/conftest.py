"""Members of a group in threads, of either variant, and official clients beside them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from azure.eventhub import EventHubConsumerClient

from arrow_variants import (
    FAST,
    Kept,
    address,
    busy_hub,
    hub,
    kept_in,
    scope,
    server,
    text,
    variant,
)
from eventhub_checkpoints import HandoverStore, Scope, open_store
from waiting import LIMIT, eventually

__all__ = ["address", "busy_hub", "hub", "scope", "server", "text", "variant"]


@pytest.fixture
def kept(request: pytest.FixtureRequest, scope: Scope, tmp_path: Path) -> Iterator[Kept]:
    """In memory, unless `STORES` marks the test."""
    kept = kept_in(getattr(request, "param", "memory"), request, scope, tmp_path)
    with kept.held:
        yield kept


class Member:
    """A call of `consume_batches` and the loop over it, in a thread.

    Args:
        variant: sync or aio.
        hub: the hub, as `consume_batches` accepts it.
        store: of the group.
        commits: whether each batch is committed.
        at_loss: whether `on_lost` commits.
        settings: further arguments.

    Attributes:
        log: in order, `("assigned", id)`, `("batch", id, numbers)`, `("saved", positions, lost)`
            and `("lost", id)`.
        gate: while it is not set, the loop takes no batch.
        error: what has ended the loop.
    """

    def __init__(
        self,
        variant: Any,
        hub: Any,
        store: Any,
        *,
        commits: bool = True,
        at_loss: bool = False,
        **settings: Any,
    ) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self._commits, self._at_loss = commits, at_loss
        hooks = {"on_assigned": self._assigned, "on_lost": self._lost}
        if at_loss and variant.is_async:
            hooks["on_lost"] = self._lost_in_loop
        self.batches = variant.consume_batches(hub, store=store, **FAST | hooks | settings)
        self._inner = variant.inner(self.batches)
        self._thread = threading.Thread(target=self._run, name="member", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            for batch in self.batches:
                (partition,) = set(batch.column("partition").to_pylist())
                self.log.append(("batch", partition, batch.column("sequenceNumber").to_pylist()))
                if self._commits:
                    self.commit()
                assert self.gate.wait(LIMIT)
        except Exception as error:
            self.error = error

    def commit(self) -> None:
        saved = self.batches.commit()
        self.log.append(("saved", saved, self.batches.lost))

    def _assigned(self, partition: str) -> None:
        self.log.append(("assigned", partition))

    def _lost(self, partition: str) -> None:
        self.log.append(("lost", partition))
        if self._at_loss:
            self.commit()

    async def _lost_in_loop(self, partition: str) -> None:
        self.log.append(("lost", partition))
        saved = await self._inner.commit()
        self.log.append(("saved", saved, self._inner.lost))

    def of(self, kind: str) -> list[Any]:
        """Return what the entries of a kind have after it, in order."""
        return [entry[1:] for entry in [*self.log] if entry[0] == kind]

    def numbers(self, partition: str) -> list[int]:
        """Return the sequence numbers that came of a partition, in order."""
        return [number for each, row in self.of("batch") for number in row if each == partition]

    @property
    def count(self) -> int:
        """Return how many events came."""
        return sum(len(row) for _, row in self.of("batch"))

    @property
    def held(self) -> set[str]:
        """Return the partitions that were assigned and not lost since."""
        held: set[str] = set()
        for kind, *rest in [*self.log]:
            if kind == "assigned":
                held.add(rest[0])
            elif kind == "lost":
                held.discard(rest[0])
        return held

    def stop(self) -> None:
        """Leave the group, and end the loop."""
        self.gate.set()
        self.batches.close()
        if self._thread.ident is not None:
            self._thread.join(LIMIT)
            assert not self._thread.is_alive()


class Official:
    """The official client in a thread, which saves after each batch.

    Args:
        text: connection string of the hub.
        kept: where the group keeps its checkpoints.
        handover: whether it asks for partitions instead of taking them.
        settings: of the client.
    """

    def __init__(self, text: str, kept: Kept, *, handover: bool = False, **settings: Any) -> None:
        self.numbers: dict[str, list[int]] = {}
        self._own = open_store(kept.url)
        store: Any = self._own
        interval, expires = 0.2, LIMIT
        if handover:
            store = HandoverStore(store, expires_after=expires)
        self._client = EventHubConsumerClient.from_connection_string(
            text,
            "$Default",
            checkpoint_store=store,
            load_balancing_interval=interval,
            partition_ownership_expiration_interval=expires,
            **settings,
        )
        self._thread = threading.Thread(target=self._receive, name="receive-official", daemon=True)
        self._thread.start()

    def _receive(self) -> None:
        # While events come one by one, it waits for so many.
        self._client.receive_batch(
            self._received, prefetch=30, starting_position="-1", owner_level=0
        )

    def _received(self, context: Any, events: list[Any]) -> None:
        if events:
            found = self.numbers.setdefault(context.partition_id, [])
            found += [event.sequence_number for event in events]
            context.update_checkpoint(events[-1])

    def stop(self) -> None:
        eventually(self._is_stopped)
        self._own.close()

    def _is_stopped(self) -> bool:
        # Before it begins to receive, a close has no effect.
        self._client.close()
        return not self._thread.is_alive()


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is closed after the test, the last first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def member(variant: Any, address: Any, kept: Kept, opened: ExitStack) -> Callable[..., Member]:
    """Makes members of one group, which are stopped after the test."""

    def make(*, hub: Any = address, store: Any = kept.url, **settings: Any) -> Member:
        made = Member(variant, hub, store, **settings)
        opened.callback(made.stop)
        return made

    return make


@pytest.fixture
def official(text: str, kept: Kept, opened: ExitStack) -> Callable[..., Official]:
    """Makes official clients of the same group."""

    def make(**settings: Any) -> Official:
        made = Official(text, kept, **settings)
        opened.callback(made.stop)
        return made

    return make
