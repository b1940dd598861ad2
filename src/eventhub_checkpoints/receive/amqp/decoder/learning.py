"""Learned templates of a link, and which of them a frame may fit.

Compiling a regular expression costs as much as decoding hundreds of frames. The first `FEW`
templates are therefore learned when a frame of theirs is seen for the second time, and so are
heads. Further templates are learned when seen for the `OFTEN`th time; so are all, if few of the
first were seen again.

Bound: `MAX_TEMPLATES`, of which at most `MAX_ALIKE` with one bucket key, and `MAX_HEADS`. Where
there is no room, a template seen `OFTEN` times replaces the one with the fewest recent hits.
Templates that no longer occur are forgotten: an offset that gets one more digit changes all
templates of a hub.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp import messages
from eventhub_checkpoints.receive.amqp.decoder.rows import Matcher
from eventhub_checkpoints.receive.amqp.decoder.templates import NotRegularError, template_of

if TYPE_CHECKING:
    from eventhub_checkpoints.receive.amqp.decoder.templates import FrameTemplate

MAX_TEMPLATES = 256
MAX_ALIKE = 32
MAX_HEADS = 32
MAX_SIGHTED = 1024
FEW, OFTEN = 128, 32

PERIOD = 10_000
"""Number of rows after which unused templates are forgotten."""

PATIENCE = 32
MAX_INTERVAL_HEADS, MAX_INTERVAL_UNKNOWN = 256, 32

_hits = attrgetter("hits")


class SamplingBackoff:
    """Sampling of the frames that fit no template; analysing one costs as much as decoding twenty.

    All of them are analysed while that leads to new templates; then every second, fourth, and so
    on.
    """

    def __init__(self, max_interval: int) -> None:
        self._max_interval = max_interval
        self._interval = self._left = 1
        self._patience = PATIENCE

    def is_due(self) -> bool:
        """Count a frame; return whether to analyse it."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._interval
        return True

    def record(self, has_learned: bool) -> None:
        """Record whether the analysis led to a new template."""
        self._patience = PATIENCE if has_learned else self._patience - 1
        if has_learned:
            self._interval = max(1, self._interval // 2)
        elif self._patience == 0:
            self._patience = PATIENCE
            self._interval = min(2 * self._interval, self._max_interval)


class LearnedTemplates:
    """All templates of one link, compiled.

    Attributes:
        has_unsettled: whether deliveries of any template need a disposition.
        heads_only: events of which only the head was known.
    """

    def __init__(self) -> None:
        self.has_unsettled = False
        self.heads_only = 0
        self._buckets: dict[bytes, list[Matcher]] = {}
        self._heads: list[Matcher] = []
        self._sighted: Counter[bytes] = Counter()
        self._rows = 0
        # Whether even the first `FEW` need `OFTEN` frames, because few of the known ones recurred.
        self._must_all_be_often = False
        self._heads_sampling = SamplingBackoff(MAX_INTERVAL_HEADS)
        self._unknown_sampling = SamplingBackoff(MAX_INTERVAL_UNKNOWN)

    def find(self, data: bytes, at: int, end: int) -> Matcher | None:
        """Find the matcher of the frame from `at` to `end`, and add the frame to it as a row."""
        for matcher in self._buckets.get(bucket_key(data, at), ()):
            match = matcher.match(data, at, end)
            if match is not None:
                matcher.contents += match.groups()
                return matcher
        for head in self._heads:
            match = head.match(data, at, end)
            if match is not None:
                if not head.add_head(match, data, end):
                    return None
                self.heads_only += 1
                self._sample(data, at, end, self._heads_sampling)
                return head
        return None

    def learn(self, raw: bytes) -> None:
        """Analyse a frame that was read as one event and whose head is not known either."""
        self._sample(raw, 0, len(raw), self._unknown_sampling)

    def taken(self, rows: int) -> None:
        """Count rows that were taken; after a period, forget templates that none of them had."""
        self._rows += rows
        if self._rows < PERIOD:
            return
        self._rows = 0
        matchers = [*chain.from_iterable(self._buckets.values())]
        common = sum(matcher.hits >= OFTEN for matcher in matchers)
        rare = 4 * common < len(matchers)
        self._must_all_be_often = rare or (self._must_all_be_often and not common)
        self._heads.sort(key=_hits, reverse=True)
        self._buckets = {
            key: sorted(used, key=_hits, reverse=True)
            for key, alike in self._buckets.items()
            if (used := [*filter(_hits, alike)])
        }
        for matcher in [*matchers, *self._heads]:
            matcher.hits = 0

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def _sample(self, data: bytes, at: int, end: int, sampling: SamplingBackoff) -> None:
        if sampling.is_due():
            try:
                has_learned = self._learn(data[at:end])
            except NotRegularError:
                has_learned = False
            sampling.record(has_learned)

    def _learn(self, raw: bytes) -> bool:
        template = template_of(raw)
        head = template.head.regex()
        is_new_head = self._learn_head(template, head)
        regex = head + template.tail.regex()
        return self._learn_frame(template, regex, bucket_key(raw, 0)) or is_new_head

    def _learn_frame(self, template: FrameTemplate, regex: bytes, key: bytes) -> bool:
        alike = self._buckets.get(key, [])
        if any(matcher.regex == regex for matcher in alike):
            # One value contains the literal that follows it, so its own template does not fit.
            return False
        are_many, is_full = len(alike) >= MAX_ALIKE, len(self) >= MAX_TEMPLATES
        must_be_often = are_many or is_full or self._must_all_be_often or len(self) >= FEW
        if not self._is_seen_again(regex, must_be_often):
            return False
        if are_many:
            alike.pop()
        elif is_full:
            rarest, bucket = min(self._buckets.items(), key=lambda item: item[1][-1].hits)
            bucket.pop()
            if not bucket:
                del self._buckets[rarest]
        self._buckets.setdefault(key, alike).append(Matcher(template, regex, is_whole=True))
        self.has_unsettled |= not template.settled
        return True

    def _learn_head(self, template: FrameTemplate, regex: bytes) -> bool:
        if any(head.regex == regex for head in self._heads) or not template.has_useful_head:
            return False
        is_full = len(self._heads) >= MAX_HEADS
        if not self._is_seen_again(regex, is_full):
            return False
        if is_full:
            self._heads.pop()
        self._heads.append(Matcher(template, regex, is_whole=False))
        self.has_unsettled |= not template.settled
        return True

    def _is_seen_again(self, regex: bytes, must_be_often: bool) -> bool:
        self._sighted[regex] += 1
        if self._sighted[regex] >= (OFTEN if must_be_often else 2):
            del self._sighted[regex]
            return True
        if len(self._sighted) > MAX_SIGHTED:
            self._sighted.clear()
        return False


_ANNOTATIONS = bytes((messages.MESSAGE_ANNOTATIONS, 0xC1))
_LARGE_ANNOTATIONS = bytes((messages.MESSAGE_ANNOTATIONS, 0xD1))
_FIELDS = bytes((messages.PROPERTIES, 0xC0))
_PAIRS = bytes((messages.APPLICATION_PROPERTIES, 0xC1))
_BEFORE = (messages.HEADER, messages.DELIVERY_ANNOTATIONS)
_SMALL = (0xC0, 0xC1)

_TRANSFER = 12
"""Offset in a transfer frame of the size of its small list."""


def bucket_key(data: bytes, at: int) -> bytes:
    """Return a few bytes that frames of one template share and few others have.

    Matchers are looked up by this key, instead of trying the regular expression of each. The key
    decides nothing: the matcher still has to match.

    It holds the counts of annotations, properties and application properties, the first property's
    constructor, and the first letters of the first application property's name. It is b"" if the
    frame has an unusual structure.
    """
    try:
        at += _TRANSFER + 3 + data[at + _TRANSFER]
        while data[at] in _BEFORE and data[at + 1] in _SMALL:
            at += 5 + data[at + 2]
        begin = data[at : at + 2]
        if begin == _ANNOTATIONS:
            key = data[at + 3 : at + 4]
            at += 5 + data[at + 2]
        elif begin == _LARGE_ANNOTATIONS:
            key = data[at + 6 : at + 10]
            at += 8 + int.from_bytes(data[at + 2 : at + 6], "big")
        else:
            return b""
        begin = data[at : at + 2]
        if begin == _FIELDS:
            key += data[at + 3 : at + 5]
            at += 5 + data[at + 2]
            begin = data[at : at + 2]
        if begin == _PAIRS:
            return key + data[at + 3 : at + 8]
        return key + begin[:1]
    except IndexError:
        # The byte used as a size is not a size.
        return b""
