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
        verdict: its result.
        reason: why it failed or could not be shown; `""` if it passed.
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
    """

    store: str
    outcomes: Sequence[Outcome]

    @property
    def failed(self) -> list[Outcome]:
        """Return the checks that failed."""
        return [one for one in self.outcomes if one.verdict is Verdict.FAILED]

    @property
    def why_not_raced(self) -> str:
        """Return why processes could not race a store that does not declare `for_one_process`.

        `""` if they could, or if no check that races them was run.
        """
        reasons = {
            one.reason
            for one in self.outcomes
            if contract.PROCESSES in one.check.needs and one.verdict is Verdict.NOT_SHOWN
        }
        return next(iter(reasons - {contract.ONE_PROCESS}), "")

    @property
    def why_not_certified(self) -> str:
        """Return why the store is not certified; `""` if it is, even within one process."""
        if self.failed:
            names = ", ".join(one.check.name for one in self.failed[:3])
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
        if any(one.reason == contract.ONE_PROCESS for one in self.outcomes):
            return Certificate.WITHIN_ONE_PROCESS
        return Certificate.CERTIFIED

    def text(self, every_check: bool = False) -> str:
        """Return the report as text; the last line is the certificate.

        Args:
            every_check: also name the checks that passed.
        """
        lines = [f"conformance of {self.store}"]
        for level, title in contract.LEVELS.items():
            here = [one for one in self.outcomes if one.check.level == level]
            if here:
                lines += ["", f"level {level}, {title}: {totals(here)}"]
                lines += self._by_guarantee(here, every_check)
        seconds = sum(one.seconds for one in self.outcomes)
        why = f": {self.why_not_certified}" if self.why_not_certified else ""
        ending = [f"{totals(self.outcomes)} in {seconds:.1f} s", f"{self.certificate.value}{why}"]
        return "\n".join([*lines, "", *ending])

    @staticmethod
    def _by_guarantee(outcomes: Sequence[Outcome], every_check: bool) -> Iterator[str]:
        for number, title in contract.GUARANTEES.items():
            here = [one for one in outcomes if one.check.guarantees[0] == number]
            if not here:
                continue
            yield f"  {number:<4} {title:<28} {totals(here)}"
            for one in here:
                if every_check or one.verdict is Verdict.FAILED:
                    yield f"         {one.verdict.value:<10} {one.check.name}"
                if one.verdict is Verdict.FAILED:
                    yield f"                    {one.check.sentence}"
                    yield f"                    but: {one.reason}"
            yield from not_shown(here)

    def json(self) -> str:
        """Return the report as JSON: store, certificate, totals, and the verdict of every check."""
        counts = Counter(one.verdict for one in self.outcomes)
        return json.dumps(
            {
                "store": self.store,
                "certificate": self.certificate.value,
                "why_not_certified": self.why_not_certified,
                "totals": {one.value.lower(): counts[one] for one in Verdict},
                "checks": [
                    {
                        "name": one.check.name,
                        "level": one.check.level,
                        "guarantees": one.check.guarantees,
                        "habits": one.check.habits,
                        "sentence": one.check.sentence,
                        "verdict": one.verdict.value.lower(),
                        "reason": one.reason,
                        "seconds": round(one.seconds, 3),
                    }
                    for one in self.outcomes
                ],
            },
            indent=2,
        )


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return the number of checks by verdict, without the zeros."""
    counts = Counter(one.verdict for one in outcomes)
    return ", ".join(f"{counts[one]} {one.value}" for one in Verdict if counts[one]) or "no check"


def not_shown(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line for each reason, with the checks that could not be shown."""
    silent = [one for one in outcomes if one.verdict is Verdict.NOT_SHOWN]
    for reason in dict.fromkeys(one.reason for one in silent):
        names = ", ".join(one.check.name for one in silent if one.reason == reason)
        yield f"         not shown ({reason}): {names}"
