"""Demand for replicas: bounded by partitions with work, steady, and right where KEDA's is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.errors import ConfigurationError, StoreError
from eventhub_checkpoints.operations.lag import GroupLag, partition_lag
from eventhub_checkpoints.operations.scale import DEMAND_HOLD, demand, number_in
from eventhub_checkpoints.receive import PartitionProperties
from eventhub_checkpoints.records import Scope
from keda_formula import Partition, metric, replicas

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def group_lag(partitions: list[Partition], time: float = 0.0) -> GroupLag:
    rows = [
        partition_lag(
            PartitionProperties(str(at), each.first, each.last + 1, "offset", None),
            None if each.checkpoint is None else {"sequence_number": each.checkpoint},
            None,
            time,
        )
        for at, each in enumerate(partitions)
    ]
    return GroupLag(SCOPE, time, rows, [])


def lags(*counts: int, time: float = 0.0) -> GroupLag:
    return group_lag([Partition(0, count - 1, -1) for count in counts], time)


windows = st.lists(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=8), min_size=1, max_size=12
)


@given(windows, st.integers(1, 1000), st.sampled_from([0.0, 30.0, DEMAND_HOLD]))
def test_replicas_are_never_more_than_partitions_with_work(counts, target, hold) -> None:
    window = [lags(*each, time=30.0 * at) for at, each in enumerate(counts)]
    recent = [each for at, each in enumerate(counts) if 30.0 * (len(counts) - 1 - at) <= hold]
    most = max(sum(count > 0 for count in each) for each in recent)
    found = demand(window, target, hold=hold)
    assert found.replicas <= most
    assert found.is_active == (most > 0)
    assert (found.replicas > 0) == found.is_active


def test_demand_rises_at_once_and_falls_after_the_hold() -> None:
    window = [lags(0, 0, time=0.0), lags(500, 500, time=15.0)]
    assert demand(window).replicas == 2
    window += [lags(0, 3, time=15.0 + seconds) for seconds in (15.0, 90.0, DEMAND_HOLD)]
    assert demand(window).replicas == 2
    window.append(lags(0, 3, time=16.0 + DEMAND_HOLD))
    assert demand(window).replicas == 1


def test_demand_does_not_follow_each_checkpoint() -> None:
    # Saved every 100 events: sampled just before and just after the write.
    window = [lags(*([99, 0] if at % 2 else [0, 99]), time=15.0 * at) for at in range(100)]
    found = {demand(window[: at + 1]).replicas for at in range(len(window))}
    assert found == {1}
    by_keda = {
        replicas(metric([Partition(0, 98, -1), Partition(0, 98, 98)])),
        replicas(metric([Partition(0, 98, 98), Partition(0, 98, 98)])),
    }
    assert len(by_keda) == 2


def test_activation_is_that_of_one_partition() -> None:
    assert not demand([lags(5, 5)], activation=5).is_active
    assert demand([lags(5, 6)], activation=5).is_active


def test_an_unknown_lag_is_an_error_and_not_zero() -> None:
    known = lags(5, 5)
    unknown = [known.partitions[0], replace(known.partitions[1], lag=None)]
    with pytest.raises(StoreError, match="checkpoints of partition 1 hold an offset and no"):
        demand([known, replace(known, time=15.0, partitions=unknown)])
    # An earlier one is left out.
    assert demand([replace(known, partitions=unknown), replace(known, time=15.0)]).scale == 10


@pytest.mark.parametrize(("target", "activation"), [(0, 0), (1, -1)])
def test_a_target_or_activation_out_of_range_is_refused(target, activation) -> None:
    with pytest.raises(ConfigurationError, match="expected at least 1 and 0"):
        demand([lags(1)], target, activation)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "\u0664", "9" * 19, "9" * 5000])
def test_a_number_of_an_autoscaler_that_is_not_one_is_refused(text) -> None:
    with pytest.raises(ConfigurationError, match=r"the name is .* expected a whole number, 1 or m"):
        number_in({"the name": text}, "the name", 64, 1)


def test_a_number_of_an_autoscaler_is_read() -> None:
    assert number_in({"name": "9223372036854775807"}, "name", 64) == 2**63 - 1
    assert number_in({}, "name", 64) == 64
