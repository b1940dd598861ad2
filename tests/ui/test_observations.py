"""What pages remember of groups."""

from dataclasses import replace

from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.monitor import Status
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.observations import (
    POINTS,
    SPAN,
    GroupObservations,
    Holding,
    Observations,
)

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
POSITION = PartitionLag("0", 0, 19, 9, "9", 10, 0, 1.0, "me", 1.0)


def status(time: float, *owners: str, lag: int | None = 10) -> Status:
    positions = [
        replace(POSITION, partition_id=str(number), owner_id=owner, lag=lag)
        for number, owner in enumerate(owners)
    ]
    return Status(SCOPE, [GroupLag(SCOPE, time, positions, [])], "")


def test_the_lag_of_an_hour_is_kept() -> None:
    group = GroupObservations()
    for number in range(10):
        group.add(status(0.0, "me", lag=number), number * SPAN / 4)
    assert [lag for _, lag in group.points] == [6, 7, 8, 9]


def test_an_unknown_lag_is_a_gap() -> None:
    group = GroupObservations()
    group.add(status(0.0, "me", "you"), 1.0)
    group.add(replace(status(0.0), error="no answer"), 2.0)
    group.add(status(0.0, "me", lag=None), 3.0)
    assert group.points == [(1.0, 20), (2.0, None), (3.0, None)]


def test_the_number_of_points_is_bounded_and_the_newest_is_among_them() -> None:
    group = GroupObservations()
    for number in range(10 * POINTS):
        group.add(status(0.0, "me", lag=number), number / 10)
        assert len(group.points) <= 2 * POINTS
        assert group.points[-1][1] == number
    times = [time for time, _ in group.points]
    assert times == sorted(times)
    assert times[0] < 10


def test_the_first_owner_may_be_older_and_later_ones_are_not() -> None:
    group = GroupObservations()
    group.add(replace(status(0.0), error="not read yet"), 0.0)
    group.add(status(100.0, "me", "you", ""), 100.0)
    group.add(status(200.0, "me", "me", "you"), 200.0)
    group.add(replace(status(0.0), error="no answer"), 250.0)
    group.add(status(300.0, "me", "me", ""), 300.0)
    assert group.holdings == {"0": Holding("me", 100.0, True), "1": Holding("me", 200.0, False)}
    group.add(status(400.0, "me", "me", "you"), 400.0)
    assert group.holdings["2"] == Holding("you", 400.0, False)


def test_a_group_that_was_not_polled_has_nothing() -> None:
    observations = Observations()
    assert list(observations.points(SCOPE)) == []
    assert observations.holdings(SCOPE) == {}
    observations.add(status(100.0, "me"))
    assert [lag for _, lag in observations.points(SCOPE)] == [10]
    assert set(observations.holdings(SCOPE)) == {"0"}
