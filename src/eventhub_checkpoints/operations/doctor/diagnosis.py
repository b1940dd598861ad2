"""Diagnosis of a consumer group: what was read, what is wrong, and what was mended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.program import program
from eventhub_checkpoints.operations.doctor import findings
from eventhub_checkpoints.operations.doctor.examination import examine_group
from eventhub_checkpoints.operations.doctor.finding import TARGET, Finding, GroupSnapshot, Limits
from eventhub_checkpoints.operations.doctor.fixes import Fix, mended, planned
from eventhub_checkpoints.operations.doctor.requests import Cost, cost
from eventhub_checkpoints.operations.recorded_change import Command, Outcome
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of a group, and what was done about it.

    Attributes:
        snapshot: what was read; after the fixes, if they were carried out.
        findings: what is wrong with it, those with the highest severity first.
        commands: of each finding, the command in its remedy; `""` if something else mends it.
        cost: of its requests; None if it is not known.
        fixes: fixes in the order of their execution, each with what was changed, or why nothing
            was; None where they are only planned.
        deleted: what was deleted, for `ehcp undo`; None if nothing was.
    """

    snapshot: GroupSnapshot
    findings: Sequence[Finding]
    cost: Cost | None
    commands: Sequence[str] = ()
    fixes: Sequence[tuple[Fix, str | None]] = ()
    deleted: Outcome | None = None


def diagnose(
    store: CheckpointStore,
    hub: HubAddress,
    limits: Limits | None = None,
    *,
    fixes: bool = False,
    command: Command | None = None,
    writes: bool = True,
    checkpoint_rate: float | None = None,
    measure: float = 0.0,
    timeout: float = OPERATION_TIMEOUT,
    target: str = "",
) -> Diagnosis:
    """Examine a group and judge it; with `fixes` and a command, mend it first.

    Args:
        store: any synchronous checkpoint store.
        hub: the hub; its consumer group is the one to examine.
        limits: settings of the consumers.
        fixes: plan what can be mended without a decision.
        command: with `fixes`, carries that out; the group is examined again then.
        writes: see `examine_group`, as for the others.
        checkpoint_rate: checkpoints per second of the group.
        measure: seconds for which the rate is measured.
        timeout: seconds for each query to the hub.
        target: options that name store, hub and group in the commands of remedies.
    """
    limits = limits or Limits()
    examine = partial(
        examine_group,
        store,
        hub,
        limits,
        writes=writes,
        checkpoint_rate=checkpoint_rate,
        measure=measure,
        timeout=timeout,
    )
    snapshot = examine()
    done: list[tuple[Fix, str | None]] = []
    deleted = None
    if fixes and command is not None:
        carried_out, deleted = mended(command, hub, snapshot, timeout=timeout)
        done += carried_out
        snapshot = examine()
    elif fixes:
        done += [(each, None) for each in planned(snapshot)]
    found = findings(snapshot, limits)
    addressed = [replace(each, remedy=each.remedy.replace(TARGET, target)) for each in found]
    commands = [command_in(each.remedy, target) for each in found]
    return Diagnosis(snapshot, addressed, cost(snapshot, limits), commands, done, deleted)


def command_in(remedy: str, target: str) -> str:
    """Return the command of a remedy whose target is not filled in; `""` if it has none."""
    before, mark, _ = remedy.partition(TARGET)
    begin = before.rfind(f"{program()} ")
    return f"{before[begin:]}{target}" if mark and begin >= 0 else ""
