"""A plan goes from positions and checkpoints to ranges that the hub retains, or says why not."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, Scope
from eventhub_checkpoints.receive import (
    DataLossError,
    HubUnavailableError,
    OffsetRange,
    PartitionProperties,
    ReadSettings,
)
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.read_plan import (
    CheckpointPosition,
    PartitionPositions,
    ReadPlan,
    ahead_of_end,
    at_hand,
    checked_missing,
    created_again,
    expired,
    partition_gone,
    require_checkpoints,
    resolve,
    retained,
    without_checkpoints,
)
from memory_hub import NEWEST, MemoryHub, held, hub_of
from waiting import LIMIT

EARLIER = NEWEST - timedelta(hours=1)
FAIL, GO_ON = ReadSettings(operation_timeout=7.0), ReadSettings(fail_on_data_loss=False)


HUB = hub_of(held("0", 100, 200), held("3", 5, 9))


def planned(
    hub: MemoryHub = HUB,
    stored: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    start: Any = "earliest",
    until: Any = "latest",
    partition_ids: Iterable[str | int] | None = None,
    settings: ReadSettings = FAIL,
    needed: Scope | None = None,
) -> tuple[list[tuple[str, int, int]], Mapping[str, CheckpointPosition]]:
    plan = ReadPlan.checked(partition_ids, start, until)
    ranges, passed = plan.resolve(hub, stored or {}, settings, needed)
    return [
        (each.partition_id, each.from_sequence_number, each.until_sequence_number)
        for each in ranges
    ], passed


def said(error: type[Exception], **given: Any) -> str:
    with pytest.raises(error) as failure:
        planned(**given)
    return str(failure.value)


def test_all_partitions_are_read_from_the_first_event_to_the_end_of_now() -> None:
    assert planned() == ([("0", 100, 200), ("3", 5, 9)], {})


def test_only_the_chosen_partitions_are_asked_about_and_read() -> None:
    hub = hub_of(held("0", 100, 200), held("3", 5, 9))
    assert planned(hub, partition_ids=[3]) == ([("3", 5, 9)], {})
    assert hub.asked == [(["3"], FAIL.operation_timeout)]


def test_partitions_with_checkpoints_are_asked_about_in_the_first_query() -> None:
    hub = hub_of(held("0", 100, 200), held("3", 5, 9))
    planned(hub, {"0": {"sequence_number": 150}, "3": {"sequence_number": 6}})
    assert hub.asked == [(["0", "3"], FAIL.operation_timeout)]


def test_a_partition_without_anything_to_read_has_no_range() -> None:
    assert planned(hub_of(held("0", 200, 200), held("3", 5, 9)))[0] == [("3", 5, 9)]


def test_a_number_is_the_first_event_read_or_the_first_not_read() -> None:
    assert planned(start=150, until=160, partition_ids=["0"])[0] == [("0", 150, 160)]
    starts, untils = {"0": 150, 3: 6}, {"0": 151, "3": 8}
    assert planned(start=starts, until=untils)[0] == [("0", 150, 151), ("3", 6, 8)]


def test_a_checkpoint_takes_precedence_over_the_start() -> None:
    stored = {"0": {"sequence_number": 150, "offset": "any"}}
    assert planned(stored=stored)[0] == [("0", 151, 200), ("3", 5, 9)]


def test_a_checkpoint_behind_the_end_of_the_range_has_read_it_already() -> None:
    stored = {"0": {"sequence_number": 180}, "3": {"sequence_number": 8}}
    assert planned(stored=stored, until={"0": 150, "3": 9})[0] == []
    # Neither is a checkpoint at the end of the hub a mistake.
    assert planned(stored={"0": {"sequence_number": 199}}, until=150, partition_ids=[0])[0] == []


def test_a_start_behind_the_end_of_the_range_is_a_mistake() -> None:
    assert said(ConfigurationError, start=180, until=150, partition_ids=["0"]) == (
        "partition 0: start= is sequence number 180 and until= is 150, so the range ends before "
        "it begins; pass a later until="
    )
    assert planned(start=150, until=150, partition_ids=["0"])[0] == []
    assert "start= is sequence number 200" in said(
        ConfigurationError, start="latest", until=199, partition_ids=["0"]
    )


def test_a_start_behind_the_end_of_the_hub_is_data_loss() -> None:
    assert "201 lies beyond" in said(DataLossError, start=201, until=150, partition_ids=["0"])


def test_a_start_that_has_expired_is_data_loss() -> None:
    assert said(DataLossError, start=40, partition_ids=["0"]) == str(
        expired(HUB, 40, HUB.partitions["0"])
    )


def test_an_end_behind_that_of_the_hub_is_data_loss(caplog: pytest.LogCaptureFixture) -> None:
    message = str(ahead_of_end(HUB, 201, HUB.partitions["0"]))
    assert said(DataLossError, until=201, partition_ids=["0"]) == message
    assert planned(until=201, partition_ids=["0"], settings=GO_ON)[0] == [("0", 100, 200)]
    assert caplog.messages == [message]


def test_a_checkpoint_without_a_position_is_refused() -> None:
    assert said(ConfigurationError, stored={"0": {"offset": None}}) == (
        "the checkpoint of partition 0 has neither a sequence number nor an offset"
    )


def test_a_checkpoint_behind_the_end_of_the_hub_is_data_loss() -> None:
    stored = {"0": {"sequence_number": 200}}
    assert "201 lies beyond" in said(DataLossError, stored=stored, partition_ids=["0"])
    ranges, _ = planned(stored=stored, partition_ids=["0"], settings=GO_ON)
    assert ranges == [("0", 100, 200)]


def test_the_last_event_of_a_partition_that_begins_at_its_end_counts_as_handed_out() -> None:
    hub = hub_of(held("0", 100, 200), held("1", 0, 1), held("2", 0, 0), held("3", 5, 9))
    stored = {"3": {"sequence_number": 6}}
    assert planned(hub, stored, start="latest") == (
        [("3", 7, 9)],
        {"0": CheckpointPosition(199, "of 199"), "1": CheckpointPosition(0, "of 0")},
    )


def test_an_unknown_offset_is_none_in_what_counts_as_handed_out() -> None:
    hub = hub_of(PartitionProperties("0", 5, 9, "", None))
    assert planned(hub, start="latest")[1] == {"0": CheckpointPosition(8, None)}


def test_every_partition_needs_a_checkpoint_if_one_is_needed() -> None:
    needed = Scope("ns", "orders", "billing")
    hub = hub_of(held("0", 100, 200), held("1", 0, 1), held("2", 0, 0), held("3", 5, 9))
    stored = {"0": {"sequence_number": 150}}
    assert said(ConfigurationError, hub=hub, stored=stored, needed=needed) == (
        "the store has no checkpoint of 'ns/orders/billing' for partition 1, 3, which "
        "missing='error' requires; set missing='start' to begin at the start position"
    )
    stored = {id_: {"sequence_number": 0} for id_ in "13"} | stored
    assert planned(hub, stored, needed=needed, settings=GO_ON)[0] == [("0", 151, 200), ("3", 5, 9)]


def test_a_partition_with_a_checkpoint_that_is_gone_is_data_loss() -> None:
    stored = {"7": {"sequence_number": 41}, "5": {"offset": "640"}}
    with pytest.raises(DataLossError) as failure:
        planned(stored=stored)
    assert (failure.value.partition_id, failure.value.requested) == ("5", 1)
    assert planned(stored=stored, settings=GO_ON)[0] == [("0", 100, 200), ("3", 5, 9)]
    # Who chooses partitions does not ask for the others.
    assert planned(stored=stored, partition_ids=["3"])[0] == [("3", 5, 9)]


def test_of_a_partition_that_is_gone_the_next_event_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    planned(stored={"7": {"sequence_number": 41}}, settings=GO_ON)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.messages == [str(partition_gone(HUB, "7", 42, ["0", "3"]))]
    with pytest.raises(DataLossError) as failure:
        planned(stored={"7": {"sequence_number": 41}})
    assert failure.value.requested == 42


def test_a_position_of_a_partition_that_is_not_read_is_refused() -> None:
    for name in ("start", "until"):
        positions = {name: {"0": 100, "3": 5, "10": 1, "9": 1}}
        assert said(ConfigurationError, **positions) == (
            f"{name} names partition 9, 10, which is not among those that are read: 0, 3"
        )


def test_a_partition_without_a_position_is_refused() -> None:
    assert said(ConfigurationError, start={"0": 100}) == (
        "start has no position for partition 3; add one, or pass the partitions to read as "
        "partition_ids="
    )
    assert said(ConfigurationError, until={"0": 100}).startswith("until has no position")


def test_what_is_no_position_is_refused_with_what_is_expected() -> None:
    for name in ("start", "until"):
        assert said(ConfigurationError, **{name: "soon"}) == (
            f"'soon' is not a position; expected for {name}= a sequence number, 'earliest', "
            "'latest', a datetime with a time zone or an EventPosition, or a dict of these by "
            "partition id"
        )
        assert "'x'; expected decimal numbers" in said(ConfigurationError, **{name: {"x": 5}})


def test_one_position_is_that_of_every_partition() -> None:
    position = EventPosition.from_sequence_number(5, inclusive=True)
    found = PartitionPositions.checked("until", 5)
    assert found == PartitionPositions("until", position)
    assert found.of("0") == found.of("3") == position


def test_positions_of_partitions_are_kept_in_numeric_order() -> None:
    positions = PartitionPositions.checked("start", {"10": 1, 9: 2}).positions
    assert positions is not None
    assert [*positions] == ["9", "10"]


def test_a_time_or_an_offset_is_looked_up_where_the_properties_do_not_tell() -> None:
    hub = hub_of(held("0", 100, 200), held("3", 5, 9), p0=170, p3=7)
    assert planned(hub, start=EARLIER)[0] == [("0", 170, 200), ("3", 7, 9)]
    timeout = FAIL.operation_timeout
    assert sorted(hub.looked_up) == [("0", EARLIER, True, timeout), ("3", EARLIER, True, timeout)]

    hub = hub_of(held("0", 100, 200), held("3", 5, 9), p0=160)
    start = {"0": EventPosition.from_offset("640"), "3": 6}
    assert planned(hub, start=start)[0] == [("0", 160, 200), ("3", 6, 9)]
    assert hub.looked_up == [("0", "640", False, timeout)]


def test_an_end_is_looked_up_as_a_start_is() -> None:
    hub = hub_of(held("0", 100, 200), p0=170)
    assert planned(hub, until=EARLIER)[0] == [("0", 100, 170)]


def test_a_position_where_no_event_arrives_is_no_answer() -> None:
    hub = hub_of(held("0", 100, 200), p0=None)
    assert "partition 0 of ns/orders delivered no event" in said(
        HubUnavailableError, hub=hub, start=EARLIER
    )


def test_a_query_has_a_second_more_than_its_limit_and_is_named_by_its_partition() -> None:
    released = Event()

    class HungHub(MemoryHub):
        def ask_first(self, *_: Any) -> int | None:
            released.wait(LIMIT)
            return None

    hub = HungHub({"0": held("0", 100, 200)})
    positions = {"0": EventPosition.from_enqueued_time(EARLIER)}
    with pytest.raises(HubUnavailableError) as failure:
        resolve(hub, positions, hub.partitions, 0.0)
    released.set()
    assert str(failure.value) == (
        "partition 0 of ns/orders gave no answer within 1 s; does the hub exist, and can it be "
        "reached?"
    )


@pytest.mark.parametrize(
    ("position", "number"),
    [
        (EventPosition.from_enqueued_time(NEWEST), None),
        (EventPosition.from_offset("of 199"), 200),
        (EventPosition.from_offset("of 199", inclusive=True), 199),
        (EventPosition.from_offset("640"), None),
    ],
)
def test_without_a_time_of_the_newest_event_a_time_has_to_be_looked_up(
    position: EventPosition, number: int | None
) -> None:
    assert at_hand(position, PartitionProperties("0", 100, 200, "of 199", None)) == number


FOUND = held("0", 100, 200)


@pytest.mark.parametrize(
    ("loss", "fields", "text"),
    [
        (
            lambda: expired(HUB, 40, FOUND, until=50),
            ("0", 40, 100),
            "partition 0 of ns/orders: sequence number 40 has expired; the first retained is 100, "
            "so 10 events are lost. Start from 'earliest', or set failOnDataLoss=false (outside "
            "Spark: fail_on_data_loss=False) to go on with what is left",
        ),
        (
            lambda: expired(HUB, 40, FOUND),
            ("0", 40, 100),
            "partition 0 of ns/orders: sequence number 40 has expired; the first retained is 100, "
            "so 60 events are lost. Start from 'earliest', or set failOnDataLoss=false (outside "
            "Spark: fail_on_data_loss=False) to go on with what is left",
        ),
        (
            lambda: ahead_of_end(HUB, 201, FOUND),
            ("0", 201, 100),
            "partition 0 of ns/orders: sequence number 201 lies beyond the end of the partition, "
            "whose next event gets 200. Was the hub deleted and created again? Then its "
            "checkpoints belong to the old one: reset them, start from 'earliest', or set "
            "failOnDataLoss=false (outside Spark: fail_on_data_loss=False) to read "
            "the new one from its first event. A range or position of yours may be of another hub",
        ),
        (
            lambda: created_again(HUB, FOUND, 150, "10:00", "11:00"),
            ("0", 150, 100),
            "ns/orders was deleted and created again: the checkpoint is of the hub that was "
            "created at 10:00, and the present one was created at 11:00, so its sequence numbers "
            "are those of other events. Start with a new checkpointLocation, or set "
            "failOnDataLoss=false to read the new hub from its first event",
        ),
        (
            lambda: partition_gone(HUB, "7", 42, ["0", "3"]),
            ("7", 42, 0),
            "ns/orders has no partition 7 any more, it has 0, 3. Was the hub deleted and created "
            "again? Then its checkpoints belong to the old one: reset them, or set "
            "failOnDataLoss=false (outside Spark: fail_on_data_loss=False) to go on "
            "with the partitions that are there",
        ),
    ],
    ids=[
        "expired within a range",
        "expired",
        "ahead of the end",
        "created again",
        "partition gone",
    ],
)
def test_a_loss_tells_partition_events_and_what_to_do(
    loss: Callable[[], DataLossError], fields: tuple[str, int, int], text: str
) -> None:
    error = loss()
    assert (error.partition_id, error.requested, error.first_retained) == fields
    assert str(error) == text


def test_an_empty_range_behind_the_end_is_data_loss_too() -> None:
    with pytest.raises(DataLossError) as failure:
        retained(HUB, FAIL, FOUND, 201, 201)
    assert str(failure.value) == str(ahead_of_end(HUB, 201, FOUND))


@pytest.mark.parametrize(
    ("start", "end", "taken"),
    [
        (99, 200, (100, 200)),
        (40, 100, (100, 100)),
        (40, 60, (100, 100)),
        (40, 40, (40, 40)),  # an empty range loses nothing
        (200, 200, (200, 200)),
        (201, 250, (100, 200)),
        (150, 201, (150, 200)),
        (100, 101, (100, 101)),
    ],
)
def test_a_range_moves_into_what_is_retained_where_loss_is_allowed(
    start: int, end: int, taken: tuple[int, int]
) -> None:
    assert retained(HUB, GO_ON, held("0", 100, 200), start, end) == OffsetRange("0", *taken)


def test_missing_is_one_of_two_words() -> None:
    assert [checked_missing("missing", word) for word in ("start", "error")] == ["start", "error"]
    with pytest.raises(ConfigurationError) as failure:
        checked_missing("missing", "stop")
    assert str(failure.value) == "missing is 'stop'; expected 'start' or 'error'"


def test_a_scope_without_checkpoints_is_told_with_those_that_have_some() -> None:
    scope = Scope("ns", "orders", "biling")
    others = [Scope("ns", "orders", f"group {number}") for number in range(12)]
    same = Scope("NS", "Orders", "biling")
    first = "the store has no checkpoint of 'ns/orders/biling'"
    assert without_checkpoints(scope, None) == first
    assert without_checkpoints(scope, [same]) == (
        f"{first}, and holds no other hub or consumer group"
    )
    assert without_checkpoints(scope, [same, *others[:2]]) == (
        f"{first}; it holds 'ns/orders/group 0', 'ns/orders/group 1'. Is a name misspelt?"
    )
    ten = ", ".join(f"'ns/orders/group {number}'" for number in range(10))
    assert without_checkpoints(scope, others[:10]) == (
        f"{first}; it holds {ten}. Is a name misspelt?"
    )
    assert without_checkpoints(scope, others) == (
        f"{first}; it holds {ten} and 2 more. Is a name misspelt?"
    )


def test_long_names_are_shown_with_at_most_300_characters() -> None:
    scope, other = (Scope("ns", "orders", letter * 400) for letter in "ab")
    shown, shown_other = (f"'ns/orders/{letter * 286}..." for letter in "ab")
    assert without_checkpoints(scope, [other]) == (
        f"the store has no checkpoint of {shown}; it holds {shown_other}. Is a name misspelt?"
    )
    with pytest.raises(ConfigurationError) as failure:
        require_checkpoints(scope, {}, {"0": held("0", 0, 1)})
    assert str(failure.value).startswith(f"the store has no checkpoint of {shown} for partition 0,")
