"""What the page shows of events: where it starts to read, and bodies of unknown producers."""

from codecs import getincrementaldecoder
from dataclasses import dataclass

from eventhub_checkpoints._shared.texts import printable
from eventhub_checkpoints.operations.lag import Missing, PartitionLag, next_retained

EVENTS = 3
"""Events that are shown before the position, and from it on."""
MOST_BYTES = 4_000
"""Bytes of a body that are shown as text."""
MOST_BINARY = 512
"""Bytes of a body that are shown in hexadecimal digits."""
MOST_CHARACTERS = 200
"""Characters of other values that are shown."""
MOST_PROPERTIES = 30
"""Properties of an event that are shown."""


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
class Content:
    """Body of an event, or its beginning.

    Attributes:
        text: for people.
        note: its size, its form, and whether it was cut.
    """

    text: str
    note: str


def content(body: bytes) -> Content:
    """Return a body as text if it is UTF-8, else in hexadecimal digits."""
    try:
        # Not final: the cut may have split a character.
        text = getincrementaldecoder("utf-8")().decode(body[:MOST_BYTES], len(body) <= MOST_BYTES)
        shown, form = MOST_BYTES, ""
    except UnicodeDecodeError:
        text = body[:MOST_BINARY].hex(" ", -4)
        shown, form = MOST_BINARY, ", not UTF-8, in hexadecimal digits"
    size = f"{len(body):,} byte{'' if len(body) == 1 else 's'}"
    cut = f"the first {shown:,} of " if len(body) > shown else ""
    return Content(printable(text, keep="\n\t"), cut + size + form)


def line(text: str) -> str:
    """Return the beginning of a string, on one line."""
    cut = f"... ({len(text):,} characters)" if len(text) > MOST_CHARACTERS else ""
    return printable(text[:MOST_CHARACTERS]) + cut
