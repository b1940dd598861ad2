"""Words that stand where the offset of an event would: every one that a known program uses.

An offset is opaque, so nothing in a string itself tells a word from an offset. Every reader of a
stored position, and every parser of an offset, decides by this table, which
`docs/reference/wire-format.md` repeats.

Source: azure-event-hubs-go 3, `persist/checkpoint.go` and `storage/storage.go`,
`WithInitialCheckpoint`; azure-event-hubs-java, `AzureBlobLease.java` and `PartitionContext.java`;
azure-event-hubs-python 1, `checkpoint.py` and `partition_context.py`, `get_initial_offset_async`;
event-processor-host of JavaScript, `checkpointInfo.ts`; azure-sdk-for-net, pull requests 10700,
41911, 43659 and issue 49318; toketi-iothubreact 0.9, `IoTHubPartition.scala`; azure-eventhub
5.15.1, `_eventprocessor/_eventprocessor_mixin.py`; azure-eventhub-checkpointstoreblob 1.2.0.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

START_OF_STREAM: Final = "-1"
"""Before the oldest event of a partition, for every hub and every official client."""
END_OF_STREAM: Final = "@latest"
"""After the newest event of a partition at the moment at which the link is opened."""


class Meaning(StrEnum):
    """What a word stands for.

    Attributes:
        START: the beginning of a partition.
        END: the end of a partition.
        UNKNOWN: nothing; the offset was not known to the writer.
    """

    START = "start of stream"
    END = "end of stream"
    UNKNOWN = "unknown"


class OffsetWord(NamedTuple):
    """One word.

    Attributes:
        text: compared exactly; every SDK does.
        is_taken: whether a hub accepts it where it accepts an offset.
        users: who writes it, or takes it in a configuration.
    """

    text: str
    meaning: Meaning
    is_taken: bool
    users: str


OFFSET_WORDS = (
    OffsetWord(
        START_OF_STREAM,
        Meaning.START,
        True,
        "Event Processor Hosts, Dapr and iothub-react that have processed nothing; ehcp reset to "
        "the first retained event; a hub, as the last offset of an empty partition",
    ),
    OffsetWord(
        END_OF_STREAM,
        Meaning.END,
        True,
        "Event Processor Hosts of Go and Python, and Dapr, that start at the end and have "
        "processed nothing",
    ),
    OffsetWord("", Meaning.UNKNOWN, False, ".NET 5.11.0 to 5.11.2; .NET leases; this package"),
    OffsetWord("no offset", Meaning.UNKNOWN, False, ".NET 5.11.3 to 5.11.6"),
    OffsetWord("None", Meaning.UNKNOWN, False, "the official Python store"),
    OffsetWord(
        "{offset checkpoint not found}",
        Meaning.UNKNOWN,
        False,
        "iothub-react that has processed nothing",
    ),
    OffsetWord("earliest", Meaning.START, False, "configurations: this package, Kafka"),
    OffsetWord("beginning", Meaning.START, False, "configurations: Logstash"),
    OffsetWord("latest", Meaning.END, False, "configurations: this package, Kafka"),
    OffsetWord("end", Meaning.END, False, "configurations: Logstash"),
    OffsetWord("$latest", Meaning.END, False, "configurations, by mistake for @latest"),
)
"""The table, in the order in which the documentation shows it."""

BY_TEXT: Mapping[object, OffsetWord] = {word.text: word for word in OFFSET_WORDS}
UNKNOWN = frozenset(word.text for word in OFFSET_WORDS if word.meaning is Meaning.UNKNOWN)


def meaning_of(offset: object) -> Meaning | None:
    """Return what a word stands for; None if the table lacks it, so that it is an offset."""
    word = BY_TEXT.get(offset) if isinstance(offset, str) else None
    return None if word is None else word.meaning


def is_unknown(offset: str) -> bool:
    """Return whether a string stands for an offset that its writer did not know."""
    return offset in UNKNOWN


def is_taken(offset: str) -> bool:
    """Return whether a hub may accept a string as a position: it is an offset, or such a word."""
    return offset not in BY_TEXT or BY_TEXT[offset].is_taken


def is_of_a_new_lease(offset: object, sequence_number: int | None) -> bool:
    """Return whether a lease has this position from before its program processed any event.

    Leases are created with a word and the number 0 or -1, so a number of 0 is that of an event
    only beside an offset. In rows of checkpoints, which are written after an event, it always is.
    """
    is_word = offset is None or meaning_of(offset) is not None
    return is_word and (sequence_number is None or sequence_number <= 0)
