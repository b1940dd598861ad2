"""Conversion of rows, matched to layouts or read by the generic decoder, to columns."""

from __future__ import annotations

from itertools import accumulate, chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns, Text, TextMaps
from eventhub_checkpoints.receive.amqp.decoder.events import (
    ENQUEUED_TIME,
    OFFSET,
    PARTITION_KEY,
    PUBLISHER,
    SEQUENCE_NUMBER,
    Event,
)
from eventhub_checkpoints.receive.amqp.decoder.slots import NONE
from eventhub_checkpoints.receive.amqp.decoder.values import as_text, as_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eventhub_checkpoints.receive.amqp.decoder.events import Pairs
    from eventhub_checkpoints.receive.amqp.decoder.layouts import HalfLayout, Held, Layout
    from eventhub_checkpoints.receive.amqp.decoder.slots import Groups, Slot


T = TypeVar("T")


class Maps(NamedTuple):
    """Column of maps: the keys of each row, and the values of all rows one after another.

    Rows of one layout share their keys. A list of values per row would burden the garbage
    collector: with it, making columns takes three times as long.
    """

    keys: list[Sequence[Text]]
    values: list[Text]

    def flat(self) -> TextMaps:
        """Return the column in flat form."""
        ends = [*accumulate(map(len, self.keys), initial=0)]
        return TextMaps(ends, [*chain.from_iterable(self.keys)], self.values)


class Rows(NamedTuple):
    """Columns of the rows of one layout."""

    numbers: list[int]
    bodies: list[bytes]
    offsets: list[Text | None]
    enqueued: list[int | None]
    publishers: list[Text | None]
    partition_keys: list[Text | None]
    properties: Maps
    systems: Maps


def rows_of_layout(layout: Layout, count: int) -> Rows:
    """Remove the first `count` rows of a layout and return their columns."""
    shape, groups = layout.shape, layout.cut(count)
    properties, systems = (_maps(one, groups, count) for one in (shape.properties, shape.systems))
    return _rows(layout, groups, count, properties, systems)


def rows_of_half(layout: HalfLayout, count: int) -> Rows:
    """Remove the first `count` rows of a layout of heads and return their columns."""
    groups, tails = layout.cut(count), layout.cut_tails(count)
    own = _maps_of([tail.systems for tail in tails])
    others = _maps(layout.shape.others, groups, count)
    properties = _maps_of([tail.properties for tail in tails])
    return _rows(layout, groups, count, properties, _beside(own, others))


def _rows(layout: Held, groups: Groups, count: int, properties: Maps, systems: Maps) -> Rows:
    annotations = layout.shape.annotations

    def texts(key: bytes) -> list[Text | None]:
        return annotations.get(key, NONE).nullable(groups, count)

    time = annotations.get(ENQUEUED_TIME)
    return Rows(
        annotations[SEQUENCE_NUMBER].integers(groups, count),
        groups[layout.body],
        texts(OFFSET),
        [None] * count if time is None else [*time.integers(groups, count)],
        texts(PUBLISHER),
        texts(PARTITION_KEY),
        properties,
        systems,
    )


def _maps(named: list[tuple[Text, Slot]], groups: Groups, count: int) -> Maps:
    names, width = tuple(name for name, _ in named), len(named)
    values: list[Text] = [""] * (count * width)
    for place, (_, slot) in enumerate(named):
        values[place::width] = slot.texts(groups, count)
    return Maps([names] * count, values)


def rows_of_events(events: Sequence[Event]) -> Rows:
    """Return the columns of events read by the generic decoder."""
    return Rows(
        [event.number for event in events],
        [event.body for event in events],
        [as_text(event.offset) for event in events],
        [event.enqueued for event in events],
        [as_text(event.publisher) for event in events],
        [as_text(event.partition_key) for event in events],
        _maps_of([event.properties for event in events]),
        _maps_of([event.systems for event in events]),
    )


def _maps_of(pairs: Sequence[Pairs]) -> Maps:
    # All rows in one call: most values are bytes that are valid UTF-8.
    ends = [*accumulate(map(len, pairs), initial=0)]
    keys = as_texts(chain.from_iterable(pairs))
    values = as_texts(chain.from_iterable(one.values() for one in pairs))
    return Maps([keys[begin:end] for begin, end in pairwise(ends)], values)


def _beside(first: Maps, second: Maps) -> Maps:
    """Return the pairs of both columns row by row, those of the first column first."""
    both = Maps([], [])
    ours, theirs = iter(first.values), iter(second.values)
    for one, other in zip(first.keys, second.keys, strict=True):
        both.keys.append((*one, *other))
        both.values.extend(islice(ours, len(one)))
        both.values.extend(islice(theirs, len(other)))
    return both


def columns_of(parts: Mapping[Held | None, Rows], order: Sequence[Held | None]) -> Columns:
    """Return all rows as columns.

    Args:
        parts: the rows of each layout.
        order: the layout of each row.
    """
    rows = [*parts.values()] if len(parts) == 1 else [_merged(parts, order)]
    return Columns(*rows[0][:6], rows[0].properties.flat(), rows[0].systems.flat())


def _merged(parts: Mapping[Held | None, Rows], order: Sequence[Held | None]) -> Rows:
    def merged(column: Callable[[Rows], list[T]]) -> list[T]:
        # Each row takes the next value of its layout: no index is computed, and memory is read
        # in the order in which it was written.
        values = {layout: iter(column(rows)) for layout, rows in parts.items()}
        return [*map(next, map(values.__getitem__, order))]

    def merged_maps(column: Callable[[Rows], Maps]) -> Maps:
        keys = merged(lambda rows: column(rows).keys)
        values = {layout: iter(column(rows).values) for layout, rows in parts.items()}
        own = map(islice, map(values.__getitem__, order), map(len, keys))
        return Maps(keys, [*chain.from_iterable(own)])

    return Rows(
        merged(lambda rows: rows.numbers),
        merged(lambda rows: rows.bodies),
        merged(lambda rows: rows.offsets),
        merged(lambda rows: rows.enqueued),
        merged(lambda rows: rows.publishers),
        merged(lambda rows: rows.partition_keys),
        merged_maps(lambda rows: rows.properties),
        merged_maps(lambda rows: rows.systems),
    )
