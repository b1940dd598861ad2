"""Offsets of a streaming query's sources, and the positions of a hub in its progress.

Each source has its own JSON: the JVM connector and Kafka's name the hub or topic
(`{"Orders":{"0":124}}`), this package's source does not nest (`{"0":124,"_hub":"Orders"}`). The
numbers are those of the next event to read.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import is_partition_id, is_sequence_number

FROM = "_from"
HUB = "_hub"
INITIAL = "_initial"
LOST = "_lost"
NAMESPACE = "_namespace"
CREATED = "_created"
"""Metadata of this package's source in an offset: keys that begin with `_`."""


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Offset of this package's source.

    Attributes:
        hub: the hub's name.
        next: sequence number of the next event to read, by partition id.
        begins: where partitions begin in the batch that ends here, if not at the end of the batch
            before.
        lost: number of events that were gone when a batch was planned, or planned again after a
            restart, by partition id, since the query was new. Events that expire after that, before
            a task reads them, are only logged: a task cannot report to the driver.
        is_initial: whether the first batch starts here, so that no batch ends here.
        namespace: see `Address.lasting_namespace`; "" too in offsets of earlier versions.
        created: when the hub was created, ISO 8601; "" if unknown.
    """

    hub: str
    next: Mapping[str, int]
    begins: Mapping[str, int] = dataclasses.field(default_factory=dict)
    lost: Mapping[str, int] = dataclasses.field(default_factory=dict)
    is_initial: bool = False
    namespace: str = ""
    created: str = ""

    @classmethod
    def from_json(cls, value: object, hub: str, namespace: str) -> Self:
        """Parse the output of `to_json`.

        Args:
            value: the output; or what another source or an accident has put in its place.
            hub: the hub's name in the options.
            namespace: see `Address.lasting_namespace`; "" is compared with nothing.

        Raises:
            ConfigurationError: it belongs to another hub, namespace or source.
        """
        if not isinstance(value, Mapping) or not value:
            raise foreign_checkpoint(quoted(value))
        for key, kind in METADATA.items():
            if not isinstance(value.get(key, kind()), kind):
                raise foreign_checkpoint(f"{quoted(value[key])} as {key}")
        for what, key, name in (("hub", HUB, hub), ("namespace", NAMESPACE, namespace)):
            stored = value.get(key, name)
            if key == NAMESPACE:
                # Earlier versions kept the path of an endpoint such as sb://NAMESPACE/HUB.
                stored = stored.partition("/")[0]
            if name and stored.lower() != name.lower():
                raise ConfigurationError(
                    f"the query's checkpoint belongs to {what} {quoted(stored)}, and the options "
                    f"name {quoted(name)}; give a query on another hub its own checkpointLocation"
                )
        numbers = {key: number for key, number in value.items() if not key.startswith("_")}
        begins, lost = value.get(FROM, {}), value.get(LOST, {})
        if not all(map(is_numbers, (numbers, begins, lost))):
            foreign = [key for key in numbers if not is_numbers({key: numbers[key]})]
            raise foreign_checkpoint(quoted((foreign or [FROM])[0]))
        return cls(
            hub,
            numbers,
            in_order(begins),
            in_order(lost),
            value.get(INITIAL, False),
            namespace,
            value.get(CREATED, ""),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the dict that is passed to Spark."""
        metadata: dict[str, Any] = {HUB: self.hub}
        if self.created:
            metadata[CREATED] = self.created
        if self.begins:
            metadata[FROM] = in_order(self.begins)
        if self.is_initial:
            metadata[INITIAL] = True
        if self.lost:
            metadata[LOST] = in_order(self.lost)
        if self.namespace:
            metadata[NAMESPACE] = self.namespace
        return in_order(self.next) | dict(sorted(metadata.items()))

    def is_of(self, created: str) -> bool:
        """Return whether this offset is of the hub that was created then, as far as is known."""
        return not (self.created and created) or self.created == created

    def begin(self, partition_id: str, previous: Self) -> int:
        """Return where a partition begins in the batch from `previous` to this offset.

        A partition that neither offset names has nothing to read.
        """
        end = self.next[partition_id]
        return self.begins.get(partition_id, previous.next.get(partition_id, end))


METADATA: Mapping[str, type] = {
    HUB: str,
    NAMESPACE: str,
    CREATED: str,
    INITIAL: bool,
    FROM: dict,
    LOST: dict,
}
"""Types of the metadata in an offset of this package's source."""


def foreign_checkpoint(found: str) -> ConfigurationError:
    """Return the error for an offset that this package's source has not written.

    Args:
        found: what is in it, for the message.
    """
    return ConfigurationError(
        f"the query's checkpoint was written by another source (it has {found}); give the query a "
        "new checkpointLocation, and begin where the old one stopped with read_spark_checkpoint"
    )


ByHub = dict[str | None, dict[str, int]]
"""Next sequence numbers by hub and partition id; the key None is a hub that is not named."""


def is_metadata(key: object) -> bool:
    """Return whether the key is neither a hub nor a partition."""
    return str(key).startswith("_")


def is_numbers(value: object) -> bool:
    """Return whether these are next sequence numbers by partition id, metadata aside."""
    return isinstance(value, Mapping) and all(
        is_metadata(key) or (is_partition_id(key) and is_sequence_number(number))
        for key, number in value.items()
    )


def in_order(numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers without the metadata, partitions in numeric order."""
    partitions = sorted((key for key in numbers if not is_metadata(key)), key=int)
    return {partition: numbers[partition] for partition in partitions}


def by_hub(offset: object) -> ByHub:
    """Return the hubs in one offset; `{}` for the offset of another kind of source."""
    if not isinstance(offset, Mapping):
        return {}
    if is_numbers(offset):
        name = offset.get(HUB)
        return {name if isinstance(name, str) else None: in_order(offset)}
    hubs = {name: value for name, value in offset.items() if not is_metadata(name)}
    if all(is_numbers(value) for value in hubs.values()):
        return {name: in_order(value) for name, value in hubs.items()}
    return {}


def namespace_of(offset: object) -> str:
    """Return the namespace that an offset of this package's source names; "" if it names none."""
    name = offset.get(NAMESPACE) if isinstance(offset, Mapping) else None
    return name if isinstance(name, str) else ""


def hub_and_namespace(offset: object) -> str:
    """Return the hubs of one offset for messages; "" if it is not an offset of an event hub."""
    if not (hubs := by_hub(offset)):
        return ""
    namespace = namespace_of(offset)
    return _names(hubs) + (f" in {quoted(namespace)}" if namespace else "")


def of_hub(offset: object, hub: str | None) -> dict[str, int]:
    """Return the next sequence numbers of one hub in one offset; `{}` without an offset.

    Raises:
        ConfigurationError: it is not an offset of an event hub, or it is of other hubs only.
    """
    if offset is None:
        return {}
    hubs = by_hub(offset)
    if not hubs:
        raise ConfigurationError(
            "the progress is not an offset of an event hub; expected for "
            'example {"Orders":{"0":124}} or {"0":124}, or a whole StreamingQueryProgress'
        )
    name = matching(hubs, hub)
    if name not in hubs:
        raise ConfigurationError(f"the progress is of {_names(hubs)}, not of hub {quoted(hub)}")
    return hubs[name]


def matching(hubs: ByHub, hub: str | None) -> str | None:
    """Return the name of a hub in an offset: exact, else in another case, else None (not named).

    Raises:
        ConfigurationError: two names differ in case only, or `hub` is None and there are several.
    """
    if hub in hubs:
        return hub
    same = [name for name in hubs if name and (hub is None or name.casefold() == hub.casefold())]
    if len(same) > 1:
        raise ConfigurationError(
            f"the progress is of {_names(hubs)}; pass one of these names, in the same spelling"
        )
    return same[0] if same else None


def _names(hubs: Iterable[str | None]) -> str:
    """Return the hubs' names for an error message."""
    known = sorted({repr(name) for name in hubs if name is not None})
    return f"hub {', '.join(known)}" if known else "no named event hub"


def sources_of_hub(offsets: Sequence[object], hub: str | None) -> list[int]:
    """Return the indexes of the sources that read a hub; those that name it take precedence."""
    hubs = [by_hub(offset) for offset in offsets]
    names = [matching(each, hub) for each in hubs]
    named = [index for index, name in enumerate(names) if name is not None]
    return named or [index for index, name in enumerate(names) if name in hubs[index]]


def source_of_hub(
    offsets: Sequence[object], hub: str | None, source: int | None = None
) -> int | None:
    """Return the index of the source that reads this hub.

    None if no source reads it yet, but a source without an offset may do so later.

    Args:
        offsets: the offset of each source of a query.
        hub: the hub's name; None: the only one.
        source: the index, if the caller knows it.

    Raises:
        ConfigurationError: no source reads this hub, several do, or there is no such source.
    """
    if source is not None:
        if not (isinstance(source, int) and 0 <= source < len(offsets)):
            raise ConfigurationError(
                f"source is {quoted(source)}; the query has {len(offsets)} sources, counted from 0"
            )
        return source
    which = "a hub" if hub is None else f"hub {quoted(hub)}"
    several = sources_of_hub(offsets, hub)
    if len(several) > 1:
        raise ConfigurationError(
            f"sources {', '.join(map(str, several))} of the query all read {which}; choose one, "
            f"for example source={several[0]}"
        )
    if several or any(offset is None for offset in offsets):
        return several[0] if several else None
    raise ConfigurationError(
        f"no source of the query reads {which}; its {len(offsets)} sources read "
        f"{_names(name for offset in offsets for name in by_hub(offset))}"
    )


def decoded(value: object) -> object:
    """Parse a JSON string; return None for no offset, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in ("", "None", "null"):
        return None
    try:
        parsed: object = parse_json(text)
    except ValueError:
        return text
    return parsed


def field(value: object, name: str, default: object = None) -> object:
    """Return a field of a dict (PySpark 4) or an object (PySpark 3)."""
    if isinstance(value, Mapping):
        return value.get(name, default)
    return getattr(value, name, default)


def end_offset(value: object) -> object:
    """Return the end offset of a source's progress, or the value itself if it is not one."""
    end = field(value, "endOffset", value)
    return value if end is value else decoded(end)


def last_events(following: Mapping[str, int]) -> dict[str, int]:
    """Return the last sequence numbers before these; a partition without one is left out."""
    return {partition: number - 1 for partition, number in following.items() if number > 0}


@with_checked_arguments
def parse_progress(
    progress: object, hub: str | None, *, source: int | None = None
) -> dict[str, int]:
    """Return the sequence number of the last committed event of each partition.

    Args:
        progress: the offset of one source, or the whole `StreamingQueryProgress`: the object, its
            dict or its JSON. Of a whole progress, the end offset is read.
        hub: the name of the hub or topic, compared without regard to case; None selects the only
            one that there is.
        source: index of the query's source, from 0; needed if several sources read this hub.

    Returns:
        Numbers by partition id, in numeric order. A partition without a committed event is left
        out, so no offset at all gives `{}`.

    Raises:
        ConfigurationError: it is not the progress of such a source, no source of the query reads
            this hub, or more than one does.
    """
    require_type("hub", hub, hub is None or isinstance(hub, str), "the hub's name, or None")
    value = decoded(progress)
    sources = sources_of(value)
    if sources is None:
        return last_events(of_hub(end_offset(value), hub))
    offsets = [end_offset(each) for each in sources]
    index = source_of_hub(offsets, hub, source)
    return {} if index is None else last_events(of_hub(offsets[index], hub))


def sources_of(progress: object) -> list[object] | None:
    """Return the sources in a query's progress; None if it is not a whole progress."""
    sources = field(progress, "sources")
    if isinstance(sources, str) or not isinstance(sources, Sequence):
        return None
    return [decoded(each) for each in sources]


@dataclass(frozen=True, slots=True)
class BehindLatest:
    """How far a query was behind the end of its hub, as of its progress.

    Attributes:
        by_partition: number of events that are not committed, by partition id; never empty.
    """

    by_partition: Mapping[str, int]

    @property
    def min(self) -> int:
        """Events of the partition with the fewest."""
        return min(self.by_partition.values())

    @property
    def avg(self) -> float:
        """Events of a partition on average."""
        return sum(self.by_partition.values()) / len(self.by_partition)

    @property
    def max(self) -> int:
        """Events of the partition with the most."""
        return max(self.by_partition.values())


@with_checked_arguments
def behind_latest(
    progress: object, hub: str | None = None, *, source: int | None = None
) -> BehindLatest | None:
    """Return how far a query was behind the end of its hub.

    Args:
        progress: a whole `StreamingQueryProgress`: the object, its dict or its JSON.
        hub: as for `parse_progress`.
        source: as for `parse_progress`.

    Returns:
        None if the source has not reported the end of the hub, as this package's on Spark 4.0 and
        4.1, or if the query has no offset yet.

    Raises:
        ConfigurationError: as `parse_progress`, and for the offset of a single source.
    """
    require_type("hub", hub, hub is None or isinstance(hub, str), "the hub's name, or None")
    sources = sources_of(decoded(progress))
    if sources is None:
        raise ConfigurationError(
            "only a whole StreamingQueryProgress contains the end of the hub; pass "
            "query.lastProgress"
        )
    ends = [end_offset(each) for each in sources]
    index = source_of_hub(ends, hub, source)
    if index is None:
        return None
    end = of_hub(ends[index], hub)
    hubs = by_hub(decoded(field(sources[index], "latestOffset")))
    latest = hubs.get(matching(hubs, hub), {})
    # Below the end: the partition was deleted and created again, or its node is behind.
    behind = {key: max(0, latest[key] - number) for key, number in end.items() if key in latest}
    return BehindLatest(behind) if behind else None
