"""What the offset of one streaming source says about hubs.

Three shapes are known, all of them *next* sequence numbers by partition id:

    {"Orders": {"0": 124, "1": 7}}              the JVM connector and Spark's Kafka source
    {"0": 124, "1": 7, "_hub": "Orders"}        this package's own source
    None, 'None', 'null'                        no offset yet

Spark gives them as text or as what the text holds, by version and by place. Keys that begin with
`_` are notes of the source's own and say nothing about positions; no hub's name begins so.

Source: azure-event-hubs-spark 2.3.22, `JsonUtils.partitionSeqNos`; Spark 4.3.0,
`kafka010/JsonUtils.partitionOffsets` and `pyspark/sql/streaming/listener.py`, `SourceProgress`.
"""

import json
from collections.abc import Iterable, Mapping

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import is_partition_id, is_sequence_number
from eventhub_checkpoints.spark.progress.stream_offset import HUB

NO_OFFSET = frozenset({"", "None", "null"})

ByHub = dict[str | None, dict[str, int]]
"""Next sequence numbers by partition id, by hub; None is a hub that the offset does not name."""


def of_hub(offset: object, hub: str | None) -> dict[str, int]:
    """The next sequence numbers of one hub in one offset; none where there is no offset.

    Raises:
        ConfigurationError: it is no offset of an event hub, or of other hubs only.
    """
    if offset is None:
        return {}
    found = by_hub(offset)
    if not found:
        raise ConfigurationError(
            'the progress is no offset of an event hub; expected such as {"Orders":{"0":124}} or '
            '{"0":124}, or a whole StreamingQueryProgress'
        )
    name = matching(found, hub)
    if name not in found:
        raise ConfigurationError(f"the progress is of {told(found)}, not of hub {quoted(hub)}")
    return found[name]


def by_hub(offset: object) -> ByHub:
    """The hubs in one offset; none where it is the offset of some other kind of source."""
    if not isinstance(offset, Mapping):
        return {}
    if is_numbers(offset):
        name = offset.get(HUB)
        return {name if isinstance(name, str) else None: in_order(offset)}
    hubs = {name: value for name, value in offset.items() if is_name(name)}
    if all(is_numbers(value) for value in hubs.values()):
        return {name: in_order(value) for name, value in hubs.items()}
    return {}


def matching(found: ByHub, hub: str | None) -> str | None:
    """Under which name a hub stands in an offset: exactly, else in another case, else unnamed.

    Raises:
        ConfigurationError: two names differ in nothing but case, or the hub is not said and there
            are several.
    """
    if hub in found:
        return hub
    same = [name for name in found if name and (hub is None or name.casefold() == hub.casefold())]
    if len(same) > 1:
        raise ConfigurationError(
            f"the progress is of {told(found)}; give the name of one of them, as it is written here"
        )
    return same[0] if same else None


def is_numbers(value: object) -> bool:
    """Whether these are next sequence numbers by partition id, notes aside."""
    return isinstance(value, Mapping) and all(
        not is_name(key) or (is_partition_id(key) and is_sequence_number(number))
        for key, number in value.items()
    )


def is_name(key: object) -> bool:
    """Whether this is a hub or a partition and no note."""
    return not str(key).startswith("_")


def in_order(numbers: Mapping[str, int]) -> dict[str, int]:
    """The numbers without the notes, partitions in numeric order."""
    partitions = sorted((key for key in numbers if is_name(key)), key=int)
    return {partition: numbers[partition] for partition in partitions}


def told(names: Iterable[str | None]) -> str:
    """The hubs, for an error."""
    known = sorted({repr(name) for name in names if name is not None})
    return f"hub {', '.join(known)}" if known else "no event hub that is named"


def decoded(value: object) -> object:
    """What a JSON text holds; any other text or value as it is; None for the words of no offset."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in NO_OFFSET:
        return None
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return found
