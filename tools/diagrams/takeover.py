"""A consumer claims a partition, is killed, and is replaced by another one."""

from diagrams.drawing import Palette
from diagrams.lanes import FIRST, HALF, MOMENTS, SECOND, SECOND_WORDS, STORE, Lanes, at

NAME = "takeover"
TITLE = (
    "A claims partition 0, renews its ownership and saves checkpoints in the store. A claim of B "
    "loses. A is killed; when its ownership has expired, B claims the partition and continues "
    "after the last checkpoint."
)
KILLED, EXPIRED = 8.6, 14.4
LOST = 3.2


def draw(palette: Palette) -> str:
    """Return the picture in the colours of a palette."""
    lanes = Lanes(palette, TITLE, end_of_first=KILLED)
    lanes.bar(FIRST, 0.2, KILLED, "first", "reads partition 0")
    lanes.cross(at(KILLED), FIRST, radius=8)
    lanes.text(at(KILLED) + 16, FIRST, "killed", color="alarm", bold=True)

    lanes.bar(STORE, 0.2, KILLED, "first", "owner: A")
    lanes.waiting(STORE, KILLED, EXPIRED, "first", "not renewed")
    lanes.bar(STORE, EXPIRED, MOMENTS, "second", "owner: B")
    for moment, words in ((0.7, "claim"), (3.2, "save 20"), (6.7, "save 40")):
        lanes.first_asks(moment, words)

    lanes.line((at(LOST), SECOND), (at(LOST), STORE + HALF + 6), color="second")
    lanes.cross(at(LOST), STORE + HALF + 7, radius=6)
    lanes.text(at(LOST) + 10, SECOND_WORDS, "claim loses", color="muted")
    lanes.second_asks(EXPIRED + 0.5, "claim wins", side="end")
    lanes.bar(SECOND, EXPIRED, MOMENTS, "second", "from 41")
    return lanes.svg()
