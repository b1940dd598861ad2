"""A server's clock that is off makes no ownership younger or older."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Ownership, Scope
from eventhub_checkpoints.stores.hook_results import Listing, on_local_clock

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
TIMES = st.floats(1e9, 2e9)


def local_time(last_modified: float, server_now: float | None, local_now: float) -> float:
    row = Ownership(SCOPE, "0", "me", "etag", last_modified)
    return on_local_clock(Listing([row], server_now), local_now)[0][1]


@given(TIMES, st.floats(0, 1e6), st.floats(-1e6, 1e6))
def test_an_age_is_the_same_on_both_clocks(local_now: float, age: float, skew: float) -> None:
    server_now = local_now + skew
    assert abs(local_now - local_time(server_now - age, server_now, local_now) - age) < 1e-3


def test_a_row_from_the_future_is_just_born() -> None:
    assert local_time(2000.0, 1000.0, 500.0) == 500.0


def test_a_backend_without_a_clock_of_its_own_uses_this_one() -> None:
    assert local_time(990.0, None, 1000.0) == 990.0


def test_everything_else_of_the_row_is_kept() -> None:
    row = Ownership(SCOPE, "0", "me", "etag", 10.0)
    assert on_local_clock(Listing([row], 10.0), 10.0) == [(row, 10.0)]
