"""Findings about a consumer group: what is wrong with it, by which evidence, and what mends it.

Every rule is a function from a snapshot of the group to findings.

- `finding`: snapshots, limits, findings and their severity.
- `storage`: rules about store, hub and clocks. `ownerships`: about who owns what. `checkpoints`:
  about stored positions. `requests`: how long requests take, and what they cost.
- `examination` reads the snapshot. `fixes`: what mends a finding without a decision. `diagnosis`
  puts these together: it examines, mends, and judges.
"""

from collections.abc import Sequence

from eventhub_checkpoints.operations.doctor.checkpoints import (
    incomplete_records,
    no_such_partition,
    positions,
)
from eventhub_checkpoints.operations.doctor.finding import (
    Finding,
    GroupSnapshot,
    Limits,
    Rule,
    Severity,
)
from eventhub_checkpoints.operations.doctor.ownerships import owners, shares, two_owners
from eventhub_checkpoints.operations.doctor.requests import latency, too_expensive
from eventhub_checkpoints.operations.doctor.storage import (
    clocks,
    failures,
    official_faults,
    other_prefixes,
    other_spellings,
    settings,
    unreadable_rows,
)

RULES: Sequence[Rule] = (
    failures,
    clocks,
    settings,
    unreadable_rows,
    official_faults,
    other_spellings,
    other_prefixes,
    two_owners,
    owners,
    shares,
    positions,
    no_such_partition,
    incomplete_records,
    latency,
    too_expensive,
)
"""All rules, in the order in which findings of the same severity are shown."""
ORDER = (Severity.ERROR, Severity.UNKNOWN, Severity.WARNING)


def findings(snapshot: GroupSnapshot, limits: Limits | None = None) -> list[Finding]:
    """Return the findings of all rules, those with the highest severity first."""
    limits = limits or Limits()
    unsorted = [finding for rule in RULES for finding in rule(snapshot, limits)]
    return sorted(unsorted, key=lambda finding: ORDER.index(finding.severity))


def status(sorted_findings: Sequence[Finding]) -> int:
    """Return the exit status of sorted findings: that of the first one; 0 if there is none."""
    return sorted_findings[0].severity.status if sorted_findings else 0
