"""Goals of a reset as commands and the page name them, and what follows from the group."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar

import pytest

from eventhub_checkpoints import Scope
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations import reset
from eventhub_checkpoints.operations.groups import Group, Owner
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.reset import (
    PartitionReset,
    Shift,
    address_for_reading,
    before_now,
    changes_of,
    goal_of,
)
from eventhub_checkpoints.receive import HubAddress

HUB = HubAddress.from_connection_string(
    "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=a2V5;EntityPath=orders",
    consumer_group="billing",
)
IDLE = Group(Scope("ns", "orders", "billing"), {}, {})
RUNNING = Group(IDLE.scope, {}, {"0": Owner("me", 1.0, True)})


@pytest.mark.parametrize(
    ("kind", "value", "goal"),
    [
        ("earliest", "", "earliest"),
        ("latest", "", "latest"),
        ("current", "", "current"),
        ("datetime", "2026-11-21T10:00", datetime(2026, 11, 21, 10, tzinfo=UTC)),
        ("sequence_number", "0", 0),
        ("sequence_number", "42", 42),
        ("shift", "-5", Shift(-5)),
        ("shift", "7", Shift(7)),
    ],
)
def test_a_goal_is_named_by_its_kind_and_value(kind: str, value: str, goal: object) -> None:
    assert goal_of(kind, value) == goal


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("sequence_number", "x", "the sequence number is 'x'; expected digits"),
        ("shift", "", "the shift is ''; expected digits"),
        ("sequence_number", "-1", "the sequence number is -1; expected 0 or more"),
        (
            "newest",
            "",
            "the goal is 'newest'; expected earliest, latest, current, sequence_number, shift, "
            "datetime, duration",
        ),
    ],
)
def test_what_is_no_goal_is_refused_by_what_is_expected(kind: str, value: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        goal_of(kind, value)
    assert str(refusal.value) == text


def test_a_goal_without_a_value_has_none() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        goal_of("shift")
    assert str(refusal.value) == "the shift is ''; expected digits"


def test_a_duration_lies_before_now_in_utc() -> None:
    for goal in (before_now, partial(goal_of, "duration")):
        earliest = datetime.now(UTC) - timedelta(hours=2)
        moment = goal("2h")
        assert isinstance(moment, datetime)
        assert earliest <= moment <= datetime.now(UTC) - timedelta(hours=2)


def test_a_time_before_now_needs_a_unit() -> None:
    with pytest.raises(ConfigurationError, match="the duration is '2'; expected"):
        before_now("2")


@pytest.mark.parametrize(
    ("group", "through", "read_by"),
    [
        (IDLE, None, "billing"),
        (RUNNING, None, "$Default"),
        (IDLE, "audit", "audit"),
        (RUNNING, "audit", "audit"),
    ],
)
def test_single_events_are_read_through_a_group_that_the_hub_admits(
    group: Group, through: str | None, read_by: str
) -> None:
    assert address_for_reading(HUB, group, through) == replace(HUB, consumer_group=read_by)


@pytest.mark.parametrize("named", [{}, {"through": "audit", "missing": "latest", "timeout": 7.0}])
def test_a_command_plans_for_its_group_what_its_interrupted_attempt_began_from(
    named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Change:
        group = IDLE
        before: ClassVar = {"0": Position(3, "3")}
        is_refused = False

        def refuse_active(self) -> None:
            self.is_refused = True

    planned: list[Any] = []

    def plan_reset(*args: Any, **options: Any) -> list[PartitionReset]:
        planned.append((args, options))
        return []

    monkeypatch.setattr(reset, "plan_reset", plan_reset)
    change: Any = Change()
    assert reset.plan_change(change, "latest", HUB, ["0"], **named) == []
    options = {"missing": "earliest", "timeout": reset.OPERATION_TIMEOUT, **named}
    hub = replace(HUB, consumer_group=options.pop("through", "billing"))
    assert planned == [(("latest", IDLE, hub, ["0"]), {"before": change.before, **options})]
    assert change.is_refused


def test_the_name_of_the_group_to_read_through_is_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"^consumer_group "):
        address_for_reading(HUB, IDLE, " ")


def test_a_duration_may_be_nothing() -> None:
    assert before_now("0s") <= datetime.now(UTC)


def test_a_position_that_stays_is_stored_only_under_a_running_consumer() -> None:
    same, other = (
        PartitionReset("0", 0, 9, Position(4, "4"), 5, 5, Position(4, "4"), False, ""),
        PartitionReset("1", 0, 9, Position(4, "4"), 5, 8, Position(7, "7"), False, ""),
    )
    assert changes_of([same, other], IDLE) == {"1": other.after}
    assert changes_of([same, other], RUNNING) == {"0": same.after, "1": other.after}
