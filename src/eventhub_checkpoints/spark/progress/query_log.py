"""One file of the log that a streaming query keeps in `offsets/`.

Source: Spark 4.3.0, `execution/streaming/checkpointing/OffsetSeqLog`, `HDFSMetadataLog`.
"""

from collections.abc import Mapping

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark.progress.offsets import decoded, in_order, is_numbers
from eventhub_checkpoints.spark.progress.stream_offset import FROM

VOID = "-"
"""Spark's word for a source without an offset."""


def read_offsets(text: str, what: str) -> list[tuple[str, object]]:
    """The sources in one file of `offsets/`: the name of each one's folder, and its offset.

    Version 1 has a line per source, in the order of the plan; version 2 a line `NAME:OFFSET`.

    Raises:
        ConfigurationError: it is in neither format.
    """
    version, *lines = text.rstrip("\n").split("\n")
    if version == "v1":
        pairs = [(str(index), line) for index, line in enumerate(lines[1:])]
    elif version == "v2":
        named = [line.partition(":") for line in lines[1:]]
        pairs = sorted(((name, line) for name, _, line in named), key=place)
    else:
        raise ConfigurationError(f"{what} begins with {quoted(version)}; known are v1 and v2")
    return [(name, None if line == VOID else decoded(line)) for name, line in pairs]


def place(pair: tuple[str, str]) -> tuple[int, str]:
    """Sources without a name of their own have their number in the plan."""
    name = pair[0]
    return (int(name) if name.isdecimal() else -1, name)


def read_initial(text: str) -> object:
    """The offset in `sources/I/0`: a zero byte where Kafka's source wrote it, version, offset."""
    return decoded(text.removeprefix("\0").partition("\n")[2])


def noted_begins(offset: object) -> dict[str, int]:
    """Where our own source notes that partitions begin in the batch that ends at this offset."""
    noted = offset.get(FROM) if isinstance(offset, Mapping) else None
    return in_order(noted) if isinstance(noted, Mapping) and is_numbers(noted) else {}


def begin_of_new(offset: object, until: int) -> int:
    """Where a partition begins that was not there before: ours would have noted it."""
    return until if is_numbers(offset) else 0
