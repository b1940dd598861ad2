"""Rules about ownerships: partitions without a live owner, with two, or with a late one."""

from collections.abc import Iterator

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import partitions, some
from eventhub_checkpoints.operations.doctor.finding import (
    TARGET,
    Finding,
    GroupSnapshot,
    Limits,
    Severity,
)
from eventhub_checkpoints.operations.groups import GroupState, in_order, is_live
from eventhub_checkpoints.stores.hook_results import ScopeRows

LATE_ROUNDS = 3
"""Rounds after which an ownership that was not renewed is late."""


def two_owners(snapshot: GroupSnapshot, limits: Limits) -> Iterator[Finding]:
    """Find partitions with a live owner under each of two spellings, or of two prefixes."""
    if snapshot.examination is None or snapshot.group is None:
        return
    for spelling in snapshot.examination.spellings:
        others = live_owners(spelling, limits.expires_after)
        own = snapshot.group.live_owners
        both = in_order(id_ for id_ in own.keys() & others if own[id_] != others[id_])
        if both:
            named = some(f"{id_} ({own[id_]} and {others[id_]})" for id_ in both)
            yield Finding(
                "two_owners",
                Severity.ERROR,
                f"{partitions(both)} with two live owners, who disconnect each other: {named}",
                f"stop the consumers that write {spelling}, or those that do not",
                both,
            )


def live_owners(rows: ScopeRows, expires_after: float) -> dict[str, str]:
    """Return the owner of each partition that has a live one, on the store's clock."""
    listing = rows.ownerships
    times = [row.last_modified_time for row in listing.rows]
    now = listing.server_now if listing.server_now is not None else max(times, default=0.0)
    return {
        row.partition_id: row.owner_id
        for row in listing.rows
        if is_live(row.owner_id, now - row.last_modified_time, expires_after)
    }


def owners(snapshot: GroupSnapshot, limits: Limits) -> Iterator[Finding]:
    """Find partitions without a live owner, and owners that are dead or late."""
    group = snapshot.group
    if group is None:
        return
    if not group.partition_ids:
        known = f"; it has rows of {some(map(str, snapshot.other_groups))}"
        yield Finding(
            "no_rows",
            Severity.WARNING,
            f"the store has no rows of {snapshot.scope}" + (known if snapshot.other_groups else ""),
            "start the consumers, or correct --store, --hub and --group",
        )
        return
    if dead := in_order(id_ for id_, row in group.ownerships.items() if row.is_dead):
        named = some(
            f"{id_} ({group.ownerships[id_].owner_id}, {group.ownerships[id_].age:.0f} s)"
            for id_ in dead
        )
        yield Finding(
            "dead_owner",
            Severity.WARNING,
            f"{partitions(dead)} owned by consumers that no longer renew: {named}",
            as_typed(f"delete --owners{TARGET}"),
            dead,
        )
    expected = in_order(snapshot.properties) if snapshot.properties else group.partition_ids
    live = group.live_owners
    if not live and group.state is GroupState.MOVED:
        return  # its consumers are to be at the other store, and not started here
    unowned = [id_ for id_ in expected if id_ not in live]
    if not live:
        yield Finding(
            "group_idle",
            Severity.WARNING,
            f"no consumer of {snapshot.scope} is alive: all ownerships are released, or older than "
            f"{limits.expires_after:g} s",
            "start the consumers",
        )
    elif unowned:
        yield Finding(
            "unowned",
            Severity.WARNING,
            f"{partitions(unowned)} without a live owner: {some(unowned)}",
            "look again after two load balancing intervals; then restart the consumers",
            unowned,
        )
    late = LATE_ROUNDS * limits.balancing_interval
    if overdue := in_order(id_ for id_ in live if group.ownerships[id_].age > late):
        yield Finding(
            "late_renewal",
            Severity.WARNING,
            f"{partitions(overdue)} whose live owner has not renewed for {LATE_ROUNDS} load "
            f"balancing intervals, {late:g} s: {some(overdue)}",
            "look at the consumer's log, or pass its --balancing-interval",
            overdue,
        )


def shares(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find members that own more than one partition above the fair share."""
    members = snapshot.group.members if snapshot.group else []
    if not members:
        return
    fair = sum(len(member.partition_ids) for member in members) / len(members)
    unfair = [member for member in members if len(member.partition_ids) > fair + 1]
    if unfair:
        named = some(f"{member.owner_id} owns {len(member.partition_ids)}" for member in unfair)
        yield Finding(
            "unfair_share",
            Severity.WARNING,
            f"the fair share of {len(members)} members is {fair:.1f} partitions, and {named}",
            "load_balancing_strategy='balanced' in the consumers; or restart the member with most",
        )
