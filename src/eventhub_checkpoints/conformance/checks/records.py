"""Checks of the rows that the interface takes and returns (G9): values, scopes, copies.

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import time

from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import NotShown, check
from eventhub_checkpoints.conformance.harness import Subject
from eventhub_checkpoints.records import Scope

CLOSE = 30.0
"""Tolerance of a time in seconds: a server's resolution, and a slow call on a busy machine."""


@check("G9")
def a_checkpoint_is_listed_as_stored(s: Subject) -> None:
    """A checkpoint is listed unchanged, by the same store object and by others."""
    s.client.update_checkpoint(s.client.checkpoint("0", 7, "4711"))
    for reader in (s.client, s.another()):
        row = reader.checkpoint_of("0")
        assert (row["sequence_number"], row["offset"]) == (7, "4711"), f"it is listed as {row}"


@check("G9", "P23")
def a_partition_that_nobody_claimed_has_a_checkpoint(s: Subject) -> None:
    """A checkpoint can be stored without an ownership, by a client that never claims."""
    s.client.save("0", 7)
    assert s.client.list_ownership() == [], "storing a checkpoint created an ownership"
    assert s.client.position("0") == 7, "a checkpoint without an ownership is not listed"


@check("G9")
def a_later_checkpoint_replaces_an_earlier_one(s: Subject) -> None:
    """A partition has one checkpoint: a later one replaces an earlier one."""
    for number in (7, 8, 20):
        s.client.save("0", number)
    rows = s.client.list_checkpoints()
    assert [row["sequence_number"] for row in rows] == [20], f"after 7, 8 and 20: {rows}"


@check("G9", "P13")
def sequence_number_zero_is_kept(s: Subject) -> None:
    """Sequence number 0 and the offset "0" are stored like other values."""
    s.client.update_checkpoint(s.client.checkpoint("0", 0, "0"))
    row = s.client.checkpoint_of("0")
    assert row["sequence_number"] == 0, f"sequence number 0 is listed as {row['sequence_number']!r}"
    assert row["offset"] == "0", f"offset '0' is listed as {row['offset']!r}"


@check("G9", "P13")
def an_offset_is_opaque_text(s: Subject) -> None:
    """An offset is listed as the same string that was stored, whatever it contains."""
    offsets = {"0": "149:0:1234", "1": "0008", "2": "-1x", "3": "9007199254740993"}
    for partition_id, offset in offsets.items():
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 1, offset))
    seen = {row["partition_id"]: row["offset"] for row in s.client.list_checkpoints()}
    assert seen == offsets, f"stored {offsets}, listed {seen}"


@check("G9")
def a_large_sequence_number_is_exact(s: Subject) -> None:
    """Sequence numbers are exact over the whole range of int64."""
    for partition_id, number in (("0", 2**53 + 1), ("1", 2**63 - 1)):
        s.client.save(partition_id, number)
        seen = s.client.position(partition_id)
        assert seen == number, f"stored {number}, listed {seen}"
        assert isinstance(seen, int), f"the sequence number is a {type(seen).__name__}"


@check("G9", "G7", "P13")
def an_unknown_offset_resumes_by_number(s: Subject) -> None:
    """A missing offset is listed as an int: the sequence number after which to resume."""
    for partition_id, offset in (("0", None), ("1", "")):
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 41, offset))
        row = s.client.saved(partition_id)
        assert row is not None, f"a checkpoint with offset {offset!r} is not listed"
        assert row["offset"] == 41, f"offset {offset!r} of event 41 is listed as {row['offset']!r}"


@check("G9", "P13")
def an_unknown_offset_resumes_after_event_zero(s: Subject) -> None:
    """The int that replaces a missing offset is truthy even for sequence number 0.

    The client treats a falsy offset as missing, and would start at another position.
    """
    s.client.update_checkpoint(s.client.checkpoint("0", 0, None))
    row = s.client.checkpoint_of("0")
    assert row["offset"] == 0, f"the offset is {row['offset']!r}, so event 0 is not resumed from"
    assert bool(row["offset"]), "the offset is falsy, so the client would skip the checkpoint"


@check("G9", "P13")
def a_listed_checkpoint_can_be_stored_again(s: Subject) -> None:
    """A listed checkpoint can be stored again unchanged, and means the same."""
    for partition_id, offset in (("0", "149:0:1234"), ("1", None)):
        s.client.update_checkpoint(s.client.checkpoint(partition_id, 0, offset))
    rows = s.client.list_checkpoints()
    for row in rows:
        s.client.update_checkpoint(row)
    again = s.client.list_checkpoints()
    assert by_partition(again) == by_partition(rows), f"listed {rows}, then stored: {again}"


@check("G7", "G9")
def a_checkpoint_needs_a_sequence_number(s: Subject) -> None:
    """A checkpoint without a sequence number is refused, because others could not read it."""
    row = {**s.client.checkpoint("0", 0, "4711"), "sequence_number": None}
    try:
        s.client.update_checkpoint(row)
    except Exception:
        assert s.client.saved("0") is None, "it was refused, but stored"
    else:
        raise AssertionError("a checkpoint without a sequence number was accepted")


def by_partition(rows: list[dict[str, object]]) -> dict[object, tuple[object, ...]]:
    """Return position and truth of the offset by partition."""
    return {
        row["partition_id"]: (row["sequence_number"], row["offset"], bool(row["offset"]))
        for row in rows
    }


@check("G9", "P3")
def lists_can_be_walked_twice(s: Subject) -> None:
    """The methods return lists of plain dicts, which can be iterated over repeatedly."""
    claimed = s.client.claim_ownership([s.client.proposal("0", "a")])
    s.client.save("0", 7)
    for rows in (claimed, s.client.list_ownership(), s.client.list_checkpoints()):
        assert isinstance(rows, list), f"a {type(rows).__name__} was returned, not a list"
        assert all(type(row) is dict for row in rows), "a row is not a plain dict"


@check("G9", "P3", "P20")
def a_won_claim_has_an_etag_and_a_time(s: Subject) -> None:
    """Every successful claim has an etag and a last_modified_time, which a release needs."""
    for row in s.client.claim_ownership(s.client.proposals("012", "a")):
        assert isinstance(row.get("etag"), str), f"the etag is {row.get('etag')!r}"
        assert row["etag"], "the etag is empty"
        assert "last_modified_time" in row, "there is no last_modified_time"


@check("G9", "P3")
def a_listed_ownership_is_as_it_was_won(s: Subject) -> None:
    """A listed ownership has the owner and the time that the claim returned."""
    won = s.client.take("0", "a")
    row = s.another().ownership_of("0")
    assert row["owner_id"] == won["owner_id"], "the owner differs"
    age = abs(row["last_modified_time"] - won["last_modified_time"])
    assert age < CLOSE, f"the times differ by {age:.1f} s"


@check("G9", "G6", "P12")
def times_are_float_epoch_seconds(s: Subject) -> None:
    """A last_modified_time is a float in seconds since the epoch, on the caller's clock."""
    won = s.client.take("0", "a")
    for row in (won, *s.client.list_ownership()):
        moment = row["last_modified_time"]
        assert type(moment) is float, f"last_modified_time is a {type(moment).__name__}"
        assert abs(time.time() - moment) < CLOSE, f"it is {time.time() - moment:.1f} s old"


@check("G9", "P18", "P20")
def a_listed_ownership_is_a_copy(s: Subject) -> None:
    """Modifying a listed ownership changes neither the store nor another list."""
    s.client.take("0", "a")
    other = s.client.list_ownership()
    s.client.list_ownership()[0].update(owner_id="edited", etag="edited")
    assert s.client.owner("0") == "a", "editing a listed row changed the stored one"
    assert other[0]["owner_id"] == "a", "editing a listed row changed another list"


@check("G9", "P18", "P20")
def a_won_claim_is_a_copy(s: Subject) -> None:
    """Modifying the result of a claim does not change the store."""
    won = s.client.take("0", "a")
    won.update(owner_id="edited", etag="edited")
    assert s.client.owner("0") == "a", "editing the result of a claim changed the stored row"


@check("G9", "P18")
def a_listed_checkpoint_is_a_copy(s: Subject) -> None:
    """Modifying a listed checkpoint does not change the store."""
    s.client.save("0", 7)
    s.client.list_checkpoints()[0]["sequence_number"] = 99
    assert s.client.position("0") == 7, "editing a listed checkpoint changed the stored one"


@check("G9", "P20")
def a_proposal_is_not_edited(s: Subject) -> None:
    """A claim does not modify the caller's dicts, whether it succeeds or not."""
    for _ in range(2):
        proposal = s.client.proposal("0", "a")
        before = dict(proposal)
        s.client.claim_ownership([proposal])
        assert proposal == before, f"the claim {before} was changed to {proposal}"


@check("G9", "P20")
def a_proposal_is_not_kept(s: Subject) -> None:
    """Modifying a dict after claiming with it does not change the store."""
    proposal = s.client.proposal("0", "a")
    s.client.claim_ownership([proposal])
    proposal["owner_id"] = "edited"
    assert s.client.owner("0") == "a", "the store kept the caller's dict"


@check("G9", "P20")
def a_checkpoint_is_neither_edited_nor_kept(s: Subject) -> None:
    """Storing a checkpoint neither modifies nor keeps the caller's dict."""
    row = s.client.checkpoint("0", 7, "4711")
    before = dict(row)
    s.client.update_checkpoint(row)
    assert row == before, f"the checkpoint {before} was changed to {row}"
    row["sequence_number"] = 99
    assert s.client.position("0") == 7, "the store kept the caller's dict"


@check("G9", "P20")
def results_are_in_the_order_asked(s: Subject) -> None:
    """Results are in the order of the claims, also for renewals and releases."""
    order = ["3", "10", "1", "2", "0"]
    for owner_id in ("a", "a", ""):
        known = {row["partition_id"]: row["etag"] for row in s.client.list_ownership()}
        batch = [s.client.proposal(each, owner_id, known.get(each)) for each in order]
        won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
        assert won == order, f"claimed {order}, and {won} was returned"


@check("G9")
def an_empty_batch_wins_nothing(s: Subject) -> None:
    """An empty batch of claims returns an empty list."""
    assert s.client.claim_ownership([]) == [], "an empty batch did not return an empty list"


@check("G9", "P20")
def listed_rows_can_be_claimed_as_they_are(s: Subject) -> None:
    """Listed ownerships with a new owner id are valid claims."""
    for partition_id in "01":
        s.client.take(partition_id, "a")
    other = s.another()
    rows = other.list_ownership()
    for row in rows:
        row["owner_id"] = "b"
    assert len(other.claim_ownership(rows)) == 2, "listed rows were not accepted as claims"
    assert s.client.owner("0") == "b", "the rows' new owner was not stored"


@check("G9", "P19")
def keyword_arguments_are_accepted(s: Subject) -> None:
    """Every method accepts unknown keyword arguments, because the client passes some on."""
    won = s.client.claim_ownership([s.client.proposal("0", "a")], timeout=10)
    s.client.update_checkpoint(s.client.checkpoint("0", 7, "4711"), timeout=10)
    assert won, "a claim with a keyword argument was omitted"
    assert s.client.list_ownership(timeout=10), "nothing was listed"
    assert s.client.list_checkpoints(timeout=10), "no checkpoint was listed"


@check("G9", "P17")
def a_store_is_true(s: Subject) -> None:
    """A store is true even if it is empty: the client treats a false one as missing."""
    kind = type(s.client.store)
    assert bool(s.client.store), "an empty store is falsy"
    assert not hasattr(kind, "__len__"), "the store has a length, so it may be falsy"
    assert not hasattr(kind, "__bool__"), "the store defines __bool__, so it may be falsy"


def neighbours(scope: Scope) -> list[Scope]:
    """Return scopes with similar names, or with the same names if these are joined."""
    namespace, hub, group = scope.as_dict().values()
    return [
        Scope(namespace, hub, group + "2"),
        Scope(namespace, hub, group[:-1]),
        Scope(namespace, hub + "2", group),
        Scope(namespace, hub[:-1], group),
        Scope(namespace + "x", hub, group),
        Scope(namespace, hub + group[0], group[1:]),
    ]


def compares_names_without_case(client: Client) -> None:
    """Skip a check if the store is configured to compare names with regard to case."""
    upper = Scope(*(name.upper() for name in client.scope.as_dict().values()))
    if client.is_on_base and client.store.identity(upper) != client.store.identity(client.scope):
        raise NotShown("the store is configured to compare names with regard to case")


@check("G9", "P18")
def an_unknown_scope_lists_nothing(s: Subject) -> None:
    """A consumer group that was never used lists nothing."""
    s.client.take("0", "a")
    s.client.save("0", 7)
    unknown = s.client.within(s.scope._replace(consumer_group="unheard-of"))
    assert unknown.list_ownership() == [], "ownerships of another group were listed"
    assert unknown.list_checkpoints() == [], "checkpoints of another group were listed"


@check("G9", "P18")
def ownerships_of_neighbours_are_apart(s: Subject) -> None:
    """Scopes with similar names have separate ownerships."""
    s.client.take("0", "a")
    for scope in neighbours(s.scope):
        neighbour = s.client.within(scope)
        assert neighbour.list_ownership() == [], f"{scope} lists the ownership of {s.scope}"
        assert neighbour.claim("0", "b"), f"{scope} is prevented from claiming by {s.scope}"
    rows = [(row["partition_id"], row["owner_id"]) for row in s.client.list_ownership()]
    assert rows == [("0", "a")], f"{s.scope} lists its neighbours: {rows}"


@check("G9", "P18")
def checkpoints_of_neighbours_are_apart(s: Subject) -> None:
    """Scopes with similar names have separate checkpoints."""
    s.client.save("0", 7)
    for number, scope in enumerate(neighbours(s.scope)):
        neighbour = s.client.within(scope)
        assert neighbour.list_checkpoints() == [], f"{scope} lists the checkpoint of {s.scope}"
        neighbour.save("0", number)
    rows = [row["sequence_number"] for row in s.client.list_checkpoints()]
    assert rows == [7], f"{s.scope} lists its neighbours: {rows}"


@check("G3", "P18")
def a_limit_of_one_group_limits_no_other(s: Subject) -> None:
    """What a store has learned of a group's checkpoints does not limit those of another group."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    new = s.another()
    new.take_listed("0", "b")
    new.save("0", 100)
    s.client.save_or_be_refused("0", 50)
    for scope in neighbours(s.scope):
        neighbour = s.client.within(scope)
        neighbour.save_or_be_refused("0", 5)
        assert neighbour.position("0") == 5, f"{scope} is limited by the checkpoint of {s.scope}"


@check("G9")
def partitions_with_similar_ids_are_apart(s: Subject) -> None:
    """The partitions 1, 10, 01 and 11 are different."""
    ids = ["1", "10", "01", "11"]
    for number, partition_id in enumerate(ids):
        assert s.client.claim(partition_id, f"owner-{number}"), (
            f"{partition_id} could not be claimed"
        )
        s.client.save(partition_id, number)
    owners = {row["partition_id"]: row["owner_id"] for row in s.client.list_ownership()}
    saved = {row["partition_id"]: row["sequence_number"] for row in s.client.list_checkpoints()}
    assert owners == {each: f"owner-{n}" for n, each in enumerate(ids)}, f"owners are {owners}"
    assert saved == {each: n for n, each in enumerate(ids)}, f"checkpoints are {saved}"


@check("G9")
def ownerships_and_checkpoints_are_apart(s: Subject) -> None:
    """A claim neither creates nor changes a checkpoint."""
    s.client.take("0", "a")
    assert s.client.list_checkpoints() == [], "a claim created a checkpoint"
    s.client.save("1", 7)
    won = s.client.take("1", "a")
    s.client.release(won)
    assert s.client.position("1") == 7, "a claim or a release changed the checkpoint"


@check("G9", "P21")
def names_are_compared_without_case(s: Subject) -> None:
    """Namespace, hub and group are compared without regard to case, as by Event Hubs."""
    compares_names_without_case(s.client)
    s.client.take("0", "a")
    s.client.save("0", 7)
    s.client.within(neighbours(s.scope)[0]).take("1", "b")
    upper = s.another().within(Scope(*(name.upper() for name in s.scope.as_dict().values())))
    owners = [(row["partition_id"], row["owner_id"]) for row in upper.list_ownership()]
    assert owners == [("0", "a")], f"with names in upper case, the ownerships are {owners}"
    assert upper.position("0") == 7, "with names in upper case, the checkpoint is not listed"


@check("G9", "P21")
def names_come_back_as_the_caller_spelled_them(s: Subject) -> None:
    """Returned rows have the three names as the caller spelled them."""
    compares_names_without_case(s.client)
    s.client.take("0", "a")
    s.client.save("0", 7)
    spelled = Scope(s.scope.fully_qualified_namespace.title(), "ORDERS", "$dEFAULT")
    other = s.another().within(spelled)
    for row in (*other.list_ownership(), *other.list_checkpoints(), other.take("1", "a")):
        names = {name: row[name] for name in spelled.as_dict()}
        assert names == spelled.as_dict(), f"{spelled} is returned as {names}"
