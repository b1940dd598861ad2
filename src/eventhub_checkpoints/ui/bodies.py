"""What the page shows of events: where it starts to read, and bodies of unknown producers."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.texts import plural, printable
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
    """

    kind: str
    text: str
    children: Sequence[tuple[str, "JsonNode"]] = ()
    left_out: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """Body of an event, or its beginning.

    Attributes:
        text: for people.
        note: its size, its form, and whether it was cut.
        preview: its beginning on one line.
        tree: it as JSON; None if it is something else, or too long.
    """

    text: str
    note: str
    preview: str
    tree: JsonNode | None = None


def content(body: bytes) -> Content:
    """Return a body as text if it is UTF-8, else in hexadecimal digits."""
    try:
        # Not final: the cut may have split a character.
        text = getincrementaldecoder("utf-8")().decode(body[:MOST_BYTES], len(body) <= MOST_BYTES)
        shown, form = MOST_BYTES, ""
    except UnicodeDecodeError:
        text = body[:MOST_BINARY].hex(" ", -4)
        shown, form = MOST_BINARY, ", not UTF-8, in hexadecimal digits"
    size = f"{len(body):,} {plural('byte', len(body))}"
    cut = f"the first {shown:,} of " if len(body) > shown else ""
    preview = printable(" ".join(text[: 2 * PREVIEW].split()))
    return Content(
        printable(text, keep="\n\t"),
        cut + size + form,
        preview[:PREVIEW] + ("…" if len(preview) > PREVIEW else ""),
        None if form else tree_of(body),
    )


def tree_of(body: bytes) -> JsonNode | None:
    """Return the tree of a body that is an object or an array of JSON; else None."""
    if len(body) > MOST_JSON or body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = parse_json(body)
    except ValueError:
        return None
    return TreeBuilder().node(value, 0)


class TreeBuilder:
    """Makes the tree of a value of JSON, up to a number of values."""

    def __init__(self) -> None:
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
            return leaf(value, number)
        children: list[tuple[str, JsonNode]] = []
        for name, each in members[: MOST_CHILDREN if depth < MOST_DEPTH else 0]:
            if self._size >= MOST_NODES:
                break
            children.append((line(str(name)), self.node(each, depth + 1)))
        size = f"{len(members):,} {plural(noun, len(members))}"
        return JsonNode(kind, size, children, len(members) - len(children), number)


def leaf(value: object, number: int) -> JsonNode:
    """Return a string, a number or a word of JSON."""
    if isinstance(value, str):
        return JsonNode("string", line(value), number=number)
    if isinstance(value, bool) or value is None:
        words = {True: "true", False: "false", None: "null"}
        return JsonNode("word", words[value], number=number)
    return JsonNode("number", line(str(value)), number=number)


def line(text: str) -> str:
    """Return the beginning of a string, on one line."""
    cut = f"... ({len(text):,} characters)" if len(text) > MOST_CHARACTERS else ""
    return printable(text[:MOST_CHARACTERS]) + cut
