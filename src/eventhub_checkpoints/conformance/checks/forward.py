"""Checks of which checkpoint may replace which: progress does not go back by accident."""

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.harness import Subject


@check("G3", "P11", "P24")
def a_zombies_checkpoint_is_refused(s: Subject) -> None:
    """Who was taken over cannot set the checkpoint back behind the new owner's."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    old.save("0", 10)
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "the old owner's checkpoint replaced the new owner's"


@check("G3", "P11")
def a_zombie_of_the_first_checkpoint_is_refused(s: Subject) -> None:
    """The same where the old owner had seen no checkpoint at all."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "a first checkpoint replaced a newer one of another owner"


@check("G3", "P24")
def a_checkpoint_above_a_strangers_is_stored(s: Subject) -> None:
    """A checkpoint above what another writer has stored is stored."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 25)
    assert s.client.position("0") == 25, "a checkpoint above the stored one was not stored"


@check("G3")
def an_equal_checkpoint_is_success(s: Subject) -> None:
    """Storing the stored sequence number again succeeds, also over another writer's row."""
    s.client.save("0", 20)
    s.client.save("0", 20)
    s.another().save("0", 20)
    assert s.client.position("0") == 20, "an equal checkpoint changed the sequence number"


@check("G3")
def what_nobody_else_wrote_may_go_down(s: Subject) -> None:
    """An owner's own checkpoint is no bound: an event hub that was re-created starts at 0."""
    s.client.take_listed("0", "a")
    s.client.save("0", 1000)
    s.client.save("0", 0)
    assert s.client.position("0") == 0, "the owner could not start again at 0"


@check("G3")
def a_new_owner_may_start_again_at_zero(s: Subject) -> None:
    """What was listed after taking a partition is no bound either."""
    s.client.take_listed("0", "a")
    s.client.save("0", 1000)
    new = s.another()
    new.take_listed("0", "b")
    new.save("0", 0)
    assert s.client.position("0") == 0, "the new owner could not start again at 0"


@check("G3", "P23")
def a_reader_by_name_starts_where_its_list_says(s: Subject) -> None:
    """Who never claims may go back behind what its own latest list has shown."""
    s.client.save("0", 10)
    s.another().save("0", 1000)
    s.client.save_or_be_refused("0", 11)
    s.client.list_checkpoints()
    s.client.save("0", 0)
    assert s.another().position("0") == 0, "after a list, a reader by name could not start at 0"


@check("G3", needs=(BASE,))
def force_goes_back(s: Subject) -> None:
    """`force=True` goes back on purpose, whatever is stored and whoever wrote it."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.another().save("0", 20)
    s.client.save("0", 5, force=True)
    assert s.client.position("0") == 5, "force did not go back"


@check("G3", needs=(BASE,))
def force_creates_the_first_checkpoint(s: Subject) -> None:
    """`force=True` also stores where nothing is stored."""
    s.client.save("0", 5, force=True)
    assert s.client.position("0") == 5, "force stored nothing where nothing was stored"


@check("G3", needs=(BASE,))
def force_clears_the_floor(s: Subject) -> None:
    """After going back on purpose, the checkpoints that follow are stored."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.save_or_be_refused("0", 15)
    s.client.save("0", 5, force=True)
    s.client.save("0", 6)
    assert s.client.position("0") == 6, "after force to 5, checkpoint 6 was not stored"


@check("G3")
def the_list_after_a_claim_clears_the_floor(s: Subject) -> None:
    """Who takes a partition again, and lists, may go back behind what it met before."""
    other = s.another()
    s.client.take_listed("0", "a")
    other.take_listed("0", "b")
    other.save("0", 20)
    s.client.save_or_be_refused("0", 15)
    s.client.take_listed("0", "a")
    s.client.save("0", 3)
    assert s.client.position("0") == 3, "the new claim could not start again below 20"


@check("G3")
def an_owners_later_list_forgives_nothing(s: Subject) -> None:
    """An owner's later lists and renewals do not allow it to go behind another's checkpoint."""
    mine = s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.another().save("0", 20)
    s.client.list_checkpoints()
    s.client.take("0", "a", mine["etag"])
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "a list of the owner's let it go back behind a stranger"


@check("G3")
def a_claim_that_was_lost_forgives_nothing(s: Subject) -> None:
    """Who learns from a list of ownerships that it lost a partition gets no new start."""
    s.client.list_checkpoints()
    mine = s.client.take("0", "a")
    other = s.another()
    other.take("0", "b", mine["etag"])
    other.save("0", 20)
    s.client.list_ownership()
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "the list after a lost claim let a zombie go back"


@check("G3")
def a_claim_no_longer_proposed_forgives_nothing(s: Subject) -> None:
    """Who no longer proposes a partition has given it up, and gets no new start."""
    s.client.list_checkpoints()
    kept, left = s.client.claim_ownership([s.client.proposal(one, "a") for one in ("0", "1")])
    s.client.take("0", "a", kept["etag"])
    other = s.another()
    other.take("1", "b", left["etag"])
    other.save("1", 20)
    s.client.list_checkpoints()
    s.client.save_or_be_refused("1", 15)
    assert s.client.position("1") == 20, "a partition given up could be set back"


@check("G3", "G8", "P8")
def a_claim_that_was_released_forgives_nothing(s: Subject) -> None:
    """Who has released a partition gets no new start from a list that comes after."""
    s.client.list_checkpoints()
    s.client.release(s.client.take("0", "a"))
    other = s.another()
    other.take_listed("0", "b")
    other.save("0", 20)
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "the list after a release let a zombie go back"
