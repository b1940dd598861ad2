"""A consumer joins a group and gets a partition from the one that owns it."""

from diagrams.drawing import Palette
from diagrams.lanes import FIRST, FIRST_WORDS, HALF, MOMENTS, SECOND, STORE, Lanes, at

NAME = "hand-over"
TITLE = (
    "A reads partition 0. B joins and writes a hand-over request into the store. A sees it in its "
    "next round, finishes the events that it has begun, saves 57 and releases the partition. B "
    "claims it and reads from 58: no event is processed twice."
)
SEEN, RELEASED, CLAIMED = 7.4, 12, 14.6
ASKED = 4


def draw(palette: Palette) -> str:
    """Return the picture in the colours of a palette."""
    lanes = Lanes(palette, TITLE, end_of_first=MOMENTS)
    lanes.bar(FIRST, 0, SEEN, "first", "reads partition 0")
    lanes.bar(FIRST, SEEN, RELEASED, "first", "finishes")
    lanes.bar(STORE, 0, RELEASED, "first", "owner: A")
    lanes.waiting(STORE, RELEASED, CLAIMED, "store", "free")
    lanes.bar(STORE, CLAIMED, MOMENTS, "second", "owner: B")

    lanes.second_asks(ASKED, "asks for it")
    lanes.line((at(SEEN), STORE - HALF), (at(SEEN), FIRST + HALF), color="second", arrow=True)
    lanes.text(at(SEEN) - 6, FIRST_WORDS, "A sees it", color="muted", anchor="end")
    lanes.first_asks(RELEASED - 0.4, "saves 57, releases")
    lanes.second_asks(CLAIMED + 0.5, "claims", side="end")
    lanes.bar(SECOND, CLAIMED, MOMENTS, "second", "from 58")
    return lanes.svg()
