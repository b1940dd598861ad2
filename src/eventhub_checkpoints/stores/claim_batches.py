"""Claims that a backend sends together: batches of which each is one request or transaction."""

from collections.abc import Callable, Hashable, Iterable

from eventhub_checkpoints.records import Proposal


def in_batches(
    proposals: Iterable[Proposal], limit: int, group_of: Callable[[Proposal], Hashable]
) -> list[list[list[Proposal]]]:
    """Return the batches of each group of proposals; no batch names a partition twice.

    Args:
        proposals: claims, in any order.
        limit: the most claims in a batch.
        group_of: returns what the claims of a batch have in common, such as their scope.
    """
    groups: dict[Hashable, list[list[Proposal]]] = {}
    for proposal in proposals:
        batches = groups.setdefault(group_of(proposal), [])
        for batch in batches:
            if len(batch) < limit and all(proposal.partition_id != o.partition_id for o in batch):
                batch.append(proposal)
                break
        else:
            batches.append([proposal])
    return list(groups.values())
