"""Rules about the requests that a group makes: how long they take, and what they cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.operations.cost import (
    PRICES,
    PRICES_READ,
    SMALLEST_SERVER,
    balancing_requests,
    per_month,
)
from eventhub_checkpoints.operations.doctor.finding import (
    Finding,
    GroupSnapshot,
    Limits,
    Severity,
)

SHARE_OF_ROUND = 0.1
"""Part of a load balancing round that one request may take."""


def latency(snapshot: GroupSnapshot, limits: Limits) -> Iterator[Finding]:
    """Find that a request takes a large part of a load balancing round."""
    interval = limits.balancing_interval
    measured = {"slow_list": snapshot.list_seconds, "slow_claim": snapshot.claim_seconds}
    for code, seconds in measured.items():
        if seconds is None or seconds <= SHARE_OF_ROUND * interval:
            continue
        yield Finding(
            code,
            Severity.ERROR if seconds >= interval else Severity.WARNING,
            f"a {code.removeprefix('slow_')} took {seconds:.2g} s, and consumers balance their "
            f"load every {interval:g} s",
            "use a store in the consumers' region and one container or table prefix a group, or "
            "increase load_balancing_interval",
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the requests that a group makes.

    Attributes:
        dollars: per month.
        requests: per second, by kind.
        price: of 10,000 requests, in dollars.
        source: of the price, and when it was read.
    """

    dollars: float
    requests: Mapping[str, float]
    price: float
    source: str


def cost(snapshot: GroupSnapshot, limits: Limits) -> Cost | None:
    """Return what the requests of the live members cost; None where requests have no price."""
    if snapshot.backend != "blob" or snapshot.group is None:
        return None
    members = snapshot.group.members
    owned = sum(len(member.partition_ids) for member in members)
    requests = balancing_requests(len(members), owned, limits.balancing_interval)
    if snapshot.checkpoint_rate is not None:
        requests["checkpoints"] = snapshot.checkpoint_rate
    listed = PRICES["blob"]
    return Cost(
        per_month("blob", requests, limits.price),
        requests,
        listed.dollars if limits.price is None else limits.price,
        f"{listed.source}, read on {PRICES_READ}" if limits.price is None else "--price",
    )


def too_expensive(snapshot: GroupSnapshot, limits: Limits) -> Iterator[Finding]:
    """Find that the requests cost more than a server would, or than the budget."""
    estimate = cost(snapshot, limits)
    budget = SMALLEST_SERVER if limits.budget is None else limits.budget
    if estimate is None or estimate.dollars <= budget:
        return
    rates = ", ".join(f"{rate:.3g} {kind}" for kind, rate in estimate.requests.items())
    than = "the smallest server" if limits.budget is None else "the budget"
    yield Finding(
        "cost",
        Severity.WARNING,
        f"the group's requests ({rates} a second) cost ${estimate.dollars:,.2f} a month, more "
        f"than {than}, ${budget:,.2f}",
        "store checkpoints less often, such as every(seconds=30); increase "
        "load_balancing_interval; or move to another store: "
        f"{as_typed('migrate --help')}",
    )
