"""Options of a processor are refused where they are given, by name and value."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, every
from eventhub_checkpoints.processing.options import NEVER, RULES, Options
from eventhub_checkpoints.processing.policy import DEFAULT_POLICY

GOOD: dict[str, Any] = {
    "starting_position": None,
    "from_saved": True,
    "save": True,
    "policy": DEFAULT_POLICY,
    "max_batch_size": 1,
    "max_wait_time": None,
    "owner_level": None,
    "prefetch": 1,
    "max_pending": 1,
    "attempts": 1,
    "on_poison": "stop",
    "on_invalid_checkpoint": "raise",
    "on_error": None,
    "drain_timeout": 0,
    "write_timeout": 0.1,
    "unhealthy_after": 1,
    "stalled_after": None,
    "on_stall": "report",
    "handover": True,
}
OF_THE_WATCHDOG = {"stalled_after", "on_stall"}
"""Checked by `check_watchdog`, which a Checkpointer uses too."""
COUNTS = ("max_batch_size", "prefetch", "max_pending", "attempts")
DURATIONS = ("write_timeout", "unhealthy_after", "drain_timeout", "max_wait_time")


async def coroutine(*args: object) -> None:
    """Nobody would wait for it."""


BAD = [
    *[(name, value) for name in COUNTS for value in (0, -1, 1.5, True, "3", None)],
    *[(name, value) for name in DURATIONS for value in (-1, math.inf, math.nan, "3", True)],
    *[(name, value) for name in ("write_timeout", "unhealthy_after") for value in (0, None)],
    ("max_wait_time", 0),
    ("drain_timeout", None),
    *[(name, value) for name in ("from_saved", "save", "handover") for value in (None, 1, "yes")],
    *[("owner_level", value) for value in (-1, 1.0, "0", True)],
    *[("policy", value) for value in (5, "every", every)],
    *[("on_poison", value) for value in (None, "raise", 3)],
    *[("on_invalid_checkpoint", value) for value in (None, "stop", True)],
    *[("on_error", value) for value in (3, "log", coroutine)],
    *[("starting_position", value) for value in (1.5, True, b"0", "", "begin", "latest", ["0"])],
    ("starting_position", datetime(2026, 1, 1)),
    *[
        ("starting_position", value)
        for value in ("2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01 00:00", "Endpoint=sb://ns/")
    ],
]


def refusal(name: str, value: object) -> str:
    """What is said of a value; "taken" if it is not refused."""
    try:
        Options(**GOOD | {name: value})
    except ConfigurationError as error:
        return str(error)
    return "taken"


def test_a_bad_option_is_named_with_its_value() -> None:
    said = {(name, repr(value)): refusal(name, value) for name, value in BAD}
    wrong = {
        option: text
        for option, text in said.items()
        if not text.startswith(f"{option[0]} is {option[1]}; expected ")
    }
    assert wrong == {}


def test_every_option_has_been_given_a_bad_value() -> None:
    bad = {name for name, _ in BAD}
    assert bad == GOOD.keys() - OF_THE_WATCHDOG == {*RULES, "starting_position"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", None),
        ("max_wait_time", 0.5),
        ("owner_level", 0),
        ("on_poison", "skip"),
        ("on_poison", print),
        ("on_invalid_checkpoint", "restart"),
        ("on_error", print),
        ("starting_position", 0),
        ("starting_position", "@latest"),
        ("starting_position", "20260101"),
        ("starting_position", "1:4294967296:17"),
        ("starting_position", datetime(2026, 1, 1, tzinfo=UTC)),
        ("starting_position", {"0": 5, "1": None}),
        ("starting_position", MappingProxyType({"0": "5"})),
        ("starting_position", str.strip),
    ],
)
def test_what_makes_sense_is_taken(name: str, value: object) -> None:
    assert getattr(Options(**GOOD | {name: value}), name) == value


def test_a_bad_start_of_one_partition_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"starting_position of partition '1' is 1\.5"):
        Options(**GOOD | {"starting_position": {"0": 1, "1": 1.5}})


@pytest.mark.parametrize("partition_id", ["2", 0])
def test_a_partition_that_the_hub_does_not_have_is_refused(partition_id: object) -> None:
    starts = Options(**GOOD | {"starting_position": {"1": 3, partition_id: 4}})
    with pytest.raises(ConfigurationError) as failure:
        starts.check_partitions(["0", "1"])
    expected = f"starting_position names partition {partition_id!r}; the hub has '0', '1'"
    assert str(failure.value) == expected


@pytest.mark.parametrize(
    ("given", "expected"), [(None, None), (0, 0), ({"0": "7"}, "7"), ({"1": 3}, None)]
)
def test_the_start_of_a_partition_is_the_value_or_what_the_mapping_names(
    given: Mapping[str, Any] | None, expected: object
) -> None:
    options = Options(**GOOD | {"starting_position": given})
    options.check_partitions(["0", "1"])
    assert options.start_of("0") == expected


def test_the_policy_saves_only_where_positions_are_saved() -> None:
    assert Options(**GOOD).saving_policy is DEFAULT_POLICY
    assert Options(**GOOD | {"policy": None}).saving_policy is NEVER
    assert Options(**GOOD | {"save": False}).saving_policy is NEVER
