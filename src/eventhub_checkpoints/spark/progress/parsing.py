"""From the progress of a streaming query to checkpoints, whatever source read the hub."""

from collections.abc import Mapping, Sequence

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark.given import require_kind
from eventhub_checkpoints.spark.progress.offsets import (
    ByHub,
    by_hub,
    decoded,
    matching,
    of_hub,
    told,
)

NOT_THERE = object()


def parse_progress(
    progress: object, hub: str | None, *, source: int | None = None
) -> dict[str, int]:
    """The sequence number of the last committed event of each partition.

    Args:
        progress: the offset of one source, or the whole `StreamingQueryProgress`: the object, its
            dict or its JSON. Of a whole one, the end is read.
        hub: the name of the hub or topic, compared without regard to case; None takes the only
            one that there is.
        source: which of the query's sources, counted from 0; needed where several read this hub.

    Returns:
        Numbers by partition id, in numeric order. A partition without a committed event is left
        out, so no offset at all gives `{}`.

    Raises:
        ConfigurationError: it is no progress of such a source, no source of the query reads this
            hub, or more than one does.
    """
    require_kind("hub", hub, hub is None or isinstance(hub, str), "the hub's name, or None")
    return last_of(next_sequence_numbers(progress, hub, source=source))


def next_sequence_numbers(
    progress: object, hub: str | None, *, source: int | None = None
) -> dict[str, int]:
    """The same as Spark wrote it: the first number of each partition that was *not* read."""
    value = decoded(progress)
    sources = field(value, "sources")
    if isinstance(sources, Sequence) and not isinstance(sources, str):
        return of_sources([end_of(decoded(one)) for one in sources], hub, source)
    return of_hub(end_of(value), hub)


def last_of(following: Mapping[str, int]) -> dict[str, int]:
    """The last numbers before these; none where no event came before."""
    return {partition: number - 1 for partition, number in following.items() if number > 0}


def of_sources(
    offsets: Sequence[object], hub: str | None, source: int | None = None
) -> dict[str, int]:
    """The next sequence numbers of one hub in the offsets of all sources of a query.

    Raises:
        ConfigurationError: no source reads this hub, several do, or there is no such source.
    """
    index = index_of(offsets, hub, source)
    return {} if index is None else of_hub(offsets[index], hub)


def index_of(offsets: Sequence[object], hub: str | None, source: int | None = None) -> int | None:
    """Which source reads this hub; None where one that has no offset yet may be it.

    Raises:
        ConfigurationError: as in `of_sources`.
    """
    if source is not None:
        if not (isinstance(source, int) and 0 <= source < len(offsets)):
            raise ConfigurationError(
                f"source is {quoted(source)}; the query has {len(offsets)}, counted from 0"
            )
        return source
    found = [by_hub(offset) for offset in offsets]
    several = reading(found, hub)
    if len(several) > 1:
        raise ConfigurationError(
            f"sources {', '.join(map(str, several))} of the query all read "
            f"{'a hub' if hub is None else f'hub {quoted(hub)}'}; say which one is meant, for "
            f"example source={several[0]}"
        )
    if several or any(offset is None for offset in offsets):
        return several[0] if several else None
    raise ConfigurationError(
        f"no source of the query reads {'a hub' if hub is None else f'hub {quoted(hub)}'}; "
        f"its {len(offsets)} read {told(name for hubs in found for name in hubs)}"
    )


def reading(found: Sequence[ByHub], hub: str | None) -> list[int]:
    """The sources that read a hub; those that name it go before those that name none."""
    names = {index: matching(hubs, hub) for index, hubs in enumerate(found)}
    named = [index for index, name in names.items() if name is not None]
    return named or [index for index, name in names.items() if name in found[index]]


def end_of(value: object) -> object:
    """The end offset where this is a source's progress, else the value itself."""
    end = field(value, "endOffset", NOT_THERE)
    return value if end is NOT_THERE else decoded(end)


def field(value: object, name: str, default: object = None) -> object:
    """A field of what PySpark 4 keeps as a dict and PySpark 3 as an object."""
    if isinstance(value, Mapping):
        return value.get(name, default)
    return getattr(value, name, default)
