"""Checks of releases on a faulty backend: they raise nothing, and wait for pending writes."""

import time

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import ALWAYS, NOT_READY, REFUSED, UNAVAILABLE, Fault
from eventhub_checkpoints.conformance.harness import Subject, race


@check("G8", "P2", needs=(BASE,))
def a_release_that_fails_is_calm(s: Subject) -> None:
    """A release raises nothing where the backend refuses, is not ready or is away."""
    s.client.set(write_timeout=0.3)
    faults = s.faults()
    for partition_id, fault in (("0", REFUSED), ("1", NOT_READY), ("2", UNAVAILABLE)):
        mine = s.client.take(partition_id, "a")
        faults.plan("try_claim", fault, times=ALWAYS, partition_id=partition_id)
        s.client.release(mine)


@check("G8", "P2", needs=(BASE,))
def an_unusable_release_is_calm(s: Subject) -> None:
    """A release that lacks its partition raises nothing; what else is in the batch is done."""
    broken = s.client.proposal("0", "")
    del broken["partition_id"]
    won = s.client.claim_ownership([broken, s.client.proposal("1", "a")])
    assert [row["partition_id"] for row in won] == ["1"], "the claim beside it was not won"


@check("G8", "P8", needs=(BASE,))
def a_release_waits_for_a_checkpoint_under_way(s: Subject) -> None:
    """A partition is released after its checkpoint that is being written, not before."""
    mine = s.client.take_listed("0", "a")
    order: list[str] = []
    faults = s.faults()
    stored = Fault(seconds=0.3, meanwhile=lambda: order.append("stored"))
    faults.plan("write_checkpoint", stored)
    faults.plan("try_claim", Fault(meanwhile=lambda: order.append("released")))

    def release() -> None:
        time.sleep(0.1)
        s.client.release(mine)

    race([lambda: s.client.save("0", 7), release])
    assert order == ["stored", "released"], f"the order was {order}"


@check("G8", "G2", "P8", needs=(BASE,))
def a_late_release_leaves_the_newer_claim_known(s: Subject) -> None:
    """After a late release of an earlier claim, the newer one is still renewed and kept."""
    first = s.client.take("0", "a")
    second = s.another().take("0", "b", first["etag"])
    s.client.list_ownership()
    third = s.client.take("0", "a", second["etag"])
    s.client.release(first)
    s.client.set(operation_timeout=0.3)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    kept = s.client.claim("0", "a", third["etag"])
    assert kept is not None, "a late release made the store forget its newer claim"
