"""Clocks an hour apart: a short run of `python tools/campaign.py skew`, and what it catches."""

from collections.abc import Callable
from typing import Any

import pytest

from backends import Backend, ServerMissingError
from campaigns import IS_CAMPAIGN, rounds, seed
from clock_skew import EXPIRES_AFTER, HAVE_CLOCKS, SkewError, judged, run_skews

ROUNDS = rounds(1, 20)
SEED = seed(0)
STORES = HAVE_CLOCKS if IS_CAMPAIGN else ["redis"]


@pytest.mark.long
@pytest.mark.parametrize("name", STORES)
def test_a_clock_that_is_off_takes_nothing_over_and_keeps_nothing(
    name: str, servers: Callable[[str], Backend], tell: Callable[[str, str], None]
) -> None:
    try:
        seen = run_skews(servers(name), SEED, ROUNDS)
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    assert seen["ages"]
    assert seen["saved"]
    tell("clocks", f"{name}: {', '.join(f'{count} {kind}' for kind, count in seen.items())}")


def line(name: str, what: str, at: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "what": what, "began": at, "ended": at, **more}


CLAIM = line("behind", "claimed", 1.0, won=["0"])


@pytest.mark.parametrize("age", [-3600.0, -0.1, 3600.0, EXPIRES_AFTER])
def test_an_age_that_cannot_be_is_caught(age: float) -> None:
    seen = line("ahead", "listed", 2.0, ages={"0": age}, owners={"0": "behind"})
    with pytest.raises(SkewError, match="saw partition 0"):
        judged([CLAIM, seen])


def test_an_age_that_can_be_is_let_be() -> None:
    seen = line("ahead", "listed", 2.0, ages={"0": 1.0}, owners={"0": "behind"})
    assert judged([CLAIM, seen])["ages"] == 1


def test_a_checkpoint_that_goes_back_is_caught() -> None:
    saved = [line("ahead", "saved", at, partition="0", number=5 - at) for at in (1, 2)]
    with pytest.raises(SkewError, match="after 4 was saved"):
        judged(saved)
