"""Owners of partitions as pages show them: a short name, a badge and a share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from eventhub_checkpoints._shared.texts import printable
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.lag import PartitionLag
from eventhub_checkpoints.ui.observations import Holding

COLOURS = 10
"""Colours of the style sheet; the next owners have them with another texture."""
TEXTURES = ("", "stripes", "checks")
"""Patterns over a colour; owners beyond `COLOURS * len(TEXTURES)` differ by their tags only."""
LETTERS = 26
"""Number of letters of the alphabet."""
BAR = 1000
"""Width of a bar in its own units; the style sheet scales it."""
SHORT = 8
"""Characters of a UUID that are shown."""
HEAD, TAIL = 14, 4
"""Characters that are shown of the beginning and the end of another long id."""
UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def short(owner_id: str) -> str:
    """Return an owner id that fits in a line; the page has the whole one in a tooltip."""
    shown = printable(owner_id)
    if UUID.fullmatch(shown):
        return shown[:SHORT]
    if len(shown) <= HEAD + TAIL + 2:
        return shown
    return f"{shown[:HEAD]}…{shown[-TAIL:]}"


@dataclass(frozen=True, slots=True)
class Badge:
    """Look of an owner. No other owner of the group has its tag, so colours only help the eye.

    Attributes:
        number: from 0.
    """

    number: int

    @property
    def tag(self) -> str:
        """Return its letters: A to Z, then AA to AZ, BA and so on."""
        more, last = divmod(self.number, LETTERS)
        return (Badge(more - 1).tag if more else "") + chr(ord("A") + last)

    @property
    def colour(self) -> int:
        """Return the number of its colour."""
        return self.number % COLOURS

    @property
    def texture(self) -> str:
        """Return the pattern over its colour; `""` if there is none."""
        return TEXTURES[self.number // COLOURS % len(TEXTURES)]


class Palette:
    """Badges of the owners of a group; an owner keeps its own while it owns a partition."""

    def __init__(self) -> None:
        self._of_owner: dict[str, Badge] = {}

    def assign(self, owner_ids: Iterable[str]) -> Mapping[str, Badge]:
        """Return the badge of each owner; owners that are gone free theirs."""
        owners = sorted(owner_ids)
        kept = {owner: self._of_owner[owner] for owner in owners if owner in self._of_owner}
        taken = {badge.number for badge in kept.values()}
        free = (number for number in count() if number not in taken)
        for owner in owners:
            if owner not in kept:
                kept[owner] = Badge(next(free))
        self._of_owner = kept
        return kept


@dataclass(frozen=True, slots=True)
class Share:
    """What a member of a group has, or what nobody has.

    Attributes:
        owner_id: `""` for the partitions without an owner.
        badge: None without an owner.
        partition_ids: in numeric order.
        lag: events that are not processed in them; None if that of one is unknown.
        since: time since when it holds the first of them, in seconds since the epoch; None if that
            is unknown.
        is_older: whether it may have held it before.
        renewed: seconds since its most recent renewal.
        x, width: its part of a bar of all partitions.
    """

    owner_id: str
    badge: Badge | None
    partition_ids: Sequence[str]
    lag: int | None
    since: float | None
    is_older: bool
    renewed: float | None
    x: float
    width: float

    @property
    def name(self) -> str:
        """Return its short id."""
        return short(self.owner_id) if self.owner_id else "nobody"


def shares(
    positions: Sequence[PartitionLag],
    badges: Mapping[str, Badge],
    holdings: Mapping[str, Holding],
) -> list[Share]:
    """Return the share of each member, the largest first, and last that of nobody, if any."""
    by_owner: dict[str, list[PartitionLag]] = {}
    for position in positions:
        by_owner.setdefault(position.owner_id, []).append(position)
    ordered = sorted(by_owner, key=lambda owner: (not owner, -len(by_owner[owner]), owner))
    made: list[Share] = []
    x = 0.0
    for owner in ordered:
        own = by_owner[owner]
        lags = [each.lag for each in own]
        ages = [each.ownership_age for each in own if owner and each.ownership_age is not None]
        held = [holdings[each.partition_id] for each in own if each.partition_id in holdings]
        first = min(held, key=lambda each: each.since, default=None) if owner else None
        width = BAR * len(own) / len(positions)
        made.append(
            Share(
                owner,
                badges[owner] if owner else None,
                in_order(each.partition_id for each in own),
                None if None in lags else sum(each for each in lags if each),
                first.since if first else None,
                first.is_older if first else False,
                min(ages, default=None),
                x,
                width,
            )
        )
        x += width
    return made


def ranges(partition_ids: Sequence[str]) -> str:
    """Return partition ids with runs of three or more as `first-last`."""
    runs: list[list[str]] = []
    for id_ in partition_ids:
        if runs and id_.isdigit() and runs[-1][-1].isdigit() and int(id_) == int(runs[-1][-1]) + 1:
            runs[-1].append(id_)
        else:
            runs.append([id_])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
