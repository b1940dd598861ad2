"""What is no argument of a function is refused at once, by its name, and is not shown."""

import pytest

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, Scope
from eventhub_checkpoints.spark import (
    CheckpointPublisher,
    EventPosition,
    ExactlyOnce,
    HubRanges,
    OffsetRange,
    StagingTable,
    StartingPositions,
    gap_report,
    parse_progress,
    ranges_by_task,
    ranges_of,
    read_spark_checkpoint,
    starting_positions,
)

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")
SECRET = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKey=dG9wIHNlY3JldA=="
FIRST = OffsetRange("0", 0, 3)
BEGIN = EventPosition.from_start_of_stream()


def publisher():
    return CheckpointPublisher(MemoryCheckpointStore(), SCOPE)


def steps(*args):
    """Called, it has done nothing."""
    yield args


async def later(*args):
    """Called, it has done nothing."""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: starting_positions(MemoryCheckpointStore(), SECRET, ["0"]),
            "scope is of type str",
        ),
        (lambda: StartingPositions("", {"0": BEGIN}), "eventhub_name is of type str"),
        (
            lambda: StartingPositions("Orders", {"0": 5}),
            "the position of partition 0 is of type int",
        ),
        (lambda: StartingPositions("Orders", [BEGIN]), "positions is of type list"),
        (lambda: OffsetRange(0, 0, 3), "partition id, such as '0'"),
        (lambda: OffsetRange("0", "0", "3"), "two sequence numbers"),
        (lambda: OffsetRange("0", -5, 3), "sequence numbers of at least 0"),
        (lambda: OffsetRange("0", 5, 3), "until_sequence_number is 3; expected 5 or more"),
        (lambda: HubRanges(None, [FIRST]), "eventhub_name is of type NoneType"),
        (lambda: HubRanges("Orders", [("0", 0, 3)]), "a range is of type tuple"),
        (lambda: ranges_of(None), "frame is of type NoneType; expected a DataFrame"),
        (lambda: ranges_by_task([1]), "frame is of type list; expected a DataFrame"),
        (lambda: gap_report(None, SECRET), "positions is of type NoneType"),
        (lambda: parse_progress({"0": 1}, 5), "hub is of type int"),
        (lambda: parse_progress({"sources": [{}]}, "Orders", source="0"), "source is '0'"),
        (lambda: read_spark_checkpoint(None), "location is of type NoneType; expected a path"),
        (lambda: publisher().attach(SECRET), "spark is of type str; expected a SparkSession"),
        (lambda: publisher().observe(None), "frame is of type NoneType; expected a DataFrame"),
        (lambda: ExactlyOnce("sqlite://", SCOPE, None), "write is of type NoneType"),
        (lambda: ExactlyOnce("sqlite://", SCOPE, steps), "connection and rows, without async and"),
        (lambda: ExactlyOnce("sqlite://", SCOPE, later), "connection and rows, without async and"),
        (lambda: ExactlyOnce("sqlite://", SCOPE, print, transform=5), "transform is of type int"),
        (
            lambda: ExactlyOnce("sqlite://", SCOPE, print, transform=steps),
            "a function of a DataFrame, without async and yield",
        ),
        (lambda: ExactlyOnce("sqlite://", SCOPE, print, ranges=5), "ranges is of type int"),
        (
            lambda: ExactlyOnce("sqlite://", SCOPE, print, ranges=later),
            "a function of a DataFrame and a batch id, without async",
        ),
        (lambda: StagingTable(None), "staging table is None"),
    ],
)
def test_an_argument_of_another_kind_is_named(call, said):
    with pytest.raises(ConfigurationError) as caught:
        call()
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
