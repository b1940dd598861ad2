"""A case of a benchmark, what it has to reach, and what was measured of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.measuring import BARE, OURS, SIDES, Case, Round


@dataclass(frozen=True)
class Target:
    """That ours costs at most so much of what another side does.

    Attributes:
        measure: `"cpu"` or `"wall"`.
        other: the side.
        most: the greatest ratio, ours divided by theirs.
    """

    measure: str
    other: str
    most: float

    def __str__(self) -> str:
        return f"at most {self.most:g} x {self.other}"

    def holds(self, result: "Result") -> bool:
        """Whether it was reached."""
        return (result.ratio(self.other, self.measure) or 0.0) <= self.most


@dataclass(frozen=True)
class Share:
    """That our own part, above the bare request, is at most so many seconds of an operation.

    Attributes:
        measure: `"cpu"` or `"wall"`.
        most: seconds.
        operations: how many of them one call has.
    """

    measure: str
    most: float
    operations: int = 1

    def __str__(self) -> str:
        each = f", each of {self.operations}" if self.operations > 1 else ""
        return f"at most {1000 * self.most:g} ms above {BARE}{each}"

    def holds(self, result: "Result") -> bool:
        """Whether it was reached."""
        return (result.above_bare(self.measure) or 0.0) <= self.operations * self.most


@dataclass(frozen=True)
class Limit:
    """That ours is at most so many seconds.

    Attributes:
        measure: `"stall"`.
        most: seconds.
    """

    measure: str
    most: float

    def __str__(self) -> str:
        return f"at most {1000 * self.most:g} ms"

    def holds(self, result: "Result") -> bool:
        """Whether it was reached, by the median of the rounds."""
        return median(result.values(OURS, self.measure)) <= self.most


@dataclass(frozen=True)
class OneTrip:
    """That one answer is waited for, and no more."""

    measure: str = "trips"

    def __str__(self) -> str:
        return "1 round trip"

    def holds(self, result: "Result") -> bool:
        """Whether it was reached, in every round."""
        return {*result.values(OURS, self.measure)} == {1}


@dataclass(frozen=True)
class Entry:
    """A case of the benchmark.

    Attributes:
        measures: those of a `Cost` that say something here.
    """

    title: str
    case: Case
    targets: tuple[Target | Share | Limit | OneTrip, ...] = ()
    measures: tuple[str, ...] = ("cpu", "wall", "memory")


@dataclass(frozen=True)
class Result:
    """All rounds of one case."""

    name: str
    entry: Entry
    rounds: Sequence[Round]

    @property
    def measures(self) -> list[str]:
        """Those that were measured."""
        return [measure for measure in self.entry.measures if self.values(OURS, measure)]

    def values(self, side: str, measure: str) -> list[float]:
        """One figure for each round; empty where this was not measured."""
        found = [getattr(each[side], measure) for each in self.rounds if side in each]
        return [value for value in found if value is not None]

    def ratio(self, other: str, measure: str) -> float | None:
        """Ours divided by another side's: the median of the rounds' ratios.

        Each round is compared with itself, so a machine that gets slower does no harm.
        """
        theirs = self.values(other, measure)
        if not theirs or not all(theirs):  # a file is reached in no round trip at all
            return None
        ours = self.values(OURS, measure)
        return median(a / b for a, b in zip(ours, theirs, strict=True))

    def above_bare(self, measure: str) -> float | None:
        """Ours less the bare request's: the median of the rounds' differences."""
        bare = self.values(BARE, measure)
        ours = self.values(OURS, measure)
        return median(a - b for a, b in zip(ours, bare, strict=True)) if bare else None

    def reached(self, measure: str) -> list[tuple[str, bool]]:
        """The targets of a measure, and whether each was reached."""
        targets = [target for target in self.entry.targets if target.measure == measure]
        return [(str(target), target.holds(self)) for target in targets]

    def as_dict(self) -> dict[str, Any]:
        """For the JSON file; seconds and bytes."""
        return {
            "name": self.name,
            "title": self.entry.title,
            "measures": {measure: self._measure(measure) for measure in self.measures},
        }

    def _measure(self, measure: str) -> dict[str, Any]:
        sides = [side for side in SIDES if self.values(side, measure)]
        return {
            "rounds": {side: self.values(side, measure) for side in sides},
            "median": {side: median(self.values(side, measure)) for side in sides},
            "ratio": {side: self.ratio(side, measure) for side in sides[1:]},
            "above_bare": self.above_bare(measure),
            "targets": [
                {"target": text, "reached": holds} for text, holds in self.reached(measure)
            ],
        }
