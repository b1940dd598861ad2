"""Plan of a reset of a whole group: what is asked of the hub, and what is said of a partition."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER, Group, Owner
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.reset import (
    PartitionReset,
    Shift,
    numbers_at,
    offsets_of,
    old_next,
    plan_partition,
    plan_reset,
)
from eventhub_checkpoints.receive import PartitionProperties
from eventhub_checkpoints.records import Scope
from memory_hub import NEWEST, MemoryHub, held, hub_of
from waiting import LIMIT

EARLIER = NEWEST - timedelta(hours=1)
GROUP = Scope("ns", "orders", "billing")
CLOSED = Position(CLOSED_NUMBER, "moved:elsewhere")


def group_of(
    live: Sequence[str] = (), *, scope: Scope = GROUP, **positions: tuple[int | None, str]
) -> Group:
    """A group with these positions as `p0=...`, whose member `me` holds the live partitions."""
    rows = {
        id_.removeprefix("p"): {"sequence_number": number, "offset": offset}
        for id_, (number, offset) in positions.items()
    }
    owners = {id_: Owner("me", 1.0, True) for id_ in live}
    return Group(scope, rows, {"9": Owner("gone", 99.0, False)} | owners)


def hub_with_events() -> MemoryHub:
    """Two partitions, of which all events but 150 can be read; their offsets are `o5` and so on."""
    hub = hub_of(held("0", 100, 200), held("3", 5, 9), p0=170, p3=7)
    hub.offsets = {
        id_: {n: f"o{n}" for n in range(each.first_sequence_number, each.next_sequence_number)}
        for id_, each in hub.partitions.items()
    }
    del hub.offsets["0"][150]
    return hub


def plans_of(target: Any, **given: Any) -> list[PartitionReset]:
    given = {"found": group_of(), "hub": hub_with_events()} | given
    return plan_reset(target, given.pop("found"), given.pop("hub"), **given)


def brief(plans: Sequence[PartitionReset]) -> list[tuple[str, int | None, int, str, str]]:
    return [(each.partition_id, each.old, each.new, each.after.offset, each.note) for each in plans]


def said(target: Any, **given: Any) -> str:
    with pytest.raises(ConfigurationError) as failure:
        plans_of(target, **given)
    return str(failure.value)


def test_all_partitions_of_the_hub_are_planned() -> None:
    assert brief(plans_of("earliest")) == [("0", 100, 100, "-1", ""), ("3", 5, 5, "-1", "")]
    assert brief(plans_of("latest", missing="latest")) == [
        ("0", 200, 200, "of 199", ""),
        ("3", 9, 9, "of 8", ""),
    ]


def test_chosen_partitions_are_planned_in_numeric_order() -> None:
    hub = hub_of(*(held(id_, 0, 5) for id_ in ("2", "10", "11")))
    assert [
        each.partition_id for each in plans_of("latest", hub=hub, partition_ids=["10", "2"])
    ] == [
        "2",
        "10",
    ]


def test_partitions_with_rows_are_asked_about_in_the_first_query() -> None:
    hub = hub_with_events()
    plans_of("latest", found=group_of(["3"], p0=(150, "any")), hub=hub, timeout=7.0)
    assert hub.asked == [(["0", "3", "9"], 7.0)]


def test_the_partitions_that_a_target_names_are_planned() -> None:
    assert brief(plans_of({"3": 7})) == [("3", 5, 7, "o6", "")]
    both = {"0": 101, "3": 7}
    assert [each.partition_id for each in plans_of(both, partition_ids=["0"])] == ["0"]


def test_a_partition_that_the_target_does_not_name_is_refused() -> None:
    assert said({"3": 7}, partition_ids=["3", "0"]) == (
        "the file has no line for partition 0; leave 0 out of --partitions"
    )


def test_a_partition_that_the_hub_does_not_have_is_refused() -> None:
    assert said("latest", partition_ids=["0", "4"]) == (
        "ns/orders has no partition '4'; it has 0, 3"
    )


def test_a_plan_starts_from_the_stored_positions_or_from_others() -> None:
    found = group_of(p0=(150, "any"), p3=(6, "any"))
    assert brief(plans_of(Shift(-1), found=found)) == [
        ("0", 151, 150, "o149", ""),
        ("3", 7, 6, "o5", ""),
    ]
    before = {"3": Position(7, "any")}
    assert brief(plans_of(Shift(-1), found=found, before=before))[1] == ("3", 8, 7, "o6", "")


def test_an_event_that_does_not_exist_leaves_the_offset_open() -> None:
    assert brief(plans_of({"0": 151})) == [
        ("0", 100, 151, "", "event 150 does not exist: no offset")
    ]


def test_only_the_events_are_read_whose_offsets_are_needed() -> None:
    hub = hub_with_events()
    plans_of({"0": 120, "3": 5}, hub=hub, timeout=8.0)
    [(partition_id, start, until, settings)] = hub.opened
    assert (partition_id, start, until) == ("0", 119, 120)
    assert (settings.rows_per_batch, settings.prefetch) == (1, 1)
    assert (settings.receiver_timeout, settings.operation_timeout) == (4.0, 8.0)
    assert settings.fail_on_data_loss is False


def test_an_event_that_has_just_expired_has_no_offset() -> None:
    hub = hub_of(held("0", 100, 200))
    assert offsets_of(hub, {"0": 40}, 8.0) == {"0": ""}


@pytest.mark.parametrize(
    ("offset", "text"), [("o1", "o1"), (b"o1", "o1"), ("", ""), (b"", ""), (None, "")]
)
def test_an_offset_is_read_as_text(offset: Any, text: str) -> None:
    hub = hub_of(held("0", 0, 5))
    hub.offsets = {"0": {1: offset}}
    assert offsets_of(hub, {"0": 1}, 8.0) == {"0": text}


def test_a_time_is_the_first_event_since_then() -> None:
    hub = hub_with_events()
    assert brief(plans_of(EARLIER, hub=hub, timeout=7.0)) == [
        ("0", 100, 170, "o169", ""),
        ("3", 5, 7, "o6", ""),
    ]
    assert sorted(hub.looked_up) == [("0", EARLIER, True, 7.0), ("3", EARLIER, True, 7.0)]


def test_a_time_of_a_chosen_partition_is_not_looked_up_in_others() -> None:
    hub = hub_with_events()
    assert brief(plans_of(EARLIER, hub=hub, partition_ids=["3"])) == [("3", 5, 7, "o6", "")]
    assert [partition_id for partition_id, *_ in hub.looked_up] == ["3"]


def test_a_time_after_the_newest_event_is_the_end_and_says_so() -> None:
    hub = hub_with_events()
    hub.partitions["3"] = replace(hub.partitions["3"], last_enqueued_time=EARLIER)
    assert brief(plans_of(NEWEST, hub=hub)) == [
        ("0", 100, 170, "o169", ""),
        ("3", 5, 9, "of 8", "no event since then"),
    ]
    hub.firsts = {"0": 199}
    assert brief(plans_of(NEWEST, hub=hub, partition_ids=["0"])) == [("0", 100, 199, "o198", "")]


def test_a_time_is_a_position_in_time_so_notes_of_numbers_stay() -> None:
    hub = hub_with_events()
    hub.firsts = {"0": 40, "3": 7}
    assert brief(plans_of(EARLIER, hub=hub))[0] == (
        *("0", 100, 100, "-1", "40 is below the first event"),
    )


def test_a_partition_is_not_read_through_a_group_that_holds_it() -> None:
    held_by_me = group_of(["3"], p3=(6, "any"))
    for target in ({"3": 7}, EARLIER):
        assert said(target, found=held_by_me) == (
            "an event of partition 3 has to be read, and 'me' holds the partition in consumer "
            "group billing; name another consumer group with --through"
        )
    # Nothing has to be read of the others, or another group reads.
    assert plans_of({"0": 120, "3": 5}, found=held_by_me)
    other = group_of(["3"], scope=GROUP._replace(consumer_group="other"))
    assert plans_of({"3": 7}, found=other)
    assert said({"3": 7}, found=group_of(["3"], scope=Scope("NS", "Orders", "Billing")))


def test_a_query_that_does_not_return_is_named_by_its_partition() -> None:
    released = Event()

    class HungHub(MemoryHub):
        def ask_first(self, *_: Any) -> int | None:
            released.wait(LIMIT)
            return None

        def open_stream(self, *_: Any) -> Any:
            released.wait(LIMIT)
            raise AssertionError("it is given up before")

    hub = HungHub({"0": held("0", 100, 200)})
    silent = "partition 0 of ns/orders gave no answer within 1 s"
    with pytest.raises(HubUnavailableError, match=silent):
        numbers_at(hub, group_of(), hub.partitions, EARLIER, 0.0)
    with pytest.raises(HubUnavailableError, match=silent):
        offsets_of(hub, {"0": 150}, 0.01)
    released.set()


def test_a_partition_without_a_position_cannot_be_shifted() -> None:
    for before, what in (
        (None, "no checkpoint"),
        (Position(None, "640"), "a checkpoint without a sequence number"),
        (CLOSED, "a closed checkpoint, because it was moved to or from another store"),
    ):
        with pytest.raises(ConfigurationError) as failure:
            plan_partition(Shift(1), held("0", 0, 5), before)
        assert str(failure.value) == (
            f"partition 0 has {what}, so there is no position to start from; leave it out with "
            "--partitions, or choose another target"
        )


def test_a_note_says_what_the_operator_should_know() -> None:
    def note(target: Any, before: Position | None = None) -> str:
        return plan_partition(target, held("0", 5, 10), before).note

    assert note(4) == "4 is below the first event"
    assert [note(5), note(10)] == ["", ""]
    assert note(11) == "11 is above the last event"
    assert note("current") == "no checkpoint: latest"
    assert note("current", Position(6, "any")) == ""
    assert note(11, CLOSED) == (
        "11 is above the last event; closed by ehcp move: another store has the position"
    )
    plan = plan_partition(7, held("0", 5, 10), CLOSED).with_offset("")
    assert plan.note == (
        "closed by ehcp move: another store has the position; event 6 does not exist: no offset"
    )
    assert plan_partition(7, held("0", 5, 10), CLOSED).with_offset("o6").note == (
        "closed by ehcp move: another store has the position"
    )


def test_a_plan_knows_what_was_and_what_is_still_to_be_read_of_the_hub() -> None:
    before = Position(6, "any")
    plan = plan_partition(9, held("0", 5, 10), before)
    assert (plan.before, plan.old, plan.new) == (before, 7, 9)
    assert (plan.after, plan.needs_offset) == (Position(8, ""), True)
    plan = plan_partition("current", held("0", 5, 10), None)
    assert (plan.before, plan.old, plan.new) == (None, 5, 10)
    assert (plan.after, plan.needs_offset) == (Position(9, "of 9"), False)


def test_the_first_retained_event_needs_no_offset_even_of_an_empty_partition() -> None:
    empty = PartitionProperties("0", 200, 200, "of 199", NEWEST)
    assert plan_partition("latest", empty, None).after == Position(199, "of 199")
    assert plan_partition("earliest", empty, None).after == Position(199, "-1")
    assert plan_partition("current", empty, None).after == Position(199, "-1")


@pytest.mark.parametrize(
    ("position", "following"),
    [
        (None, 5),
        (Position(None, "640"), None),
        (CLOSED, None),
        (Position(3), 5),
        (Position(6), 7),
        (Position(9), 10),
        (Position(10), 5),
    ],
)
def test_what_a_group_would_read_next_is_retained(
    position: Position | None, following: int | None
) -> None:
    assert old_next(position, 5, 9) == following


def test_a_group_without_a_checkpoint_begins_where_its_consumers_do() -> None:
    assert [old_next(None, 5, 9, missing) for missing in ("earliest", "latest")] == [5, 10]


def test_a_target_without_a_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="zone"):
        plans_of(datetime(2026, 11, 21))
