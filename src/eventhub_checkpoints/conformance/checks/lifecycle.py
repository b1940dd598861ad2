"""Checks of releases (G8), and of the lifecycle of a store object (G11).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import time
from functools import partial
from typing import Any

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import (
    ALWAYS,
    DELAY_LIMIT,
    NOT_READY,
    REFUSED,
    UNAVAILABLE,
    Fault,
)
from eventhub_checkpoints.conformance.harness import Subject, race, raised_by
from eventhub_checkpoints.errors import StoreError


@check("G8", "P2")
def a_release_lets_others_in(s: Subject) -> None:
    """A released partition is listed without an owner, and can be claimed by its listed etag."""
    s.client.release(s.client.take("0", "a"))
    other = s.another()
    row = other.ownership_of("0")
    assert row["owner_id"] == "", f"its owner is {row['owner_id']!r}, not ''"
    assert other.claim("0", "b", row["etag"]), "it could not be claimed by its listed etag"


@check("G8", "P2")
def a_stale_release_is_calm(s: Subject) -> None:
    """A release by a previous owner raises no error and leaves the new owner."""
    mine = s.client.take("0", "a")
    s.another().take("0", "b", mine["etag"])
    s.client.release(mine)
    assert s.client.owner("0") == "b", "a late release removed the new owner"


@check("G8", "P2")
def a_release_without_an_etag_is_calm(s: Subject) -> None:
    """A release without an etag raises no error and changes no owner."""
    s.client.take("0", "a")
    released = {**s.client.proposal("0", "")}
    s.another().claim_ownership([released])
    assert s.client.owner("0") == "a", "a release without an etag removed the owner"


@check("G8", "P2")
def releases_do_not_keep_claims_back(s: Subject) -> None:
    """Failed releases in a batch do not affect its claims."""
    mine = s.client.take("0", "a")
    other = s.another()
    other.take("0", "b", mine["etag"])
    batch = [{**mine, "owner_id": ""}, s.client.proposal("1", "a")]
    won = [row["partition_id"] for row in s.client.claim_ownership(batch) if row["owner_id"]]
    assert won == ["1"], f"of a stale release of 0 and a claim of 1, {won} was won"


@check("G8", "P6")
def a_release_uses_the_newest_own_etag(s: Subject) -> None:
    """A release with the etag before the latest renewal still releases the partition."""
    first = s.client.take("0", "a")
    s.client.take("0", "a", first["etag"])
    s.client.release(first)
    assert not s.client.owner("0"), "a release that a renewal overtook did not release"


@check("G8", "P8")
def a_late_release_spares_a_newer_claim(s: Subject) -> None:
    """A release of an earlier claim does not undo a newer claim of the same owner."""
    first = s.client.take("0", "a")
    other = s.another()
    second = other.take("0", "b", first["etag"])
    s.client.list_ownership()
    s.client.take("0", "a", second["etag"])
    s.client.release(first)
    assert s.client.owner("0") == "a", "a late release undid the newer claim"


@check("G8", "P6")
def a_released_partition_is_not_renewed(s: Subject) -> None:
    """A renewal with the etag from before a release fails."""
    mine = s.client.take("0", "a")
    s.client.release(mine)
    assert s.client.claim("0", "a", mine["etag"]) is None, "a renewal overtook the release"
    assert not s.client.owner("0"), "the released partition has an owner again"


@check("G8", "P22")
def a_checkpoint_survives_the_release(s: Subject) -> None:
    """The next owner reads the checkpoint that was stored before a release."""
    mine = s.client.take_listed("0", "a")
    s.client.save("0", 7)
    s.client.release(mine)
    assert s.another().position("0") == 7, "the checkpoint from before the release is not listed"


@check("G11", "P23")
def what_is_stored_outlives_the_store(s: Subject) -> None:
    """The rows of a store object remain after it was closed."""
    first = s.another()
    first.take("0", "a")
    first.save("0", 7)
    first.close()
    assert s.client.owner("0") == "a", "the ownership was removed when its store was closed"
    assert s.client.position("0") == 7, "the checkpoint was removed when its store was closed"


@check("G11")
def closing_twice_is_harmless(s: Subject) -> None:
    """A store may be closed twice, even if it was never used."""
    used, unused = s.others(2)
    used.list_ownership()
    for client in (used, used, unused, unused):
        client.close()


@check("G11")
def closing_one_store_leaves_the_others(s: Subject) -> None:
    """Closing a store object does not affect others with the same backend."""
    first, second = s.others(2)
    first.list_ownership()
    second.take("0", "a")
    first.close()
    assert second.owner("0") == "a", "a store cannot list after another one was closed"


@check("G11", needs=(BASE,))
def a_closed_store_stays_closed(s: Subject) -> None:
    """Every call on a closed store raises `StoreError`, except a release."""
    client = s.another()
    client.list_ownership()
    client.close()
    calls: dict[str, Any] = {
        "list_ownership": client.list_ownership,
        "list_checkpoints": client.list_checkpoints,
        "claim_ownership": partial(client.claim, "0", "a"),
        "update_checkpoint": partial(client.save, "0", 7),
        "verify": partial(client.call, "verify"),
    }
    for name, call in calls.items():
        assert type(raised_by(call)) is StoreError, (
            f"{name} of a closed store did not raise StoreError"
        )
    assert s.client.list_ownership() == [], "a closed store has claimed a partition"
    assert s.client.list_checkpoints() == [], "a closed store has stored a checkpoint"


@check("G8", "G11", needs=(BASE,))
def a_release_after_closing_is_done(s: Subject) -> None:
    """A release after the store was closed raises no error, and is carried out."""
    clients = s.others(3)
    held = [client.take(str(number), "a") for number, client in enumerate(clients)]
    held.append(clients[0].take("3", "a"))
    for client in clients:
        client.close()
    for client, row in zip([*clients, clients[0]], held, strict=True):
        client.release(row)
    owners = [s.client.owner(row["partition_id"]) for row in held]
    assert not any(owners), f"after their release the owners are {owners}"
    assert type(raised_by(clients[0].list_ownership)) is StoreError, "a release opened the store"


@check("G11", needs=(BASE,))
def verify_finds_nothing_to_say(s: Subject) -> None:
    """`verify` raises no error if the store is readable and writable, also when repeated."""
    s.client.call("verify")
    s.another().call("verify")
    assert s.client.list_ownership() == [], "verify left a row in a consumer group's list"
    assert s.client.list_checkpoints() == [], "verify left a checkpoint in a consumer group's list"


@check("G8", "P2", needs=(BASE,))
def a_release_that_fails_is_calm(s: Subject) -> None:
    """A release raises no error if the backend refuses, is not ready or is unavailable."""
    s.client.set(write_timeout=0.3)
    faults = s.faults()
    for partition_id, fault in (("0", REFUSED), ("1", NOT_READY), ("2", UNAVAILABLE)):
        mine = s.client.take(partition_id, "a")
        faults.plan("try_claim", fault, times=ALWAYS, partition_id=partition_id)
        s.client.release(mine)


@check("G8", "P2", needs=(BASE,))
def an_unusable_release_is_calm(s: Subject) -> None:
    """A release without a partition id raises no error and does not affect its batch."""
    broken = s.client.proposal("0", "")
    del broken["partition_id"]
    won = s.client.claim_ownership([broken, s.client.proposal("1", "a")])
    assert [row["partition_id"] for row in won] == ["1"], "the other claim of the batch was not won"


@check("G8", "P8", needs=(BASE,))
def a_release_waits_for_a_checkpoint_under_way(s: Subject) -> None:
    """A release waits until a checkpoint that is being written is stored."""
    mine = s.client.take_listed("0", "a")
    order: list[str] = []
    faults = s.faults()
    stored = Fault(seconds=0.3, meanwhile=lambda: order.append("stored"))
    faults.plan("write_checkpoint", stored)
    faults.plan("try_claim", Fault(meanwhile=lambda: order.append("released")))

    def release() -> None:
        end = time.monotonic() + DELAY_LIMIT
        while not faults.count("write_checkpoint") and time.monotonic() < end:
            time.sleep(0.01)
        s.client.release(mine)

    race([lambda: s.client.save("0", 7), release])
    assert order == ["stored", "released"], f"the order was {order}"


@check("G8", "G2", "P8", needs=(BASE,))
def a_late_release_leaves_the_newer_claim_known(s: Subject) -> None:
    """After a late release of an earlier claim, the newer one is still kept unconfirmed."""
    first = s.client.take("0", "a")
    second = s.another().take("0", "b", first["etag"])
    s.client.list_ownership()
    third = s.client.take("0", "a", second["etag"])
    s.client.release(first)
    s.client.set(operation_timeout=0.3)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    kept = s.client.claim("0", "a", third["etag"])
    assert kept is not None, "a late release made the store forget its newer claim"
