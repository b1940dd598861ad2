"""Report of the checks on a store: as text, and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from eventhub_checkpoints.conformance import contract


class Verdict(Enum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_SHOWN = "not shown"


class Certificate(Enum):
    """Overall result of a report."""

    CERTIFIED = "certified"
    WITHIN_ONE_PROCESS = "certified within one process"
    NOT_CERTIFIED = "not certified"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one check.

    Attributes:
        check: the check.
        verdict: result of the check.
        reason: why the check failed or could not be run; `""` if it passed.
        seconds: duration.
    """

    check: contract.Check
    verdict: Verdict
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """Outcomes of all checks on one store.

    Attributes:
        store: short description of the store.
        outcomes: in the order of the contract.
        seconds: duration of the run; by default, the sum of those of the checks.
    """

    store: str
    outcomes: Sequence[Outcome]
    seconds: float | None = None

    @property
    def failed(self) -> list[Outcome]:
        """Return the checks that failed."""
        return [outcome for outcome in self.outcomes if outcome.verdict is Verdict.FAILED]

    @property
    def not_shown(self) -> list[Outcome]:
        """Return the checks that could not be run: they say nothing about the store."""
        return [outcome for outcome in self.outcomes if outcome.verdict is Verdict.NOT_SHOWN]

    @property
    def why_not_raced(self) -> str:
        """Return why processes could not race a store that does not declare `for_one_process`.

        Return `""` if they could, or if no check that needs processes was run.
        """
        reasons = {
            outcome.reason
            for outcome in self.not_shown
            if contract.PROCESSES in outcome.check.needs
        }
        return next(iter(reasons - {contract.ONE_PROCESS, contract.NOT_ON_BASE}), "")

    @property
    def why_not_certified(self) -> str:
        """Return why the store is not certified; `""` if it is, even within one process."""
        if self.failed:
            names = ", ".join(outcome.check.name for outcome in self.failed[:3])
            more = ", ..." if len(self.failed) > 3 else ""
            return f"{len(self.failed)} of {len(self.outcomes)} checks failed: {names}{more}"
        if self.why_not_raced:
            return f"processes could not race the store: {self.why_not_raced}"
        if len(self.outcomes) < len(contract.CHECKS):
            return f"only {len(self.outcomes)} of {len(contract.CHECKS)} checks were tried"
        return ""

    @property
    def certificate(self) -> Certificate:
        """Return whether the store is certified, and whether for several processes."""
        if self.why_not_certified:
            return Certificate.NOT_CERTIFIED
        if any(outcome.reason == contract.ONE_PROCESS for outcome in self.outcomes):
            return Certificate.WITHIN_ONE_PROCESS
        return Certificate.CERTIFIED

    def text(self, every_check: bool = False) -> str:
        """Return the report as text; the last line has the certificate and the totals.

        Args:
            every_check: also name the checks that passed.
        """
        lines = [f"conformance of {self.store}"]
        for level, title in contract.LEVELS.items():
            here = [outcome for outcome in self.outcomes if outcome.check.level == level]
            if here:
                lines += ["", f"level {level}, {title}: {totals(here)}"]
                lines += self._by_guarantee(here, every_check)
        seconds = self.seconds
        if seconds is None:
            seconds = sum(outcome.seconds for outcome in self.outcomes)
        why = f": {self.why_not_certified}" if self.why_not_certified else ""
        ending = f"{self.certificate.value}{why}; {totals(self.outcomes)}, in {seconds:.1f} s"
        return "\n".join([*lines, "", ending])

    @staticmethod
    def _by_guarantee(outcomes: Sequence[Outcome], every_check: bool) -> Iterator[str]:
        for number, title in contract.GUARANTEES.items():
            here = [outcome for outcome in outcomes if outcome.check.guarantees[0] == number]
            if not here:
                continue
            yield f"  {number:<4} {title:<28} {totals(here)}"
            for outcome in here:
                if every_check or outcome.verdict is Verdict.FAILED:
                    yield f"         {outcome.verdict.value:<10} {outcome.check.name}"
                if outcome.verdict is Verdict.FAILED:
                    yield f"                    {outcome.check.sentence}"
                    yield f"                    but: {outcome.reason}"
            silent = [outcome for outcome in here if outcome.verdict is Verdict.NOT_SHOWN]
            for reason in dict.fromkeys(outcome.reason for outcome in silent):
                names = ", ".join(each.check.name for each in silent if each.reason == reason)
                yield f"         not shown ({reason}): {names}"

    def json(self) -> str:
        """Return the report as JSON: store, certificate, totals, and the verdict of every check."""
        counts = Counter(outcome.verdict for outcome in self.outcomes)
        return json.dumps(
            {
                "store": self.store,
                "certificate": self.certificate.value,
                "why_not_certified": self.why_not_certified,
                "totals": {verdict.value.lower(): counts[verdict] for verdict in Verdict},
                "checks": [
                    {
                        "name": outcome.check.name,
                        "level": outcome.check.level,
                        "guarantees": outcome.check.guarantees,
                        "habits": outcome.check.habits,
                        "sentence": outcome.check.sentence,
                        "verdict": outcome.verdict.value.lower(),
                        "reason": outcome.reason,
                        "seconds": round(outcome.seconds, 3),
                    }
                    for outcome in self.outcomes
                ],
            },
            indent=2,
        )


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return the number of checks by verdict, without the zeros."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    shown = (f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    return ", ".join(shown) or "no check"
