"""Form of a rewind: its goals in words, its plan as a drawing, and what it sends back."""

from collections.abc import Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.reset import PartitionReset
from eventhub_checkpoints.receive.position import is_partition_id

LINE = 1000
"""Width of the line of retained events in its own units; the style sheet scales it."""
LEAST = 6
"""Width of the shortest part of a line that can be seen."""

GOALS = {
    "earliest": "the first retained event",
    "latest": "the next new event",
    "sequence_number": "an event, by its sequence number",
    "shift": "a number of events forward, or back if negative",
    "datetime": "a time (such as 2026-11-23T10:00; UTC without an offset)",
    "duration": "a duration before now (such as 2h or P1DT2H)",
}
"""Goals of the form, and their descriptions."""


def numbers_of(text: str) -> dict[str, int]:
    """Return the events of `Preview.numbers`, which the form has as JSON.

    Raises:
        ConfigurationError: it is not what a preview contains.
    """
    try:
        numbers = parse_json(text)
    except ValueError:
        numbers = None
    if (
        not isinstance(numbers, dict)
        or not numbers
        or not all(is_partition_id(id_) and type(each) is int for id_, each in numbers.items())
    ):
        raise ConfigurationError(
            "the form must have the positions of a preview; preview the rewind again"
        )
    return numbers


@dataclass(frozen=True, slots=True)
class Move:
    """Plan for a partition, drawn on the line of its retained events.

    Attributes:
        now, then: where the event is that is read next, now and then; None if it is not known.
        begin, width: the events that are read again or skipped.
    """

    plan: PartitionReset
    now: float | None
    then: float

    @property
    def begin(self) -> float:
        """Return where the change begins."""
        return self.then if self.now is None else min(self.now, self.then, LINE - LEAST)

    @property
    def width(self) -> float:
        """Return the width of the change; 0 if there is none."""
        if self.now is None or self.plan.old == self.plan.new:
            return 0.0
        return round(max(LEAST, abs(self.now - self.then)), 1)


def moves_of(plan: Sequence[PartitionReset]) -> list[Move]:
    """Draw a plan; the largest changes come first."""
    moves = [move_of(each) for each in plan]
    return sorted(moves, key=lambda move: -abs((move.plan.old or 0) - move.plan.new))


def move_of(plan: PartitionReset) -> Move:
    """Draw the plan of a partition."""
    size = plan.last + 1 - plan.begin

    def place(number: int) -> float:
        return round(LINE * (number - plan.begin) / size, 1) if size else float(LINE)

    return Move(plan, None if plan.old is None else place(plan.old), place(plan.new))
