"""How many events of each partition come into one batch, where not all of them do.

Pure functions over counts by partition id.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job takes at most in one batch.

    Units: events per batch; None is no limit.

    Attributes:
        total: of all partitions together.
        rate: of each partition that `rates` does not name.
        rates: of single partitions, by id.
    """

    total: int | None = None
    rate: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)

    def taken(self, waiting: Mapping[str, int]) -> dict[str, int]:
        """How many of the waiting events are taken.

        First no partition is given more than its own rate, then what is left is cut to the
        total, see `split`.
        """
        allowed = {one: self._at_most(one, count) for one, count in waiting.items()}
        return allowed if self.total is None else split(self.total, allowed)

    def _at_most(self, partition_id: str, count: int) -> int:
        rate = self.rates.get(partition_id, self.rate)
        return count if rate is None else min(count, rate)


NO_LIMITS = Limits()


def split(total: int, waiting: Mapping[str, int]) -> dict[str, int]:
    """Share a total out in proportion to what waits; what is taken adds up to it exactly.

    Every partition that has anything is given at least one event, so none starves behind a
    large one. Where there are more such partitions than the total allows, that rule wins.
    """
    lagging = {one: count for one, count in waiting.items() if count}
    if sum(lagging.values()) <= total:
        return dict(waiting)
    rest = max(0, total - len(lagging))
    further = sum(lagging.values()) - len(lagging)
    shares = {one: divmod(rest * (count - 1), further or 1) for one, count in lagging.items()}
    taken = dict.fromkeys(waiting, 0) | {one: 1 + whole for one, (whole, _) in shares.items()}
    # Largest remainders first; among equals the order of partitions, so the result is stable.
    by_remainder = sorted(shares, key=lambda one: -shares[one][1])
    for one in by_remainder[: rest - sum(whole for whole, _ in shares.values())]:
        taken[one] += 1
    return taken
