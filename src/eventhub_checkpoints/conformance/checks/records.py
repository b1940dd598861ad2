"""Checks of the dicts of the interface, which the client iterates over and edits."""

import time

from eventhub_checkpoints.conformance.contract import check
from eventhub_checkpoints.conformance.harness import Subject

CLOSE = 5.0
"""Tolerance of a time in seconds: a server's resolution, and a slow call."""


@check("G9", "P3")
def lists_can_be_walked_twice(s: Subject) -> None:
    """Lists and claims give lists, which can be walked more than once."""
    claimed = s.client.claim_ownership([s.client.proposal("0", "a")])
    s.client.save("0", 7)
    for given in (claimed, s.client.list_ownership(), s.client.list_checkpoints()):
        assert isinstance(given, list), f"a {type(given).__name__} was given, not a list"
        assert all(type(row) is dict for row in given), "a row is not a plain dict"


@check("G9", "P3", "P20")
def a_won_claim_has_an_etag_and_a_time(s: Subject) -> None:
    """Every claim that was won carries an etag and a last_modified_time: a release needs both."""
    for row in s.client.claim_ownership([s.client.proposal(one, "a") for one in "012"]):
        assert isinstance(row.get("etag"), str), f"the etag is {row.get('etag')!r}"
        assert row["etag"], "the etag is empty"
        assert "last_modified_time" in row, "there is no last_modified_time"


@check("G9", "P3")
def a_listed_ownership_is_as_it_was_won(s: Subject) -> None:
    """A list gives owner and time as the claim that won gave them."""
    won = s.client.take("0", "a")
    row = s.another().row("0")
    assert row is not None, "the claimed partition is not listed"
    assert row["owner_id"] == won["owner_id"], "the owner is another"
    age = abs(row["last_modified_time"] - won["last_modified_time"])
    assert age < CLOSE, f"the times differ by {age:.1f} s"


@check("G9", "G6", "P12")
def times_are_float_epoch_seconds(s: Subject) -> None:
    """A last_modified_time is float seconds since the epoch, close to the caller's own clock."""
    won = s.client.take("0", "a")
    for row in (won, *s.client.list_ownership()):
        moment = row["last_modified_time"]
        assert type(moment) is float, f"last_modified_time is a {type(moment).__name__}"
        assert abs(time.time() - moment) < CLOSE, f"it is {time.time() - moment:.1f} s old"


@check("G9", "P18", "P20")
def a_listed_ownership_is_a_copy(s: Subject) -> None:
    """Who edits a listed ownership changes neither the store nor another list."""
    s.client.take("0", "a")
    other = s.client.list_ownership()
    s.client.list_ownership()[0].update(owner_id="edited", etag="edited")
    assert s.client.owner("0") == "a", "editing a listed row changed the stored one"
    assert other[0]["owner_id"] == "a", "editing a listed row changed another list"


@check("G9", "P18", "P20")
def a_won_claim_is_a_copy(s: Subject) -> None:
    """Who edits what a claim gave changes nothing in the store."""
    won = s.client.take("0", "a")
    won.update(owner_id="edited", etag="edited")
    assert s.client.owner("0") == "a", "editing the result of a claim changed the stored row"


@check("G9", "P18")
def a_listed_checkpoint_is_a_copy(s: Subject) -> None:
    """Who edits a listed checkpoint changes nothing in the store."""
    s.client.save("0", 7)
    s.client.list_checkpoints()[0]["sequence_number"] = 99
    assert s.client.position("0") == 7, "editing a listed checkpoint changed the stored one"


@check("G9", "P20")
def a_proposal_is_not_edited(s: Subject) -> None:
    """A claim leaves the caller's dicts as they were, whether it wins or loses."""
    for _ in range(2):
        proposal = s.client.proposal("0", "a")
        before = dict(proposal)
        s.client.claim_ownership([proposal])
        assert proposal == before, f"the proposal {before} was made {proposal}"


@check("G9", "P20")
def a_proposal_is_not_kept(s: Subject) -> None:
    """Who edits a dict after claiming with it changes nothing in the store."""
    proposal = s.client.proposal("0", "a")
    s.client.claim_ownership([proposal])
    proposal["owner_id"] = "edited"
    assert s.client.owner("0") == "a", "the store kept the caller's dict"


@check("G9", "P20")
def a_checkpoint_is_neither_edited_nor_kept(s: Subject) -> None:
    """Storing a checkpoint leaves the caller's dict as it was, and keeps no hold of it."""
    row = s.client.checkpoint("0", 7, "4711")
    before = dict(row)
    s.client.update_checkpoint(row)
    assert row == before, f"the checkpoint {before} was made {row}"
    row["sequence_number"] = 99
    assert s.client.position("0") == 7, "the store kept the caller's dict"


@check("G9", "P20")
def results_are_in_the_order_asked(s: Subject) -> None:
    """A claim's results are in the order of the proposals, also for renewals and releases."""
    order = ["3", "10", "1", "2", "0"]
    for owner_id in ("a", "a", ""):
        known = {row["partition_id"]: row["etag"] for row in s.client.list_ownership()}
        batch = [s.client.proposal(one, owner_id, known.get(one)) for one in order]
        won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
        assert won == order, f"asked for {order}, given {won}"


@check("G9")
def an_empty_batch_wins_nothing(s: Subject) -> None:
    """An empty batch of claims gives an empty list."""
    assert s.client.claim_ownership([]) == [], "an empty batch did not give an empty list"


@check("G9", "P20")
def listed_rows_can_be_claimed_as_they_are(s: Subject) -> None:
    """A list's own rows, with another owner written into them, are good proposals."""
    for partition_id in "01":
        s.client.take(partition_id, "a")
    other = s.another()
    rows = other.list_ownership()
    for row in rows:
        row["owner_id"] = "b"
    assert len(other.claim_ownership(rows)) == 2, "listed rows were not accepted as proposals"
    assert s.client.owner("0") == "b", "the rows' new owner was not stored"


@check("G9", "P19")
def keyword_arguments_are_accepted(s: Subject) -> None:
    """Every method accepts keyword arguments: the client passes on what its user gives."""
    won = s.client.claim_ownership([s.client.proposal("0", "a")], timeout=10)
    s.client.update_checkpoint(s.client.checkpoint("0", 7, "4711"), timeout=10)
    assert won, "a claim with a keyword argument was left out"
    assert s.client.list_ownership(timeout=10), "nothing was listed"
    assert s.client.list_checkpoints(timeout=10), "no checkpoint was listed"


@check("G9", "P17")
def a_store_is_true(s: Subject) -> None:
    """A store is true, also when it is empty: the client takes a false one for none."""
    kind = type(s.client.store)
    assert bool(s.client.store), "an empty store is false"
    assert not hasattr(kind, "__len__"), "the store has a length, so it may be false"
    assert not hasattr(kind, "__bool__"), "the store decides whether it is true"
