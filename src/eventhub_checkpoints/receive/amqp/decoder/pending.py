"""Rows that wait to be taken: matches of layouts, and events that were read the generic way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.amqp.decoder.gathering import (
    columns_of,
    rows_of_events,
    rows_of_half,
    rows_of_layout,
)
from eventhub_checkpoints.receive.amqp.decoder.layouts import HalfLayout, Layout

if TYPE_CHECKING:
    from eventhub_checkpoints.receive.amqp.decoder.events import Event
    from eventhub_checkpoints.receive.amqp.decoder.gathering import Rows
    from eventhub_checkpoints.receive.amqp.decoder.layouts import Held


class Pending:
    """The rows in their order.

    Attributes:
        layouts: of each row; the layout holds what the row's groups hold. None for an event.
        events: those that were read the generic way.
    """

    def __init__(self) -> None:
        self.layouts: list[Held | None] = []
        self.events: list[Event] = []

    def __len__(self) -> int:
        return len(self.layouts)

    def add(self, events: list[Event]) -> None:
        """Rows that were read the generic way."""
        self.events += events
        self.layouts += [None] * len(events)

    def take(self, rows: int) -> Columns:
        """The first rows as columns."""
        order, self.layouts = self.layouts[:rows], self.layouts[rows:]
        if not order:
            return Columns()
        parts = {layout: self._rows(layout, rows) for layout, rows in Counter(order).items()}
        return columns_of(parts, order)

    def _rows(self, layout: Held | None, rows: int) -> Rows:
        if isinstance(layout, Layout):
            return rows_of_layout(layout, rows)
        if isinstance(layout, HalfLayout):
            return rows_of_half(layout, rows)
        events, self.events = self.events[:rows], self.events[rows:]
        return rows_of_events(events)

    def last_delivery_id(self) -> int:
        """The id of the last row, which is of a layout."""
        layout = self.layouts[-1]
        assert layout is not None
        return layout.delivery_ids(layout.rows - 1)[0]

    def touched(self, begin: int) -> list[Held]:
        """The layouts of the rows from `begin` on."""
        return [one for one in dict.fromkeys(self.layouts[begin:]) if one is not None]

    def misread(self, layouts: list[Held]) -> list[int]:
        """The places of unchecked rows that were misread."""
        wrong: list[int] = []
        for layout in layouts:
            rows = layout.misread()
            if rows:
                places = [place for place, one in enumerate(self.layouts) if one is layout]
                wrong += [places[row] for row in rows]
        return sorted(wrong)

    def replace(self, place: int, event: Event) -> None:
        """Put an event where a layout had misread it."""
        layout = self.layouts[place]
        assert layout is not None
        row = self.layouts[:place].count(layout)
        layout.drop(row, row + 1)
        self.events.insert(self.layouts[:place].count(None), event)
        self.layouts[place] = None

    def cut_off(self, place: int) -> None:
        """Drop the rows from a place on."""
        kept = self.layouts[:place]
        for layout in dict.fromkeys(self.layouts[place:]):
            if layout is None:
                del self.events[kept.count(None) :]
            else:
                layout.drop(kept.count(layout), layout.rows)
        self.layouts = kept
