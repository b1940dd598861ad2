"""The real client with a checkpoint per event, over a coalescing store."""

from typing import Any

import pytest

from eventhub_checkpoints import CoalescingCheckpointStore, MemoryCheckpointStore, aio, every
from eventhub_checkpoints.stores.memory.rows import MemoryRows

EVENTS = 500
ALL = ["0", "1"]


class Told(MemoryCheckpointStore):
    """Notes which rows are written, in the order of the backend."""

    def __init__(self, rows: MemoryRows, calls: list[tuple[str, str, Any]]) -> None:
        super().__init__(rows)
        self.calls = calls

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.calls.append(("write", checkpoint.partition_id, checkpoint.sequence_number))
        return super().write_checkpoint(checkpoint, seen)

    def try_claim(self, proposal: Any) -> Any:
        kind = "release" if proposal.is_release else "claim"
        self.calls.append((kind, proposal.partition_id, None))
        return super().try_claim(proposal)


class AioTold(aio.MemoryCheckpointStore):
    """The same, for asyncio."""

    def __init__(self, rows: MemoryRows, calls: list[tuple[str, str, Any]]) -> None:
        super().__init__(rows)
        self.calls = calls

    async def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.calls.append(("write", checkpoint.partition_id, checkpoint.sequence_number))
        return await super().write_checkpoint(checkpoint, seen)

    async def try_claim(self, proposal: Any) -> Any:
        kind = "release" if proposal.is_release else "claim"
        self.calls.append((kind, proposal.partition_id, None))
        return await super().try_claim(proposal)


class Wrapped:
    """Coalescing stores over the same rows, and what the backend was asked."""

    def __init__(self, is_aio: bool) -> None:
        self.rows = MemoryRows()
        self.calls: list[tuple[str, str, Any]] = []
        self._below: Any = AioTold if is_aio else Told
        self._kind: Any = aio.CoalescingCheckpointStore if is_aio else CoalescingCheckpointStore

    def store(self, **settings: Any) -> Any:
        return self._kind(self._below(self.rows, self.calls), every(**settings))

    def saved(self) -> dict[str, int]:
        rows = self.rows.raw("checkpoint").items()
        return {key: int(row["sequencenumber"]) for key, row in rows}


@pytest.fixture
def wrapped(site) -> Wrapped:
    return Wrapped(site.is_aio)


def test_a_checkpoint_per_event_is_few_writes_and_all_is_saved_before_the_release(
    site, wrapped, wait
) -> None:
    site.publish(EVENTS)
    consumer = site.start(wrapped.store(events=100, seconds=60))
    consumer.saves = lambda event: True
    wait(lambda: consumer.total == EVENTS * len(ALL))
    site.closed(consumer)
    assert consumer.events == {key: list(range(EVENTS)) for key in ALL}
    assert wrapped.saved() == dict.fromkeys(ALL, EVENTS - 1)
    for key in ALL:
        calls = [call for call in wrapped.calls if call[1] == key]
        writes = [number for kind, _, number in calls if kind == "write"]
        assert len(writes) <= EVENTS / 100 + 1
        assert writes == sorted(writes)
        assert calls.index(("write", key, EVENTS - 1)) < calls.index(("release", key, None))
    assert consumer.errors == []


def test_time_alone_saves_what_a_quiet_hub_has_delivered(site, wrapped, wait) -> None:
    consumer = site.start(wrapped.store(seconds=0.2))
    consumer.saves = lambda event: True
    wait(lambda: consumer.owned == set(ALL))
    site.publish(3)
    wait(lambda: wrapped.saved() == dict.fromkeys(ALL, 2))


def test_the_next_client_goes_on_exactly_where_the_first_one_stopped(site, wrapped, wait) -> None:
    site.publish(20)
    first = site.start(wrapped.store(events=1000, seconds=60))
    first.saves = lambda event: event.sequence_number < 13
    wait(lambda: first.total == 20 * len(ALL))
    site.closed(first)
    second = site.start(wrapped.store(events=1000, seconds=60))
    wait(lambda: second.total == 7 * len(ALL))
    assert second.events == {key: list(range(13, 20)) for key in ALL}


def test_what_a_newcomer_takes_over_was_saved_or_is_read_again(site, wrapped, wait) -> None:
    """A takeover is no release: the owner is not asked, and may not write what it has kept."""
    first = site.start(wrapped.store(events=10**6, seconds=60))
    first.saves = lambda event: True
    wait(lambda: first.owned == set(ALL))
    site.publish(20)
    wait(lambda: first.total == 20 * len(ALL))
    second = site.start(wrapped.store(events=10**6, seconds=60))
    second.saves = lambda event: True
    wait(lambda: len(first.owned) == len(second.owned) == 1)
    site.publish(20)
    wait(lambda: all({*range(40)} <= numbers for numbers in seen(first, second)))
    site.closed(first)
    site.closed(second)
    assert wrapped.saved() == dict.fromkeys(ALL, 39)


def seen(*consumers: Any) -> list[set[int]]:
    return [{one for each in consumers for one in list(each.events[key])} for key in ALL]
