"""Rule of load balancing: which partitions of a group a member claims in its next round.

The rule is that of azure-eventhub's own load balancer, so that members and official clients share a
group. No I/O, no clock: times are numbers, in seconds since the epoch.

Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `_balance_ownership`.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from eventhub_checkpoints.records import Scope

Strategy = Literal["greedy", "balanced"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Row = dict[str, Any]
"""Ownership as a store lists it."""


def proposals(
    rows: Iterable[Mapping[str, Any]],
    partition_ids: Sequence[str],
    scope: Scope,
    me: str,
    now: float,
    *,
    expires_after: float,
    strategy: Strategy = "greedy",
    chance: random.Random = random.Random(),  # noqa: B008 - one for all calls
) -> list[Row]:
    """Return the claims of a round: a renewal of each partition held, then those to be won.

    Rule 1: a partition is free if it has no owner, or its owner has not renewed it for
    `expires_after`. Rule 2: a member's share is the number of partitions over the number of owners,
    itself included, rounded up. Rule 3: below it, a member claims free partitions: all that it
    lacks, or with `balanced` one. Rule 4: if none is free, and it has fewer than the share rounded
    down, it takes over one partition of an owner that has the most.

    Args:
        rows: the ownerships of the group.
        partition_ids: the partitions of the hub. Ownerships of others are left alone: the official
            client would claim those of a hub that had more partitions before it was re-created.
        scope: the group.
        me: owner id of the member.
        now: time at which `rows` were listed.
        expires_after: seconds until an ownership that is not renewed expires.
        strategy: see rule 3.
        chance: chooses among equals.
    """
    known = dict.fromkeys(partition_ids)
    listed = {row["partition_id"]: dict(row) for row in rows if row["partition_id"] in known}
    held: dict[str, list[str]] = defaultdict(list)
    free = [each for each in known if each not in listed]
    for key, row in listed.items():
        if not row["owner_id"] or row["last_modified_time"] + expires_after < now:
            free.append(key)
        else:
            held[row["owner_id"]].append(key)
    mine = held[me]
    owners = len(held)
    share, least = -(-len(known) // owners), len(known) // owners
    wanted: list[str] = []
    if len(mine) < share and free:
        lacking = share - len(mine) if strategy == "greedy" else 1
        wanted = chance.sample(free, min(lacking, len(free)))
    elif len(mine) < least:
        most = max(map(len, held.values()))
        owner = chance.choice([owner for owner, theirs in held.items() if len(theirs) == most])
        wanted = [chance.choice(held[owner])]
    names = scope.as_dict()
    return [
        listed.get(key, {**names, "partition_id": key}) | {"owner_id": me}
        for key in (*mine, *wanted)
    ]
