"""The checks of the conformance suite, by what a run of them needs: a clock, or processes."""

from collections.abc import Iterable, Sequence

from eventhub_checkpoints.conformance import CHECKS, Certifier, Check, Verdict
from eventhub_checkpoints.conformance.contract import BASE, PROCESSES

LIMITS = [check for check in CHECKS if check.waits or "stall" in check.needs]
"""Checks that let a time limit pass: on the real clock they take seconds each, and measure them."""
BETWEEN_PROCESSES = [check for check in CHECKS if PROCESSES in check.needs]
"""Checks that race two spawned processes for seconds."""
PROMPT = [check for check in CHECKS if check not in (*LIMITS, *BETWEEN_PROCESSES)]
"""All others: what they find does not depend on how fast the machine is."""
CONCURRENT_CLAIMS = {"claims_of_a_batch_run_side_by_side", "no_more_claims_at_once_than_allowed"}
"""Checks that do not apply to a store that claims a batch in one trip."""
OF_NAMES_WITHOUT_CASE = {
    "names_are_compared_without_case",
    "names_come_back_as_the_caller_spelled_them",
}
"""Checks that do not apply to a store that compares names with their case."""


def without(lacking: Iterable[str], checks: Sequence[Check] = PROMPT) -> list[Check]:
    """Return the checks that need nothing of what is lacking."""
    return [check for check in checks if not {*lacking} & {*check.needs}]


def black_box(checks: Sequence[Check] = PROMPT) -> list[Check]:
    """Return the checks that apply to a store that is not on our base class, too."""
    return without([BASE], checks)


def not_kept(certifier: Certifier, checks: Sequence[Check]) -> list[str]:
    """Return a line for each check that did not pass, also for one that could not be run."""
    return [
        f"{each.check.name}: {each.verdict.value}: {each.check.sentence} But: {each.reason}"
        for each in certifier.outcomes(checks)
        if each.verdict is not Verdict.PASSED
    ]
