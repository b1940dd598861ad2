"""What the page shows of events: where it starts to read, and bodies of unknown producers."""

from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.texts import has, plural, printable
from eventhub_checkpoints.operations.lag import Missing, PartitionLag, next_retained

BEFORE, AFTER = 5, 15
"""Events that are shown before the position, and from it on."""
MOST_BYTES = 4_000
"""Bytes of a body that are shown as text."""
MOST_BINARY = 512
"""Bytes of a body that are shown in hexadecimal digits."""
MOST_CHARACTERS = 200
"""Characters of other values that are shown."""
MOST_PROPERTIES = 30
"""Properties of an event that are shown."""
MOST_JSON = 100_000
"""Bytes of a body that are shown as a tree."""
MOST_CHILDREN = 100
"""Members of an object or an array of JSON that are shown."""
MOST_NODES = 500
"""Values of a tree that are shown."""
MOST_DEPTH = 12
"""Levels of a tree that are shown."""
PREVIEW = 120
"""Characters of a body that the line of an event shows."""
SURELY_SEEN = 80
"""Those of them for which the line has room on a screen."""


@dataclass(frozen=True, slots=True)
class Start:
    """First event after a checkpoint.

    Attributes:
        number: its sequence number; None if only the hub can find it, by an offset.
        is_next: whether consumers read it next.
        note: why it does not follow the checkpoint; `""` if it does.
    """

    number: int | None
    is_next: bool = True
    note: str = ""


def start_of(position: PartitionLag, missing: Missing) -> Start:
    """Return the first event after a checkpoint, or the first retained one.

    Args:
        position: the checkpoint, and what the hub retains.
        missing: where consumers start without a checkpoint.
    """
    if position.checkpoint is None and position.offset:
        return Start(None)
    # Without a checkpoint, the page shows events, whether consumers read them or not.
    number = next_retained(position.checkpoint, position.begin, position.last, "earliest")
    is_read = position.checkpoint is not None or missing == "earliest"
    is_next = is_read and not (position.is_gone or position.is_moved)
    return Start(number, is_next, note_of(position))


def note_of(position: PartitionLag) -> str:
    """Return why the first event that is shown does not follow the checkpoint; `""` if it does."""
    checkpoint, first = position.checkpoint, "The first retained events follow."
    if position.is_moved:
        return f"The partition was moved to another store. {first}"
    if checkpoint is None:
        return f"No checkpoint is stored. {first}"
    if position.is_gone:
        return (
            f"The checkpoint, {checkpoint:,}, is ahead of the newest event, {position.last:,}: was "
            f"the hub created anew? {first}"
        )
    if position.lost:
        return (
            f"{position.lost:,} events after the checkpoint, {checkpoint:,}, have expired. {first}"
        )
    return ""


@dataclass(frozen=True, slots=True)
class JsonNode:
    """Value in a tree of JSON.

    Attributes:
        kind: `object`, `array`, `string`, `number` or `word`.
        text: of a value without children; else what is in it, in short.
        children: their names, and the values; arrays have numbers for names.
        left_out: number of children that are not shown.
        number: of the value in its tree, from 0.
        is_found: whether it, or something in it, contains what is searched for.
    """

    kind: str
    text: str
    children: Sequence[tuple[str, "JsonNode"]] = ()
    left_out: int = 0
    number: int = 0
    is_found: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """Body of an event, or its beginning.

    Attributes:
        text: for people.
        note: its size, its form, and whether it was cut.
        preview: its beginning, or what is around the match of a search, on one line.
        tree: it as JSON; None if it is something else, or too long.
        sought: what to mark in it; `""` in hexadecimal digits.
    """

    text: str
    note: str
    preview: str
    tree: JsonNode | None = None
    sought: str = ""


def content(body: bytes, sought: str = "") -> Content:
    """Return a body as text if it is UTF-8, else in hexadecimal digits.

    Args:
        body: of an event.
        sought: text that is searched for; a long body is shown around it.
    """
    size = f"{len(body):,} {plural('byte', len(body))}"
    try:
        # Not final: the cut may have split a character.
        text = getincrementaldecoder("utf-8")().decode(body[:MOST_BYTES], len(body) <= MOST_BYTES)
    except UnicodeDecodeError:
        cut = f"the first {MOST_BINARY:,} of " if len(body) > MOST_BINARY else ""
        digits = body[:MOST_BINARY].hex(" ", -4)
        note = f"{cut}{size}, not UTF-8, in hexadecimal digits"
        return Content(digits, note, preview_of(digits))
    cut = f"the first {MOST_BYTES:,} of " if len(body) > MOST_BYTES else ""
    if cut and sought and next(spans(text, sought), None) is None:
        whole = body.decode("utf-8", "replace")
        if begin := begin_of(whole, sought, len(text)):
            text, cut = "…" + whole[begin : begin + MOST_BYTES], "the part with the match, of "
    preview, tree = preview_of(text, sought), tree_of(body, sought)
    return Content(printable(text, keep="\n\t"), cut + size, preview, tree, sought)


def preview_of(text: str, sought: str = "") -> str:
    """Return the beginning of a text, or what is around a match, on one line."""
    begin = begin_of(text, sought, SURELY_SEEN)
    preview = printable(" ".join(text[begin : begin + 2 * PREVIEW].split()))
    cut = "…" if len(preview) > PREVIEW else ""
    return ("…" if begin else "") + preview[:PREVIEW] + cut


def tree_of(body: bytes, sought: str = "") -> JsonNode | None:
    """Return the tree of a body that is an object or an array of JSON; else None."""
    if len(body) > MOST_JSON or body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = parse_json(body)
    except ValueError:
        return None
    return TreeBuilder(sought).node(value, 0)


class TreeBuilder:
    """Makes the tree of a value of JSON, up to a number of values.

    Args:
        sought: text that is searched for.
    """

    def __init__(self, sought: str) -> None:
        self._sought = sought
        self._size = 0

    def node(self, value: object, depth: int) -> JsonNode:
        """Return a value as a part of the tree."""
        number = self._size
        self._size += 1
        members: list[tuple[object, object]]
        if isinstance(value, dict):
            members, kind, noun = [*value.items()], "object", "key"
        elif isinstance(value, list):
            members, kind, noun = [*enumerate(value)], "array", "item"
        else:
            return self._leaf(value, number)
        children: list[tuple[str, JsonNode]] = []
        is_found = False
        for name, each in members[: MOST_CHILDREN if depth < MOST_DEPTH else 0]:
            if self._size >= MOST_NODES:
                break
            child = self.node(each, depth + 1)
            children.append((line(str(name), self._sought), child))
            # The numbers of an array are not in its text.
            is_found |= child.is_found or (kind == "object" and self._is_found(str(name)))
        size = f"{len(members):,} {plural(noun, len(members))}"
        return JsonNode(kind, size, children, len(members) - len(children), number, is_found)

    def _leaf(self, value: object, number: int) -> JsonNode:
        """Return a string, a number or a word of JSON."""
        if isinstance(value, str):
            kind, text = "string", value
        elif isinstance(value, bool) or value is None:
            kind, text = "word", {True: "true", False: "false", None: "null"}[value]
        else:
            kind, text = "number", str(value)
        shown = line(text, self._sought)
        return JsonNode(kind, shown, number=number, is_found=self._is_found(text))

    def _is_found(self, text: str) -> bool:
        return bool(self._sought) and has(text, self._sought)


def line(text: str, sought: str = "") -> str:
    """Return the beginning of a string, or what is around a match, on one line."""
    begin = begin_of(text, sought, MOST_CHARACTERS)
    end = begin + MOST_CHARACTERS
    cut = f"… ({len(text):,} characters)" if end < len(text) else ""
    return ("…" if begin else "") + printable(text[begin:end]) + cut


def begin_of(text: str, sought: str, size: int) -> int:
    """Return from where to show `size` characters of a text, so that the first match is in them.

    A match that is longer than they are begins there.
    """
    begin, end = next(spans(text, sought), (0, 0))
    if end <= size:
        return 0
    before = max(0, min(size // 4, size - (end - begin)))
    return max(0, min(begin - before, len(text) - size))


def pieces(text: str, sought: str) -> list[tuple[str, bool]]:
    """Divide a text that is shown into parts, and say of each whether it is searched for."""
    parts: list[tuple[str, bool]] = []
    at = 0
    for begin, end in spans(text, printable(sought)):
        parts += [(text[at:begin], False), (text[begin:end], True)]
        at = end
    return [each for each in [*parts, (text[at:], False)] if each[0]]


def spans(text: str, sought: str) -> Iterator[tuple[int, int]]:
    """Yield where a text contains another one, in any case, as `has` compares them."""
    sought, folded = sought.casefold(), text.casefold()
    if not sought or sought not in folded:
        return
    # A letter may become several, as "ß" does, but never none; a match has the whole of each.
    sources: Sequence[int] = range(len(text))
    if len(folded) > len(text):
        sources = [source for source, each in enumerate(text) for _ in each.casefold()]
    at = 0
    while (begin := folded.find(sought, at)) >= 0:
        at = begin + len(sought)
        end = sources[at - 1] + 1
        yield sources[begin], end
        while at < len(sources) and sources[at] < end:
            at += 1
