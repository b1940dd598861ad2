"""Learned layouts of a link: frames of one link share a byte template.

Compiling a regular expression costs as much as decoding hundreds of frames. The first `FEW` layouts
are therefore learned when a frame of theirs is seen for the second time, and so are heads. Further
layouts are learned when seen for the `OFTEN`th time; so are all, if few of the first were seen
again.

Bound: `MAX_LAYOUTS`, of which at most `MAX_ALIKE` with one sign, and `MAX_HEADS`. Where there is no
room, a layout seen `OFTEN` times replaces the one with the fewest recent hits. Layouts that no
longer occur are forgotten: an offset that gets one more digit changes all layouts of a hub.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from eventhub_checkpoints.receive.amqp.decoder.layouts import HalfLayout, Layout
from eventhub_checkpoints.receive.amqp.decoder.pieces import NotRegularError
from eventhub_checkpoints.receive.amqp.decoder.shapes import Shape, shape_of
from eventhub_checkpoints.receive.amqp.decoder.signs import sign_of

if TYPE_CHECKING:
    from eventhub_checkpoints.receive.amqp.decoder.layouts import Held

MAX_LAYOUTS = 256
MAX_ALIKE = 32
MAX_HEADS = 32
MAX_SIGHTED = 1024
FEW, OFTEN = 128, 32

EPOCH = 10_000
"""Number of rows after which unused layouts are forgotten."""

PATIENCE = 32
RAREST_OF_HALVES, RAREST_OF_STRANGERS = 256, 32


class Curiosity:
    """Sampling of the frames that fit no layout; analysing one costs as much as decoding twenty.

    All of them are analysed while that leads to new layouts; then every second, fourth, and so on.

    Args:
        rarest: upper limit of the sampling interval.
    """

    def __init__(self, rarest: int) -> None:
        self._rarest = rarest
        self._every = self._left = 1
        self._patience = PATIENCE

    def wants(self) -> bool:
        """Return whether to analyse the frame seen just now."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._every
        return True

    def looked(self, has_learned: bool) -> None:
        """Record whether the analysis led to a new layout."""
        self._patience = PATIENCE if has_learned else self._patience - 1
        if has_learned:
            self._every = max(1, self._every // 2)
        elif self._patience == 0:
            self._patience, self._every = PATIENCE, min(2 * self._every, self._rarest)


class Layouts:
    """All layouts of one link.

    Attributes:
        has_unsettled: whether deliveries of any layout need a disposition.
        halves: events of which only the head had a layout.
    """

    def __init__(self) -> None:
        self.has_unsettled = False
        self.halves = 0
        self._layouts: dict[bytes, list[Layout]] = {}
        self._heads: list[HalfLayout] = []
        self._sighted: Counter[bytes] = Counter()
        self._rows = 0
        # Whether even the first `FEW` need `OFTEN` frames, because few of the known ones recurred.
        self._wants_all_often = False
        self._about_halves = Curiosity(RAREST_OF_HALVES)
        self._about_strangers = Curiosity(RAREST_OF_STRANGERS)

    def find(self, data: bytes, at: int, end: int) -> Held | None:
        """Find the layout of the frame from `at` to `end`, and add the frame to it as a row."""
        for layout in self._layouts.get(sign_of(data, at), ()):
            found = layout.match(data, at, end)
            if found is not None:
                layout.held += found.groups()
                return layout
        for head in self._heads:
            found = head.match(data, at, end)
            if found is not None:
                if not head.add(found, data, end):
                    return None
                self.halves += 1
                self._look(data, at, end, self._about_halves)
                return head
        return None

    def learn(self, raw: bytes) -> None:
        """Analyse a frame that was read as one event and whose head is not known either."""
        self._look(raw, 0, len(raw), self._about_strangers)

    def taken(self, rows: int) -> None:
        """Count rows that were taken; after an epoch, forget the layouts that none of them had."""
        self._rows += rows
        if self._rows < EPOCH:
            return
        self._rows = 0
        layouts = [*chain.from_iterable(self._layouts.values())]
        common = sum(one.hits >= OFTEN for one in layouts)
        self._wants_all_often = 4 * common < len(layouts) or (self._wants_all_often and not common)
        self._heads.sort(key=_hits, reverse=True)
        self._layouts = {
            sign: sorted(met, key=_hits, reverse=True)
            for sign, alike in self._layouts.items()
            if (met := [*filter(_hits, alike)])
        }
        for one in chain(layouts, self._heads):
            one.hits = 0

    def __len__(self) -> int:
        return sum(map(len, self._layouts.values()))

    def _look(self, data: bytes, at: int, end: int, curiosity: Curiosity) -> None:
        if curiosity.wants():
            try:
                has_learned = self._learn(data[at:end])
            except NotRegularError:
                has_learned = False
            curiosity.looked(has_learned)

    def _learn(self, raw: bytes) -> bool:
        shape = shape_of(raw)
        head, tail = shape.head.regex(), shape.tail.regex()
        is_new_head = self._learn_head(shape, head)
        return self._learn_whole(shape, head + tail, sign_of(raw, 0)) or is_new_head

    def _learn_whole(self, shape: Shape, regex: bytes, sign: bytes) -> bool:
        alike = self._layouts.get(sign, [])
        if any(one.regex == regex for one in alike):
            # One value contains the literal that follows it, so its own layout does not fit.
            return False
        are_many, is_full = len(alike) >= MAX_ALIKE, len(self) >= MAX_LAYOUTS
        must_be_often = are_many or is_full or self._wants_all_often or len(self) >= FEW
        if not self._is_met_again(regex, must_be_often):
            return False
        if are_many:
            alike.pop()
        elif is_full:
            self._make_room()
        self._layouts.setdefault(sign, alike).append(Layout(shape, regex))
        self.has_unsettled |= not shape.settled
        return True

    def _learn_head(self, shape: Shape, regex: bytes) -> bool:
        if any(one.regex == regex for one in self._heads) or not shape.has_useful_head:
            return False
        is_full = len(self._heads) >= MAX_HEADS
        if not self._is_met_again(regex, is_full):
            return False
        if is_full:
            self._heads.pop()
        self._heads.append(HalfLayout(shape, regex))
        self.has_unsettled |= not shape.settled
        return True

    def _is_met_again(self, regex: bytes, must_be_often: bool) -> bool:
        self._sighted[regex] += 1
        if self._sighted[regex] >= (OFTEN if must_be_often else 2):
            del self._sighted[regex]
            return True
        if len(self._sighted) > MAX_SIGHTED:
            self._sighted.clear()
        return False

    def _make_room(self) -> None:
        sign, alike = min(self._layouts.items(), key=lambda one: one[1][-1].hits)
        alike.pop()
        if not alike:
            del self._layouts[sign]


def _hits(one: Held) -> int:
    return one.hits
