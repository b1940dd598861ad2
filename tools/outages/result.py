"""What came of a trial."""

from dataclasses import dataclass, field

FOREVER = float("inf")
GIVEN_UP = 200.0
"""Seconds after which a call that does not end is abandoned."""


@dataclass
class Result:
    """What came of a trial.

    Attributes:
        caller, fault, seconds: of the trial.
        took: seconds from the fault until the call ended.
        error: what it said; "" if it succeeded.
        said: lines in the log, of WARNING and above.
        lost, twice: numbers of events.
        notes: more that the caller observed, such as when it was unhealthy.
    """

    caller: str
    fault: str
    seconds: float
    took: float = 0.0
    error: str = ""
    said: list[str] = field(default_factory=list)
    lost: int = 0
    twice: int = 0
    notes: str = ""

    def __str__(self) -> str:
        lasted = "for ever" if self.seconds == FOREVER else f"{self.seconds:g} s"
        ended = self.error or "went on"
        said = f"; log: {len(self.said)} x {self.said[0]}" if self.said else "; log: nothing"
        counts = f"lost {self.lost}, twice {self.twice}"
        notes = f"; {self.notes}" if self.notes else ""
        return (
            f"{self.caller:<22} {self.fault:<10} {lasted:<8} {self.took:6.1f} s  {counts}{notes}; "
            f"{ended}{said}"
        )
