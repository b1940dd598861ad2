"""How long to wait before the next attempt."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0
WORTHWHILE = 0.05


def pause(attempt: int, seconds_left: float, chance: float) -> float | None:
    """The pause after attempt number `attempt` (from 0), in seconds; None: give up.

    Doubles from 0.1 s to 3 s, spread over half to the whole of that by `chance` (0 to 1) so that
    many clients do not come back in step.
    """
    wait = min(FIRST_PAUSE * 2 ** min(attempt, 10), LONGEST_PAUSE) * (0.5 + chance / 2)
    return wait if wait + WORTHWHILE < seconds_left else None


def attempt_limit(seconds_left: float, seconds: float) -> float:
    """How long one attempt may take: half of the whole; a hung one leaves time for another."""
    return max(min(seconds_left, seconds / 2), 0.0)
