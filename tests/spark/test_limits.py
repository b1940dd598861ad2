import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.spark.source.batches import limited, split
from eventhub_checkpoints.spark.source.options import NO_LIMITS, Limits

pytestmark = pytest.mark.waits

COUNTS = st.dictionaries(
    st.integers(0, 40).map(str), st.integers(0, 10**6) | st.integers(0, 3), max_size=12
)


@given(st.integers(1, 10**6) | st.integers(1, 20), COUNTS)
def test_a_total_is_shared_out_to_the_last_event(total, waiting):
    taken = split(total, waiting)
    lagging = sum(1 for count in waiting.values() if count)
    assert taken.keys() == waiting.keys()
    assert sum(taken.values()) == min(sum(waiting.values()), max(total, lagging))
    for one, count in waiting.items():
        assert min(count, 1) <= taken[one] <= count


@given(st.integers(1, 10**6), COUNTS)
def test_shares_are_in_proportion(total, waiting):
    taken = split(total, waiting)
    everything, lagging = sum(waiting.values()), sum(1 for count in waiting.values() if count)
    if everything <= total or total < lagging:
        return
    for one, count in waiting.items():
        if count:
            exact = 1 + (total - lagging) * (count - 1) / (everything - lagging)
            assert abs(taken[one] - exact) < 1


@given(st.integers(1, 100), COUNTS, st.integers(1, 100))
def test_what_is_left_is_drained_in_the_end(total, waiting, rate):
    left = {one: count % 500 for one, count in waiting.items()}
    limits = Limits(total, rate)
    for _ in range(1 + sum(left.values())):
        taken = limited(limits, left)
        left = {one: count - taken[one] for one, count in left.items()}
    assert not any(left.values())


@given(COUNTS)
def test_without_a_limit_all_is_taken(waiting):
    assert limited(NO_LIMITS, waiting) == waiting


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        (Limits(total=12), {"0": 10, "1": 2, "2": 0}),
        (Limits(rate=5), {"0": 5, "1": 5, "2": 0}),
        (Limits(rate=5, rates={"0": 50}), {"0": 50, "1": 5, "2": 0}),
        (Limits(total=6, rate=5, rates={"0": 1}), {"0": 1, "1": 5, "2": 0}),
        (Limits(total=1), {"0": 1, "1": 1, "2": 0}),
        (Limits(total=2**63 - 1), {"0": 100, "1": 10, "2": 0}),
    ],
)
def test_rates_go_before_the_total(limits, taken):
    assert limited(limits, {"0": 100, "1": 10, "2": 0}) == taken
