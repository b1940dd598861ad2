"""A mirror follows a group from one store to another."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.errors import InvalidRecordError, StoreUnavailableError
from eventhub_checkpoints.operations.mirror import Mirror
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import Action, closed_with
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore

SCOPE = Scope("NS.servicebus.windows.net", "Orders", "$Default")


@pytest.fixture
def source() -> Iterator[MemoryCheckpointStore]:
    with MemoryCheckpointStore() as store:
        yield store


@pytest.fixture
def target() -> Iterator[MemoryCheckpointStore]:
    with MemoryCheckpointStore() as store:
        yield store


def save(store: Any, partition_id: str, number: int, *, force: bool = False) -> None:
    row = Position(number, f"{number}00").as_dict(SCOPE, partition_id)
    store.update_checkpoint(row, force=force)


def numbers(store: Any) -> dict[str, int]:
    rows = store.list_checkpoints(*SCOPE)
    return {row["partition_id"]: row["sequence_number"] for row in rows}


def test_a_pass_copies_what_the_source_has_more(source, target) -> None:
    save(source, "0", 5)
    save(source, "1", 7)
    save(target, "1", 3)
    mirror = Mirror(source, target, SCOPE)
    made = mirror.copy()
    assert (made.copied, made.error) == (["0", "1"], "")
    rows = [sorted(store.list_checkpoints(*SCOPE), key=str) for store in (source, target)]
    assert rows[0] == rows[1]
    assert mirror.copy().copied == []


def test_a_target_that_was_ahead_is_left_alone_until_the_source_has_passed_it(
    source, target
) -> None:
    save(source, "0", 5)
    save(target, "0", 9)
    mirror = Mirror(source, target, SCOPE)
    assert [step.action for step in mirror.copy().steps] == [Action.NEWER]
    save(source, "0", 12)
    mirror.copy()
    assert numbers(target) == {"0": 12}


def test_a_rewind_of_the_source_is_followed(source, target) -> None:
    save(source, "0", 9)
    mirror = Mirror(source, target, SCOPE)
    mirror.copy()
    save(source, "0", 4, force=True)
    made = mirror.copy()
    assert [step.action for step in made.steps] == [Action.REWIND]
    assert (made.copied, numbers(target)) == (["0"], {"0": 4})


def test_a_rewind_after_a_pass_that_found_both_equal_is_followed(source, target) -> None:
    save(source, "0", 9)
    save(target, "0", 9)
    mirror = Mirror(source, target, SCOPE)
    mirror.copy()
    save(source, "0", 4, force=True)
    mirror.copy()
    assert numbers(target) == {"0": 4}


def test_the_history_of_the_target_keeps_rewinds_but_not_every_copy(source, tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    with SqlCheckpointStore(url, create_tables=True) as target:
        mirror = Mirror(source, target, SCOPE)
        for number in (5, 7, 9):
            save(source, "0", number)
            mirror.copy()
        save(source, "0", 4, force=True)
        mirror.copy()
        kept = [(row["kind"], row["sequence_number"]) for row in target.list_history(*SCOPE)]
    assert sorted(kept) == [("checkpoint", 5), ("replaced", 9), ("rewind", 4)]


def test_a_store_of_another_package_can_be_the_target(source) -> None:
    target = InMemoryCheckpointStore()
    mirror = Mirror(source, target, SCOPE)
    for number in (9, 4):
        save(source, "0", number, force=True)
        assert mirror.copy().copied == ["0"]
        assert numbers(target) == {"0": number}


def test_a_rewind_is_not_followed_over_what_another_program_has_written(source, target) -> None:
    save(source, "0", 9)
    mirror = Mirror(source, target, SCOPE)
    mirror.copy()
    save(source, "0", 4, force=True)
    save(target, "0", 11)
    assert [step.action for step in mirror.copy().steps] == [Action.NEWER]
    assert numbers(target) == {"0": 11}


def test_a_rewind_that_another_program_overtakes_is_left_to_the_next_pass(source, target) -> None:
    save(source, "0", 9)
    mirror = Mirror(source, target, SCOPE)
    mirror.copy()
    save(source, "0", 4, force=True)
    replace = target.replace_checkpoint

    def overtaken(checkpoint: Any, stored: Any) -> bool:
        save(target, "0", 11)
        replaced: bool = replace(checkpoint, stored)
        return replaced

    target.replace_checkpoint = overtaken
    assert mirror.copy().copied == []
    assert numbers(target) == {"0": 11}


def test_a_new_mirror_does_not_follow_what_went_back_before_it(source, target) -> None:
    save(source, "0", 9)
    Mirror(source, target, SCOPE).copy()
    save(source, "0", 4, force=True)
    assert Mirror(source, target, SCOPE).copy().copied == []
    assert numbers(target) == {"0": 9}


def test_a_partition_with_a_live_owner_at_the_target_is_left_alone(source, target) -> None:
    save(source, "0", 9)
    target.claim_ownership([{**SCOPE.as_dict(), "partition_id": "0", "owner_id": "consumer"}])
    assert [step.action for step in Mirror(source, target, SCOPE).copy().steps] == [Action.OWNED]
    assert numbers(target) == {}


def test_a_partition_that_was_moved_away_is_not_copied(source, target) -> None:
    source.update_checkpoint(closed_with(Position(5)).as_dict(SCOPE, "0"))
    assert [step.action for step in Mirror(source, target, SCOPE).copy().steps] == [Action.CLOSED]


@pytest.mark.parametrize("away", ["source", "target"])
@pytest.mark.parametrize("call", ["list_checkpoints", "list_ownership", "update_checkpoint"])
def test_an_outage_of_either_store_is_reported_and_ridden_out(
    source, target, away: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(source, "0", 9)
    mirror = Mirror(source, target, SCOPE)

    def failing(*args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailableError("the server is away")

    with monkeypatch.context() as outage:
        outage.setattr({"source": source, "target": target}[away], call, failing)
        made = mirror.copy()
    is_read_only = (away, call) == ("source", "update_checkpoint")
    assert made.error == ("" if is_read_only else "the server is away")
    mirror.copy()
    assert numbers(target) == {"0": 9}


def test_a_position_that_the_target_cannot_store_does_not_keep_the_others_back(
    source, target, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(source, "0", 9)
    save(source, "1", 9)
    update = target.update_checkpoint

    def picky(row: Any, **kwargs: Any) -> None:
        if row["partition_id"] == "0":
            raise InvalidRecordError("offset", "é", "ASCII")
        update(row, **kwargs)

    monkeypatch.setattr(target, "update_checkpoint", picky)
    made = Mirror(source, target, SCOPE).copy()
    assert made.copied == ["1"]
    assert made.error.startswith("partition 0: offset is")


def test_a_mirror_runs_until_it_is_stopped(source, target) -> None:
    stopping = threading.Event()
    seen = []
    for made in Mirror(source, target, SCOPE).run(0.001, stopping):
        seen.append(made.copied)
        save(source, "0", len(seen))
        if len(seen) == 3:
            stopping.set()
    assert seen == [[], ["0"], ["0"]]
