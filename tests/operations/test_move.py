"""A group moves from one store to another, and is killed at every call of a store."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore
from eventhub_checkpoints.errors import StoreError, StoreUnavailableError
from eventhub_checkpoints.operations.change import GroupActiveError
from eventhub_checkpoints.operations.fence import Fence
from eventhub_checkpoints.operations.groups import FENCE
from eventhub_checkpoints.operations.move import Move, Stage, stage_of
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import CLOSED_WAITING, closed_with
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore
from killed_calls import KilledError, Killer

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
IDS = ["0", "1", "2"]
START = {"0": Position(15, "1500"), "1": Position(4)}
"""Partition 2 has no checkpoint."""


class Group:
    """The rows of the group in one store, and what its consumers do."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.store = MemoryCheckpointStore.from_url(f"memory:{name}")

    def open(self) -> MemoryCheckpointStore:
        """Another store on the same rows, as another process has."""
        return MemoryCheckpointStore.from_url(f"memory:{self.name}")

    def positions(self) -> dict[str, Position]:
        rows = self.open().list_checkpoints(*SCOPE)
        return {row["partition_id"]: Position.of(row) for row in rows}

    def owners(self) -> dict[str, str]:
        rows = self.open().list_ownership(*SCOPE)
        return {row["partition_id"]: row["owner_id"] for row in rows}

    def save(self, partition_id: str, position: Position) -> None:
        self.open().update_checkpoint(position.as_dict(SCOPE, partition_id))

    def own(self, partition_id: str, owner_id: str) -> None:
        store = self.open()
        rows = {row["partition_id"]: row for row in store.list_ownership(*SCOPE)}
        etag = rows.get(partition_id, {}).get("etag")
        row = {**SCOPE.as_dict(), "partition_id": partition_id, "owner_id": owner_id, "etag": etag}
        assert store.claim_ownership([row])


@pytest.fixture
def groups(request: pytest.FixtureRequest) -> Iterator[tuple[Group, Group]]:
    """The group where it is, and where it goes."""
    name = request.node.name
    old, new = Group(f"{name}-old"), Group(f"{name}-new")
    with ExitStack() as opened:
        for each in (old, new):
            opened.enter_context(each.store)
        yield old, new


def filled(old: Group) -> None:
    for partition_id, position in START.items():
        old.save(partition_id, position)


def mover(old: Group, new: Group, killer: Killer | None = None, **settings: Any) -> Move:
    source, target = old.open(), new.open()
    if killer is not None:
        killer.guards(source)
        killer.guards(target)
    return Move(source, target, SCOPE, IDS, **{"settle": 0.0, **settings})


def run(move: Move) -> list[Any]:
    return list(move.run(0.001, threading.Event()))


def test_a_group_is_moved_with_its_positions(groups: tuple[Group, Group]) -> None:
    old, new = groups
    filled(old)
    passes = run(mover(old, new))
    assert passes[-1].is_done
    assert new.positions() == START
    assert set(new.owners().values()) <= {""}
    assert all(position.is_closed for position in old.positions().values())
    assert set(old.positions()) == set(IDS)
    assert all(owner.startswith(FENCE) for owner in old.owners().values())


def test_a_move_that_is_done_is_done_again_without_a_change(groups) -> None:
    old, new = groups
    filled(old)
    run(mover(old, new))
    new.own("0", "consumer")
    new.save("0", Position(20, "2000"))
    assert len(run(mover(old, new))) == 1
    assert new.positions() == {**START, "0": Position(20, "2000")}
    assert new.owners()["0"] == "consumer"


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_move_that_is_killed_at_every_call_never_opens_both_stores(
    groups: tuple[Group, Group], is_answered: bool
) -> None:
    old, new = groups
    filled(old)

    prepared: set[str] = set()

    def at_most_one_is_open() -> None:
        here, there = old.positions(), new.positions()
        prepared.update(id_ for id_, position in there.items() if position.is_closed)
        for id_ in prepared:
            both = here.get(id_), there.get(id_)
            assert any(position is not None and position.is_closed for position in both), both

    kills, last = 0, 0
    while True:
        last += 1
        killer = Killer(last, is_answered=is_answered, watch=at_most_one_is_open)
        try:
            run(mover(old, new, killer, expires_after=0.001))
        except KilledError:
            kills += 1
            at_most_one_is_open()
            continue
        break
    assert kills > 15
    assert prepared == set(IDS)
    assert new.positions() == START
    assert all(position.is_closed for position in old.positions().values())
    assert set(new.owners().values()) <= {""}


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_move_continues_after_one_kill_at_any_call(
    request: pytest.FixtureRequest, is_answered: bool
) -> None:
    last = 0
    while True:
        last += 1
        name = f"{request.node.name}-{last}"
        old, new = Group(f"{name}-old"), Group(f"{name}-new")
        with old.store, new.store:
            filled(old)
            killer = Killer(last, is_answered=is_answered)
            try:
                run(mover(old, new, killer))
            except KilledError:
                run(mover(old, new))
                assert new.positions() == START
                continue
            break
    assert last > 25


def test_a_late_checkpoint_of_the_old_store_is_moved_too(groups) -> None:
    old, new = groups
    filled(old)
    old.own("0", "consumer")
    move = mover(old, new, settle=60.0)
    while [each.stage for each in move.advance()] != [Stage.PREPARED, Stage.DONE, Stage.DONE]:
        pass
    assert old.owners()["0"].startswith(FENCE)
    old.save("0", Position(17, "1700"))
    move._settle = 0.0
    run(move)
    assert new.positions()["0"] == Position(17, "1700")


@pytest.mark.parametrize("is_refused", [True, False])
def test_an_outage_is_no_time_in_which_a_consumer_notices_its_loss(
    groups, monkeypatch, is_refused
) -> None:
    old, new = groups
    filled(old)
    old.own("0", "consumer")
    move = mover(old, new, settle=60.0)
    while [each.stage for each in move.advance()] != [Stage.PREPARED, Stage.DONE, Stage.DONE]:
        pass
    shift, monotonic = 30.0, time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + shift)
    assert move.advance()[0].stage is Stage.PREPARED
    list_checkpoints = move._source.list_checkpoints

    def away(*args: Any, **kwargs: Any) -> Any:
        nonlocal shift
        shift += 40.0
        if is_refused:
            raise StoreUnavailableError("the server is away")
        return list_checkpoints(*args, **kwargs)

    for _ in range(3):
        with monkeypatch.context() as patched, ExitStack() as raising:
            patched.setattr(move._source, "list_checkpoints", away)
            if is_refused:
                raising.enter_context(pytest.raises(StoreUnavailableError))
            move.advance()
    assert [move.advance()[0].stage for _ in range(3)] == [Stage.PREPARED] * 3
    shift += 40.0
    assert [move.advance()[0].stage for _ in range(3)][-1] is Stage.DONE


def test_a_checkpoint_that_comes_between_reading_and_closing_is_not_lost(groups) -> None:
    old, new = groups
    filled(old)
    move = mover(old, new)
    source = move._source
    replace = source.replace_checkpoint
    late = iter([Position(16, "1600"), Position(17, "1700")])

    def overtaken(checkpoint: Any, stored: Any) -> bool:
        if checkpoint["partition_id"] == "0" and (position := next(late, None)):
            old.save("0", position)
        replaced: bool = replace(checkpoint, stored)
        return replaced

    source.replace_checkpoint = overtaken
    run(move)
    assert new.positions()["0"] == Position(17, "1700")


def test_a_moved_partition_that_a_late_consumer_opens_is_closed_again(groups) -> None:
    old, new = groups
    filled(old)
    old.own("1", "consumer")
    move = mover(old, new, settle=60.0)
    while move.advance()[0].stage is not Stage.DONE:
        pass
    new.own("0", "consumer")
    new.save("0", Position(30, "3000"))
    with old.open() as official:
        official.update_checkpoint(Position(16, "1600").as_dict(SCOPE, "0"), force=True)
    assert move.advance()[0].stage is Stage.DONE
    assert old.positions()["0"] == closed_with(Position(16, "1600"))
    assert new.positions()["0"] == Position(30, "3000")
    assert new.owners()["0"] == "consumer"


def test_a_closed_checkpoint_refuses_the_write_of_a_consumer_left_behind(groups) -> None:
    old, new = groups
    filled(old)
    with old.open() as left_behind:
        left_behind.list_checkpoints(*SCOPE)
        run(mover(old, new))
        left_behind.update_checkpoint(Position(40, "4000").as_dict(SCOPE, "0"))
        assert left_behind.counters["stale_checkpoints"] == 1
    assert old.positions()["0"] == closed_with(START["0"])


def test_a_partition_is_left_to_its_owner_until_that_releases_it(groups) -> None:
    old, new = groups
    filled(old)
    old.own("0", "consumer")
    move = mover(old, new, waits=True)
    for _ in range(10):
        stages = [each.stage for each in move.advance()]
    assert stages == [Stage.PREPARED, Stage.DONE, Stage.DONE]
    assert old.owners()["0"] == "consumer"
    assert new.owners()["0"].startswith(FENCE)
    old.save("0", Position(19, "1900"))
    old.own("0", "")
    run(move)
    assert new.positions()["0"] == Position(19, "1900")


def test_a_partition_taken_from_a_fence_that_was_killed_settles_again(groups) -> None:
    old, new = groups
    filled(old)
    old.own("0", "consumer")
    Fence(old.open(), SCOPE).hold(IDS)
    move = mover(old, new, settle=60.0)
    for _ in range(10):
        stages = [each.stage for each in move.advance()]
    assert stages[0] is Stage.PREPARED


def test_a_consumer_that_claimed_a_closed_partition_has_time_to_notice_its_loss(groups) -> None:
    old, new = groups
    filled(old)
    with pytest.raises(KilledError):
        run(mover(old, new, Killer(30, is_answered=True), settle=60.0))
    assert new.positions()["0"] == CLOSED_WAITING
    new.own("0", "early")
    move = mover(old, new, settle=60.0)
    for _ in range(10):
        stages = [each.stage for each in move.advance()]
    assert stages == [Stage.CLOSED, Stage.CLOSED, Stage.CLOSED]
    assert new.owners()["0"].startswith(FENCE)
    move._settle = 0.0
    run(move)
    assert new.positions() == START


def test_the_history_keeps_every_write_of_a_move(tmp_path) -> None:
    stores = [
        SqlCheckpointStore(f"sqlite:///{tmp_path}/{name}.db", create_tables=True)
        for name in ("old", "new")
    ]
    with stores[0] as source, stores[1] as target:
        source.update_checkpoint(START["0"].as_dict(SCOPE, "0"))
        run(Move(source, target, SCOPE, ["0"], settle=0.0))
        kept = [
            [(row["kind"], Position.of(row)) for row in reversed(store.list_history(*SCOPE))]
            for store in stores
        ]
    assert kept[0] == [
        ("checkpoint", START["0"]),
        ("replaced", START["0"]),
        ("rewind", closed_with(START["0"])),
    ]
    assert kept[1] == [
        ("rewind", CLOSED_WAITING),
        ("replaced", CLOSED_WAITING),
        ("rewind", START["0"]),
    ]


def test_a_move_goes_back(groups) -> None:
    old, new = groups
    filled(old)
    run(mover(old, new))
    new.save("0", Position(20, "2000"))
    new.save("2", Position(3, "300"))
    run(mover(new, old))
    assert old.positions() == {**START, "0": Position(20, "2000"), "2": Position(3, "300")}
    assert all(position.is_closed for position in new.positions().values())


def test_an_outage_of_a_store_is_reported_and_ridden_out(groups) -> None:
    old, new = groups
    filled(old)
    move = mover(old, new)
    target = move._target
    list_checkpoints, failures = target.list_checkpoints, iter([False, True, True])

    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailableError("the server is away")
        return list_checkpoints(*args, **kwargs)

    target.list_checkpoints = failing
    passes = run(move)
    assert [bool(each.error) for each in passes[:3]] == [True, True, False]
    assert passes[-1].is_done
    assert new.positions() == START


def test_a_row_that_no_list_shows_ends_the_move(groups) -> None:
    old, new = groups
    filled(old)
    move = mover(old, new)
    move._source.replace_checkpoint = lambda checkpoint, stored: False
    with pytest.raises(StoreError, match=r"partition \d was not the one that was read, 101 times"):
        run(move)
    assert old.positions() == START


MOVED = closed_with(Position(5))


@pytest.mark.parametrize(
    ("source", "target", "stage"),
    [
        (None, None, Stage.OPEN),
        (Position(5), None, Stage.OPEN),
        (Position(5), Position(5), Stage.OPEN),
        (Position(5), Position(4), Stage.OPEN),
        (Position(5), closed_with(Position(9)), Stage.OPEN),
        (Position(5), CLOSED_WAITING, Stage.PREPARED),
        (None, CLOSED_WAITING, Stage.PREPARED),
        (MOVED, CLOSED_WAITING, Stage.CLOSED),
        (MOVED, None, Stage.CLOSED),
        (closed_with(None), CLOSED_WAITING, Stage.CLOSED),
        (closed_with(None), None, Stage.DONE),
        (MOVED, Position(5), Stage.DONE),
        (MOVED, Position(9), Stage.DONE),
    ],
)
def test_two_checkpoints_show_how_far_a_partition_is(source, target, stage) -> None:
    assert stage_of(source, target) is stage


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (Position(5), Position(9), "the target has 9 and the source 5"),
        (None, Position(9), "the target has 9 and the source none"),
        (Position(None, "500"), None, "no sequence number; run ehcp migrate first"),
        (CLOSED_WAITING, MOVED, "a move from the target to the source has begun"),
        (CLOSED_WAITING, Position(5), "a move from the target to the source has begun"),
        (MOVED, MOVED, "both checkpoints were closed by moves"),
    ],
)
def test_a_partition_that_cannot_be_moved_is_refused(source, target, said) -> None:
    with pytest.raises(ConfigurationError, match=said):
        stage_of(source, target)


def test_what_is_refused_changes_nothing(groups) -> None:
    old, new = groups
    filled(old)
    new.save("1", Position(9, "900"))
    with pytest.raises(ConfigurationError, match="partition 1: the target has 9 and the source 4"):
        run(mover(old, new))
    assert old.positions() == START
    assert (new.positions(), new.owners()) == ({"1": Position(9, "900")}, {})


def test_a_live_consumer_of_the_target_is_refused_by_name(groups) -> None:
    old, new = groups
    filled(old)
    new.own("2", "early")
    with pytest.raises(GroupActiveError, match=r"is active: 'early' \(partitions 2\)"):
        run(mover(old, new))
    assert old.positions() == START
    assert new.positions() == {}


def test_a_store_is_not_moved_onto_itself(groups) -> None:
    old, _ = groups
    filled(old)
    with pytest.raises(ConfigurationError, match="the same store; nothing was moved"):
        run(mover(old, old))
    assert old.positions() == START


def test_a_claim_that_is_lost_at_first_is_tried_again(groups, monkeypatch) -> None:
    old, new = groups
    filled(old)
    move = mover(old, new)
    claim, losses = move._target.claim_ownership, iter([True, True])
    monkeypatch.setattr(
        move._target, "claim_ownership", lambda rows: [] if next(losses, False) else claim(rows)
    )
    passes = run(move)
    assert passes[0].error == "partition 0 went to another owner; try again"
    assert new.positions() == START


def test_a_store_without_the_ability_is_refused(groups) -> None:
    old, _ = groups
    with pytest.raises(ConfigurationError, match="object cannot take part in a move"):
        Move(old.open(), object(), SCOPE, IDS)
