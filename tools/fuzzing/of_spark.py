"""Targets: what Spark, its connectors and its users write about positions."""

import json
from collections.abc import Mapping

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark import options as shared
from eventhub_checkpoints.spark import position_formats as formats
from eventhub_checkpoints.spark.offsets import StreamOffset, parse_progress
from eventhub_checkpoints.spark.query_checkpoint import _Reader
from eventhub_checkpoints.spark.source import options
from fuzzing.target import Target, json_of, require_equal, samples, text_of

HUB = "Orders"


class Files:
    """Files of a checkpoint folder, in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def names(self, folder: str) -> list[str] | None:
        """Return the names in a folder; None if it does not exist."""
        start = f"{folder}/"
        found = [name.removeprefix(start) for name in self._files if name.startswith(start)]
        return found or None

    def text(self, name: str) -> str | None:
        """Return the content of a file; None if it does not exist."""
        return self._files.get(name)


def query_checkpoint(data: bytes) -> None:
    """Read the folder of a query: each part of the input is a name, a line break and a file."""
    parts = [part.partition("\n") for part in text_of(data).split("\n--\n")]
    files = Files({name: text for name, _, text in parts})
    for hub in (None, HUB):
        try:
            found = _Reader(files, "folder", hub, None).read()  # type: ignore[arg-type]
        except ConfigurationError:
            continue
        require_equal(all(type(number) is int for number in found.positions.values()), True)


def progress(data: bytes) -> None:
    """Read a query's progress as JSON, and as the dict in it."""
    parse_progress(text_of(data), None)
    parse_progress(json_of(data), HUB)


def connector_positions(data: bytes) -> None:
    """Read the JVM connector's positions; they come back from its own format."""
    found = formats.parse_positions(text_of(data), HUB, "startingPositions")
    again = formats.parse_positions(formats.connector_positions(HUB, found), HUB, "again")
    require_equal(again, found)


def kafka_positions(data: bytes) -> None:
    """Read the positions of Spark's Kafka source; they come back."""
    found = formats.kafka_positions(text_of(data), HUB, "startingOffsets")
    again = formats.kafka_positions(formats.kafka_offsets(HUB, found), HUB, "again")
    require_equal(again, found)


def stream_offset(data: bytes) -> None:
    """Read an offset of this package's source, which Spark gives back from its log."""
    value = json_of(data)
    if isinstance(value, dict):
        found = StreamOffset.from_json(value, HUB, "ns")
        again = StreamOffset.from_json(json.loads(json.dumps(found.to_json())), HUB, "ns")
        require_equal(again.to_json(), found.to_json())
        for partition_id in found.next:
            require_equal(type(found.begin(partition_id, found)), int)


def source_options(data: bytes) -> None:
    """Parse options of the source, each as every kind of value."""
    text = text_of(data)
    given = {"name": text}
    for parse in (
        lambda: options.parse_one_position(given, "name", "earliest"),
        lambda: shared.parse_seconds(given, "name", 1.0),
        lambda: shared.parse_count(given, "name", 1),
        lambda: options.parse_limits(given, "name", HUB),
        lambda: options.parse_by_partition(given, "name", HUB),
        lambda: options.parse_ranges_per_task({"partitionsPerTask": text}),
        lambda: options.parse_settings({"receivePath": text, "prefetchCount": text}),
    ):
        try:
            parse()
        except ConfigurationError:
            continue


KEY = '{"ehName":"Orders","partitionId":0}'
POSITION = {"offset": None, "seqNo": 124, "enqueuedTime": None, "isInclusive": True}
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795244369887}'
OURS = {"0": 124, "1": 9, "_hub": HUB, "_from": {"0": 100}, "_lost": {"1": 2}, "_initial": True}
FOLDER = "\n--\n".join(
    [
        'sources/0/0\n\0v1\n{"Orders":{"0":100}}',
        f'offsets/0\nv1\n{METADATA}\n{{"Orders":{{"0":110,"1":0}}}}',
        f'offsets/1\nv1\n{METADATA}\n{{"Orders":{{"0":120,"1":7}}}}',
        'commits/0\nv1\n{"nextBatchWatermarkMs":0}',
    ]
)
TARGETS = [
    Target(
        "spark-checkpoint",
        query_checkpoint,
        samples(
            FOLDER,
            f"offsets/0\nv2\n{METADATA}\n0:{json.dumps(OURS)}\nname:-\n--\ncommits/0\nv1\n{{}}",
        ),
    ),
    Target(
        "spark-progress",
        progress,
        samples(
            OURS,
            {"Orders": {"0": 124}},
            {"id": "b6a0bd2e", "sources": [{"endOffset": {"Orders": {"0": 124}}}]},
            {"sources": [{"endOffset": '{"Orders":{"0":124}}'}]},
        ),
    ),
    Target(
        "connector-positions",
        connector_positions,
        samples(
            {KEY: POSITION},
            {KEY: {**POSITION, "seqNo": -1, "enqueuedTime": "2026-11-24T10:00:00.123Z"}},
            {KEY: {**POSITION, "seqNo": -1, "offset": "@latest", "isInclusive": False}},
        ),
    ),
    Target("kafka-positions", kafka_positions, samples({HUB: {"0": 124, "1": -2, "2": -1}})),
    Target("stream-offset", stream_offset, samples(OURS, {"0": 124})),
    Target(
        "source-options",
        source_options,
        samples(
            "earliest",
            "PT1M30S",
            "2026-11-24T10:00:00Z",
            "17",
            "fast",
            POSITION,
            {KEY: POSITION},
            {KEY: 100},
        ),
    ),
]
