"""Changes of positions under consumers that claim, write late, and take partitions back."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore

from eventhub_checkpoints import MemoryCheckpointStore, StaleCheckpointError, StoreUnavailableError
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import (
    Force,
    GroupActiveError,
    change_positions,
    refuse_active,
)
from eventhub_checkpoints.operations.fence import Fence
from eventhub_checkpoints.operations.groups import group
from eventhub_checkpoints.operations.positions import Position, read_positions
from eventhub_checkpoints.records import Scope

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
FORCE = Force("ehcp-test", hold=40.0, timeout=60.0)
PAUSE = 4.0
"""Seconds between two rounds in which the partitions are held: a tenth of all."""


class Rows:
    """Rows that several stores share: of a consumer, and of an operator."""

    def __init__(self) -> None:
        url = f"memory:{id(self)}"
        self.consumer = MemoryCheckpointStore.from_url(url)
        self.operator = MemoryCheckpointStore.from_url(url)

    def claim(self, partition_id: str, owner_id: str = "consumer-7") -> bool:
        """Let a consumer claim a partition over its present owner."""
        rows = {row["partition_id"]: row for row in self.consumer.list_ownership(*SCOPE)}
        row = {**SCOPE.as_dict(), "partition_id": partition_id, **rows.get(partition_id, {})}
        return bool(self.consumer.claim_ownership([{**row, "owner_id": owner_id}]))

    def save(self, partition_id: str, number: int, **options: Any) -> None:
        """Let a consumer store a checkpoint."""
        position = Position(number, str(number)).as_dict(SCOPE, partition_id)
        self.consumer.update_checkpoint(position, **options)

    def owners(self) -> dict[str, str]:
        """Return the owner of each partition."""
        return {
            row["partition_id"]: row["owner_id"] for row in self.consumer.list_ownership(*SCOPE)
        }

    def change(self, targets: Mapping[str, Position | None], **options: Any) -> int:
        """Change positions as an operator."""
        return change_positions(
            self.operator, SCOPE, targets, **{"keep": lambda present: None, **options}
        )

    @property
    def positions(self) -> dict[str, Position]:
        """Return the stored positions."""
        return read_positions(MemoryCheckpointStore.from_url(f"memory:{id(self)}"), SCOPE)


@pytest.fixture
def rows(stepped: Any) -> Rows:
    made = Rows()
    for partition_id in "01":
        assert made.claim(partition_id)
    made.consumer.list_checkpoints(*SCOPE)
    for partition_id in "01":
        made.save(partition_id, 20)
    return made


BACK = {"0": Position(4, "4"), "1": Position(5, "5")}


def test_an_active_group_is_refused_with_the_names_of_its_members(rows: Rows) -> None:
    for number in range(2, 8):
        rows.claim(str(number), f"consumer-{number}")
    found = group(rows.operator, SCOPE)
    with pytest.raises(GroupActiveError, match=r"'consumer-7' \(partitions 0, 1, 7\)") as refused:
        refuse_active(found)
    assert str(refused.value).count("'consumer-") == 3
    assert "and 3 more; stop its consumers" in str(refused.value)


def test_claims_of_the_same_command_do_not_count(rows: Rows) -> None:
    for id_ in "01":
        rows.claim(id_, f"ehcp-1-{id_}")
    found = group(rows.operator, SCOPE)
    refuse_active(found, own="ehcp-1")
    with pytest.raises(GroupActiveError):
        refuse_active(found, own="ehcp-2")


def test_positions_of_an_idle_group_are_stored(rows: Rows) -> None:
    for id_ in "01":
        rows.claim(id_, "")
    kept: list[Mapping[str, Position]] = []
    steps: list[str] = []
    rows.change({**BACK, "2": Position(-1, "-1")}, keep=kept.append, progress=steps.append)
    assert rows.positions == {**BACK, "2": Position(-1, "-1")}
    assert kept == [{id_: Position(20, "20") for id_ in "01"}]
    assert steps == ["0", "1", "2"]
    rows.change({"0": None, "2": None})
    assert rows.positions == {"1": BACK["1"]}


def test_a_checkpoint_that_a_consumer_stores_meanwhile_is_not_overwritten(rows: Rows) -> None:
    for id_ in "01":
        rows.claim(id_, "")
    said = "a consumer of .* is running: stop it, and run the command again or ehcp undo"
    with pytest.raises(StaleCheckpointError, match=said):
        rows.change(BACK, progress=lambda step: rows.save("1", 21))
    assert rows.positions == {"0": BACK["0"], "1": Position(21, "21")}


def test_positions_are_kept_before_the_first_change(rows: Rows) -> None:
    def fail(present: Mapping[str, Position]) -> None:
        raise ConfigurationError("no room")

    for force in (None, FORCE):
        with pytest.raises(ConfigurationError, match="no room"):
            rows.change(BACK, keep=fail, force=force)
        assert {each.sequence_number for each in rows.positions.values()} == {20}
    assert set(rows.owners().values()) == {""}


def test_late_checkpoints_of_consumers_are_overwritten_while_partitions_are_held(
    rows: Rows, stepped: Any
) -> None:
    late = [21, 22]

    def step(partition_id: str) -> None:
        if not partition_id and late:
            rows.save("0", late.pop(0))

    assert rows.change(BACK, force=FORCE, progress=step) == 2
    assert stepped.now == FORCE.hold
    assert rows.positions == BACK
    assert rows.owners() == {"0": "", "1": ""}


def test_each_partition_is_held_by_an_owner_of_its_own(rows: Rows) -> None:
    held: list[dict[str, str]] = []
    rows.change(BACK, force=FORCE, progress=lambda step: held.append(rows.owners()))
    assert held[0] == {"0": "ehcp-test-0", "1": "ehcp-test-1"}


def test_a_partition_that_was_taken_back_is_taken_again_and_held_as_long(
    rows: Rows, stepped: Any
) -> None:
    rounds: list[float] = []

    def step(partition_id: str) -> None:
        if not partition_id:
            rounds.append(stepped.now)
            if len(rounds) == 1:
                assert rows.claim("1")
                rows.save("1", 25)

    assert rows.change(BACK, force=FORCE, progress=step) == 1
    assert rounds[:3] == [PAUSE, 2 * PAUSE, 3 * PAUSE]
    # It was taken again in the second round.
    assert stepped.now == 2 * PAUSE + FORCE.hold
    assert rows.positions == BACK
    assert rows.owners() == {"0": "", "1": ""}


def test_consumers_that_take_partitions_back_all_the_time_are_an_error(
    rows: Rows, stepped: Any
) -> None:
    with pytest.raises(StoreUnavailableError, match="take partitions back all the time"):
        rows.change(BACK, force=FORCE, progress=lambda step: rows.claim("1"))
    # The last time that it was taken, it would have been held beyond five times the whole.
    assert stepped.now == 4 * FORCE.hold + PAUSE
    assert rows.owners()["0"] == ""


def test_an_owner_that_renews_faster_all_the_time_is_asked_with_pauses(
    rows: Rows, stepped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists: list[float] = []
    listed = rows.operator.list_ownership

    def outrun(*names: str) -> Any:
        assert len(lists) < 1000, f"{len(lists)} lists in {stepped.now:g} s"
        lists.append(stepped.now)
        found = list(listed(*names))
        assert rows.claim("0")
        return found

    monkeypatch.setattr(rows.operator, "list_ownership", outrun)
    monkeypatch.setattr(random, "random", lambda: 1.0)
    fence = Fence(rows.operator, SCOPE)
    said = "partition 0 of .* could not be taken from 'consumer-7' within 10 s"
    with pytest.raises(StoreUnavailableError, match=said):
        fence.take(["0", "1"], 10.0)
    # The pauses of every retry of this package; the last list names the owner for the error.
    assert lists == [
        *(0.0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.1),
        *(8.05, 9.025, 9.5125, 9.75625, 9.878125, 9.878125),
    ]


def test_an_interruption_releases_the_partitions(rows: Rows) -> None:
    def interrupt(step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows.change(BACK, force=FORCE, progress=interrupt)
    assert rows.owners() == {"0": "", "1": ""}


def test_a_row_is_deleted_when_its_partition_is_released(rows: Rows) -> None:
    rows.change({"0": None, "1": BACK["1"]}, force=FORCE)
    assert rows.positions == {"1": BACK["1"]}
    assert rows.owners() == {"1": ""}


def test_what_cannot_be_stored_is_refused_before_anything_is_changed(rows: Rows) -> None:
    with pytest.raises(ConfigurationError, match="partition 1 has no sequence number"):
        rows.change({"0": BACK["0"], "1": Position(None, "7")}, force=FORCE)
    assert {each.sequence_number for each in rows.positions.values()} == {20}
    assert set(rows.owners().values()) == {"consumer-7"}


class Foreign(InMemoryCheckpointStore):
    """A store of another package, with the four methods and nothing else."""

    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        assert not kwargs, "it would pass them on to its driver"
        super().update_checkpoint(checkpoint)


@pytest.mark.usefixtures("stepped")
def test_a_store_with_the_four_methods_only_can_be_changed() -> None:
    store = Foreign()
    for force in (None, FORCE):
        change_positions(store, SCOPE, BACK, keep=lambda present: None, force=force)
        assert read_positions(store, SCOPE) == BACK
    with pytest.raises(ConfigurationError, match="Foreign cannot delete rows"):
        change_positions(store, SCOPE, {"0": None}, keep=lambda present: None)


class Away:
    """A store that does not answer from one time to another, on the stepped clock."""

    def __init__(self, store: MemoryCheckpointStore, stepped: Any, since: float, until: float):
        self.store, self.stepped, self.since, self.until = store, stepped, since, until

    def __getattr__(self, name: str) -> Any:
        if self.since <= self.stepped.now < self.until:
            raise StoreUnavailableError("no answer")
        return getattr(self.store, name)


def test_an_outage_does_not_count_as_time_in_which_partitions_are_held(
    rows: Rows, stepped: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = Away(rows.operator, stepped, 7.0, 27.0)
    change_positions(store, SCOPE, BACK, keep=lambda present: None, force=FORCE)  # type: ignore[arg-type]
    # The turns at 8, 12, .. 24 s had no answer; the one at 28 s had.
    assert stepped.now == 5 * PAUSE + FORCE.hold
    assert rows.owners() == {"0": "", "1": ""}
    assert [record.getMessage() for record in caplog.records] == [
        f"an outage of the store prolongs the hold of {SCOPE}: no answer"
    ]


def test_an_outage_that_outlasts_the_claims_ends_the_change(rows: Rows, stepped: Any) -> None:
    store = Away(rows.operator, stepped, 7.0, float("inf"))
    force = Force("ehcp-test", hold=40.0, expires_after=30.0)
    with pytest.raises(StoreUnavailableError, match="no answer"):
        change_positions(store, SCOPE, BACK, keep=lambda present: None, force=force)  # type: ignore[arg-type]
    # The last answer came at 4 s.
    assert stepped.now == 36.0
    assert rows.positions == BACK


def test_a_claim_whose_answer_was_lost_is_released(rows: Rows, monkeypatch: Any) -> None:
    claim = rows.operator.claim_ownership

    def lose(claims: Any) -> Any:
        monkeypatch.setattr(rows.operator, "claim_ownership", claim)
        claim(claims)
        raise KeyboardInterrupt

    monkeypatch.setattr(rows.operator, "claim_ownership", lose)
    with pytest.raises(KeyboardInterrupt):
        rows.change(BACK, force=FORCE)
    assert rows.owners() == {"0": "", "1": ""}
