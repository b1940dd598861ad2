"""Checks of scopes: which are separate, and which are the same in another case."""

from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import NotShown, check
from eventhub_checkpoints.conformance.harness import Subject
from eventhub_checkpoints.records import Scope


def neighbours(scope: Scope) -> list[Scope]:
    """Scopes whose names begin alike, or are alike when they are joined."""
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
    """Leave a check where a store on our base says that it compares names as they are typed."""
    upper = Scope(*(name.upper() for name in client.scope.as_dict().values()))
    if client.is_on_base and client.store.identity(upper) != client.store.identity(client.scope):
        raise NotShown("the store was told to compare names as they are typed")


@check("G9", "P18")
def an_unknown_scope_lists_nothing(s: Subject) -> None:
    """A consumer group that nobody has used lists nothing, whatever else is stored."""
    s.client.take("0", "a")
    s.client.save("0", 7)
    unknown = s.client.within(s.scope._replace(consumer_group="unheard-of"))
    assert unknown.list_ownership() == [], "ownerships of another group were listed"
    assert unknown.list_checkpoints() == [], "checkpoints of another group were listed"


@check("G9", "P18")
def ownerships_of_neighbours_are_apart(s: Subject) -> None:
    """Scopes whose names begin alike have ownerships of their own."""
    s.client.take("0", "a")
    for scope in neighbours(s.scope):
        neighbour = s.client.within(scope)
        assert neighbour.list_ownership() == [], f"{scope} lists the ownership of {s.scope}"
        assert neighbour.claim("0", "b"), f"{scope} is kept from claiming by {s.scope}"
    rows = [(row["partition_id"], row["owner_id"]) for row in s.client.list_ownership()]
    assert rows == [("0", "a")], f"{s.scope} lists its neighbours: {rows}"


@check("G9", "P18")
def checkpoints_of_neighbours_are_apart(s: Subject) -> None:
    """Scopes whose names begin alike have checkpoints of their own."""
    s.client.save("0", 7)
    for number, scope in enumerate(neighbours(s.scope)):
        neighbour = s.client.within(scope)
        assert neighbour.list_checkpoints() == [], f"{scope} lists the checkpoint of {s.scope}"
        neighbour.save("0", number)
    rows = [row["sequence_number"] for row in s.client.list_checkpoints()]
    assert rows == [7], f"{s.scope} lists its neighbours: {rows}"


@check("G9")
def partitions_with_similar_ids_are_apart(s: Subject) -> None:
    """Partitions 1, 10, 01 and 11 are four."""
    ids = ["1", "10", "01", "11"]
    for number, partition_id in enumerate(ids):
        assert s.client.claim(partition_id, f"owner-{number}"), (
            f"{partition_id} could not be claimed"
        )
        s.client.save(partition_id, number)
    owners = {row["partition_id"]: row["owner_id"] for row in s.client.list_ownership()}
    saved = {row["partition_id"]: row["sequence_number"] for row in s.client.list_checkpoints()}
    assert owners == {one: f"owner-{n}" for n, one in enumerate(ids)}, f"owners are {owners}"
    assert saved == {one: n for n, one in enumerate(ids)}, f"checkpoints are {saved}"


@check("G9")
def ownerships_and_checkpoints_are_apart(s: Subject) -> None:
    """A claim makes no checkpoint, and leaves the one there is as it is."""
    s.client.take("0", "a")
    assert s.client.list_checkpoints() == [], "a claim made a checkpoint"
    s.client.save("1", 7)
    won = s.client.take("1", "a")
    s.client.release(won)
    assert s.client.position("1") == 7, "a claim or a release changed the checkpoint"


@check("G9", "P21")
def names_are_compared_without_case(s: Subject) -> None:
    """Namespace, hub and group are the same in other letters, as Event Hubs takes them."""
    compares_names_without_case(s.client)
    s.client.take("0", "a")
    s.client.save("0", 7)
    s.client.within(neighbours(s.scope)[0]).take("1", "b")
    upper = s.another().within(Scope(*(name.upper() for name in s.scope.as_dict().values())))
    owners = [(row["partition_id"], row["owner_id"]) for row in upper.list_ownership()]
    assert owners == [("0", "a")], f"in other letters the ownerships are {owners}"
    assert upper.position("0") == 7, "its checkpoint is not listed in other letters"


@check("G9", "P21")
def names_come_back_as_the_caller_spelled_them(s: Subject) -> None:
    """What is listed or won carries the three names in the letters of whoever asked."""
    compares_names_without_case(s.client)
    s.client.take("0", "a")
    s.client.save("0", 7)
    spelled = Scope(s.scope.fully_qualified_namespace.title(), "ORDERS", "$dEFAULT")
    asked = s.another().within(spelled)
    for row in (*asked.list_ownership(), *asked.list_checkpoints(), asked.take("1", "a")):
        given = {name: row[name] for name in spelled.as_dict()}
        assert given == spelled.as_dict(), f"asked for {spelled}, given {given}"
