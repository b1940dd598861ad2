"""Broken stores, one fault each, and which checks catch them.

    python tests/conformance/mutants.py         print which check catches which mutant
    python tests/conformance/mutants.py NAME    for this mutant only

The proof that the checks bite: each mutant is caught by the checks that name its fault, and each
check is needed by a mutant. What else catches it is an overlap, and is printed too.
"""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import mutants_of_checkpoints
import mutants_of_claims
import mutants_of_limits
import mutants_of_processes
import mutants_of_progress
import mutants_of_reading
import mutants_of_records
import mutants_of_the_base
import mutants_of_writes
from sound import MUTANTS, Sound

from eventhub_checkpoints.conformance import CHECKS, Check, Outcome, Report, certify

GALLERY = (
    mutants_of_claims,
    mutants_of_processes,
    mutants_of_checkpoints,
    mutants_of_progress,
    mutants_of_writes,
    mutants_of_records,
    mutants_of_reading,
    mutants_of_the_base,
    mutants_of_limits,
)
BY_NAME = {check.name: check for check in CHECKS}


def tried(kind: type[Sound], checks: list[Check]) -> Report:
    """The report of a store; each check has separate rows."""
    return Report(kind.__name__, [outcome(kind, check) for check in checks])


def outcome(kind: type[Sound], check: Check) -> Outcome:
    rows = kind.rows_class()
    return certify(partial(kind, rows), rows.accessors(), checks=[check]).outcomes[0]


def row(kind: type[Sound]) -> str:
    """One mutant in the matrix: the checks that name it, and the others that catch it."""
    caught = [one.check.name for one in tried(kind, CHECKS).failed]
    named = [f"{name}{'' if name in caught else ' (NOT CAUGHT)'}" for name in MUTANTS[kind]]
    others = [name for name in caught if name not in MUTANTS[kind]]
    lines = [f"{kind.__name__}", *(f"    named   {name}" for name in named)]
    return "\n".join([*lines, *(f"    also    {name}" for name in others)])


def main() -> None:
    """Print the matrix."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    wanted = [one for one in MUTANTS if one.__name__ in sys.argv[1:] or not sys.argv[1:]]
    with ThreadPoolExecutor(16) as pool:
        for line in pool.map(row, wanted):
            print(line, flush=True)
    print(f"{len(wanted)} mutants, {len(CHECKS)} checks")


if __name__ == "__main__":
    main()
