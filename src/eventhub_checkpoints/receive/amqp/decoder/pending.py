"""Rows not taken yet: matches of layouts, and events read by the generic decoder."""

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
    """Pending rows in order.

    Attributes:
        layouts: the layout of each row, which holds the contents of the row's groups; None for an
            event read by the generic decoder.
        events: events read by the generic decoder.
    """

    def __init__(self) -> None:
        self.layouts: list[Held | None] = []
        self.events: list[Event] = []

    def __len__(self) -> int:
        return len(self.layouts)

    def add(self, events: list[Event]) -> None:
        """Append events read by the generic decoder."""
        self.events += events
        self.layouts += [None] * len(events)

    def take(self, rows: int) -> Columns:
        """Remove the first rows and return them as columns."""
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
        """Return the delivery id of the last row, which must belong to a layout."""
        layout = self.layouts[-1]
        assert layout is not None
        return layout.delivery_ids(layout.rows - 1)[0]

    def touched(self, begin: int) -> list[Held]:
        """Return the layouts of the rows from `begin` on."""
        return [one for one in dict.fromkeys(self.layouts[begin:]) if one is not None]

    def misread(self, layouts: list[Held]) -> list[int]:
        """Return the indexes of unchecked rows that were misread."""
        wrong: list[int] = []
        for layout in layouts:
            rows = layout.misread()
            if rows:
                places = [place for place, one in enumerate(self.layouts) if one is layout]
                wrong += [places[row] for row in rows]
        return sorted(wrong)

    def replace(self, place: int, event: Event) -> None:
        """Replace a misread row by an event."""
        layout = self.layouts[place]
        assert layout is not None
        row = self.layouts[:place].count(layout)
        layout.drop(row, row + 1)
        self.events.insert(self.layouts[:place].count(None), event)
        self.layouts[place] = None

    def cut_off(self, place: int) -> None:
        """Drop the rows from an index on."""
        kept = self.layouts[:place]
        for layout in dict.fromkeys(self.layouts[place:]):
            if layout is None:
                del self.events[kept.count(None) :]
            else:
                layout.drop(kept.count(layout), layout.rows)
        self.layouts = kept
