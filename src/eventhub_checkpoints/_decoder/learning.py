"""The layouts that a link's frames were found to have, and the search for the one that fits.

The first `FEW` of them are learned when they are met for the second time, and so are heads; others,
and all where few of those were met again, when they are met for the `OFTEN`th: a regex costs as
much as to read hundreds of frames.

Bound: `MAX_LAYOUTS`, `MAX_ALIKE` of them with one sign, and `MAX_HEADS`. Where there is no room,
what was met least lately makes room, for what was met `OFTEN` times. What is no longer met is
forgotten: an offset that gets one more digit changes all layouts of a hub.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .layouts import HalfLayout, Layout
from .pieces import NotRegularError
from .shapes import Shape, shape_of
from .signs import sign_of

if TYPE_CHECKING:
    from .layouts import Held

MAX_LAYOUTS = 256
MAX_ALIKE = 32
MAX_HEADS = 32
MAX_SIGHTED = 1024
FEW, OFTEN = 128, 32

EPOCH = 10_000
"""Rows after which is counted what was met."""

PATIENCE = 32
RAREST_OF_HALVES, RAREST_OF_STRANGERS = 256, 32


class Curiosity:
    """Which of the frames that fit no layout are looked at: that costs as much as to read twenty.

    All of them as long as anything is learned by it; then every second, fourth, and so on.

    Args:
        rarest: one of so many at least.
    """

    def __init__(self, rarest: int) -> None:
        self._rarest = rarest
        self._every = self._left = 1
        self._patience = PATIENCE

    def wants(self) -> bool:
        """Whether to look at one that was met just now."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._every
        return True

    def looked(self, has_learned: bool) -> None:
        """Note whether it was of any use."""
        self._patience = PATIENCE if has_learned else self._patience - 1
        if has_learned:
            self._every = max(1, self._every // 2)
        elif self._patience == 0:
            self._patience, self._every = PATIENCE, min(2 * self._every, self._rarest)


class Layouts:
    """All layouts of one link.

    Attributes:
        has_unsettled: whether frames of any of them want a disposition.
        halves: events of which only the head had a layout.
    """

    def __init__(self) -> None:
        self.has_unsettled = False
        self.halves = 0
        self._layouts: dict[bytes, list[Layout]] = {}
        self._heads: list[HalfLayout] = []
        self._sighted: Counter[bytes] = Counter()
        self._rows = 0
        self._is_motley = False
        self._about_halves = Curiosity(RAREST_OF_HALVES)
        self._about_strangers = Curiosity(RAREST_OF_STRANGERS)

    def find(self, data: bytes, at: int, end: int) -> Held | None:
        """Find the layout of the frame between `at` and `end`, and let it hold one row more."""
        try:
            alike = self._layouts.get(sign_of(data, at), ())
        except IndexError:
            return None
        for layout in alike:
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
        """Note a frame whose head is not known either, and that was read as one event."""
        self._look(raw, 0, len(raw), self._about_strangers)

    def taken(self, rows: int) -> None:
        """Note that so many rows were taken; now and then, forget what none of them had."""
        self._rows += rows
        if self._rows < EPOCH:
            return
        self._rows = 0
        common = sum(one.hits >= OFTEN for alike in self._layouts.values() for one in alike)
        self._is_motley = 4 * common < len(self) or (self._is_motley and not common)
        self._heads.sort(key=_hits, reverse=True)
        for alike in self._layouts.values():
            alike[:] = sorted(filter(_hits, alike), key=_hits, reverse=True)
            for layout in alike:
                layout.hits = 0
        for head in self._heads:
            head.hits = 0
        self._drop_empty()

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
        first, second = shape.head.regex(), shape.tail.regex()
        is_new_head = self._learn_head(first, shape)
        sign = sign_of(raw, 0)
        alike = self._layouts.get(sign, [])
        if any(one.regex == first + second for one in alike):
            # One of its values holds what stands behind it, so its own layout does not fit it.
            return is_new_head
        are_many, is_full = len(alike) >= MAX_ALIKE, len(self) >= MAX_LAYOUTS
        must_be_often = are_many or is_full or self._is_motley or len(self) >= FEW
        if not self._is_met_again(first + second, must_be_often):
            return is_new_head
        if are_many:
            alike.pop()
        elif is_full:
            self._make_room()
        self._layouts.setdefault(sign, alike).append(Layout(shape))
        self.has_unsettled |= not shape.settled
        return True

    def _learn_head(self, regex: bytes, shape: Shape) -> bool:
        half = shape.half()
        if half is None or any(one.regex == regex for one in self._heads):
            return False
        is_full = len(self._heads) >= MAX_HEADS
        if not self._is_met_again(regex, is_full):
            return False
        if is_full:
            self._heads.pop()
        self._heads.append(HalfLayout(half))
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
        min(self._layouts.values(), key=lambda alike: alike[-1].hits).pop()
        self._drop_empty()

    def _drop_empty(self) -> None:
        self._layouts = {sign: alike for sign, alike in self._layouts.items() if alike}


def _hits(one: Held) -> int:
    return one.hits
