"""Rounds and seeds of the randomized tests: few rounds in CI, many in `tox -e campaign`."""

import os
import random

IS_CAMPAIGN = os.environ.get("CAMPAIGN", "0") not in ("", "0")
SEED_VARIABLE = "CAMPAIGN_SEED"

if IS_CAMPAIGN:
    # Processes that share the tests inherit it, so that all of them have the same one.
    os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(10**9)))


def rounds(short: int, full: int) -> int:
    """Return the number of rounds: `full` in a campaign, otherwise `short`."""
    return full if IS_CAMPAIGN else short


def seed(fixed: int) -> int:
    """Return the seed of a campaign, which the report's header names, otherwise a fixed one."""
    return int(os.environ[SEED_VARIABLE]) if IS_CAMPAIGN else fixed


def header() -> list[str]:
    """Return how to repeat this campaign, as lines of pytest's header."""
    return [f"campaign: repeat with {SEED_VARIABLE}={seed(0)}"] if IS_CAMPAIGN else []
