"""The layouts that a link's frames were found to have, and the search for the one that fits.

A layout is learned when it is met for the second time.

Bound: `MAX_HEADS` heads of `MAX_TAILS` layouts each. Where there is no room, what was met least
lately makes room, for what was met `OFTEN` times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from .layouts import Layout
from .pieces import NotRegularError
from .shapes import Shape, shape_of

MAX_HEADS = 32
MAX_TAILS = 32
MAX_SIGHTED = 1024
OFTEN = 32

Match: TypeAlias = Callable[[bytes, int, int], re.Match[bytes] | None]


class Head:
    """The first half of layouts, and the layouts that begin with it.

    Attributes:
        match: finds it.
        layouts: by the byte that comes next, which says what section does.
    """

    def __init__(self, regex: bytes) -> None:
        self.match: Match = re.compile(regex, re.DOTALL).match
        self.layouts: dict[int, list[Layout]] = {}
        self.hits = 0

    @property
    def count(self) -> int:
        """How many layouts begin with it."""
        return sum(map(len, self.layouts.values()))


class Layouts:
    """All layouts of one link."""

    def __init__(self) -> None:
        self.has_unsettled = False
        self._heads: dict[bytes, Head] = {}
        self._order: list[Head] = []
        self._sighted: Counter[tuple[bytes, bytes]] = Counter()

    def find(self, data: bytes, at: int, end: int) -> Layout | None:
        """Find the layout of the frame between `at` and `end`, and let it hold one row more."""
        for head in self._order:
            first = head.match(data, at, end)
            if first is not None:
                begin = first.end()
                for layout in head.layouts.get(data[begin], ()):
                    second = layout.tail(data, begin, end)
                    if second is not None:
                        held = layout.held
                        held += first.groups()
                        held += second.groups()
                        return layout
        return None

    def learn(self, raw: bytes, fields: int, payload: int) -> None:
        """Look at a frame that fits no layout and was read the generic way; see `shape_of`."""
        try:
            shape = shape_of(raw, fields, payload)
        except NotRegularError:
            return
        regexes = shape.head.regex(), shape.tail.regex()
        if self._knows(*regexes):
            # One of its values holds what stands behind it, so its own layout does not fit it.
            return
        self._sighted[regexes] += 1
        if self._sighted[regexes] >= (OFTEN if self._is_full(regexes[0]) else 2):
            del self._sighted[regexes]
            self._add(regexes[0], shape)
        elif len(self._sighted) > MAX_SIGHTED:
            self._sighted.clear()

    def sort(self) -> None:
        """Let what was met most often be tried first, and halve what was counted."""
        for head in self._order:
            head.hits = 0
            for layouts in head.layouts.values():
                layouts.sort(key=_hits, reverse=True)
                for layout in layouts:
                    head.hits += layout.hits
                    layout.hits >>= 1
        self._order.sort(key=_hits, reverse=True)

    def _knows(self, head: bytes, tail: bytes) -> bool:
        known = self._heads.get(head)
        return known is not None and any(
            layout.regex == tail for layout in known.layouts.get(tail[0], ())
        )

    def _is_full(self, regex: bytes) -> bool:
        head = self._heads.get(regex)
        return len(self._order) >= MAX_HEADS if head is None else head.count >= MAX_TAILS

    def _add(self, regex: bytes, shape: Shape) -> None:
        head = self._heads.get(regex)
        if self._is_full(regex):
            self._make_room(head)
        if head is None:
            head = self._heads[regex] = Head(regex)
            self._order.append(head)
        layout = Layout(shape)
        head.layouts.setdefault(layout.regex[0], []).append(layout)
        self.has_unsettled |= not shape.settled

    def _make_room(self, head: Head | None) -> None:
        if head is None:
            dropped = self._order.pop()
            self._heads = {key: one for key, one in self._heads.items() if one is not dropped}
            return
        kept = [layouts for layouts in head.layouts.values() if layouts]
        min(kept, key=lambda layouts: layouts[-1].hits).pop()


def _hits(one: Head | Layout) -> int:
    return one.hits
