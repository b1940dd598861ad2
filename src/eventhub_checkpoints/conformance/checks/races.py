"""Checks of concurrent claims and checkpoints, from several store objects and from one."""

from functools import partial

from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import check
from eventhub_checkpoints.conformance.harness import Subject, race

RACERS = 8
ROUNDS = ("0", "1", "2", "3")


def winners(clients: list[Client], partition_id: str, etag: str | None = None) -> list[str]:
    """The owners that a race for one partition was won by, according to the claims' results."""
    claims = [
        partial(client.claim, partition_id, f"owner-{index}", etag)
        for index, client in enumerate(clients)
    ]
    return [row["owner_id"] for row in race(claims) if row is not None]


@check("G1")
def one_of_many_first_claims_wins(s: Subject) -> None:
    """Of many first claims of one partition at the same moment, exactly one wins."""
    racers = s.others(RACERS)
    for partition_id in ROUNDS:
        won = winners(racers, partition_id)
        assert len(won) == 1, f"{len(won)} of {RACERS} racers won one first claim"
        assert s.client.owner(partition_id) == won[0], "the winner is not the one that is listed"


@check("G1")
def one_of_many_claims_with_the_same_etag_wins(s: Subject) -> None:
    """Of many claims with the same stored etag at the same moment, exactly one wins."""
    racers = s.others(RACERS)
    for partition_id in ROUNDS:
        etag = s.client.take(partition_id, "a")["etag"]
        won = winners(racers, partition_id, etag)
        assert len(won) == 1, f"{len(won)} of {RACERS} racers won with the same etag"
        assert s.client.owner(partition_id) == won[0], "the winner is not the one that is listed"


@check("G1", "G11", "P4")
def one_of_many_claims_through_one_store_wins(s: Subject) -> None:
    """Exactly one claim wins also where all of them go through one store object."""
    for partition_id in ROUNDS:
        won = winners([s.client] * RACERS, partition_id)
        assert len(won) == 1, f"{len(won)} of {RACERS} claims through one store won"


@check("G11", "P4")
def one_store_serves_many_callers(s: Subject) -> None:
    """One store object lists, claims and stores checkpoints from several callers at once."""

    def work(partition_id: str) -> list[object]:
        s.client.take(partition_id, "a")
        s.client.list_ownership()
        s.client.save(partition_id, int(partition_id))
        return [s.client.owner(partition_id), s.client.position(partition_id)]

    seen = race([partial(work, str(number)) for number in range(RACERS)])
    assert seen == [["a", number] for number in range(RACERS)], f"callers at once saw {seen}"


@check("G3")
def racing_checkpoints_keep_the_highest(s: Subject) -> None:
    """Of several writers of one checkpoint at the same moment, the highest is what stays."""
    racers = s.others(4)
    for partition_id in ROUNDS:
        race(
            [partial(one.save_or_be_refused, partition_id, 10 + n) for n, one in enumerate(racers)]
        )
        last = s.client.position(partition_id)
        assert last == 13, f"checkpoints 10 to 13 were stored at once, and {last} stayed"


@check("G1", needs=("put_raw",))
def one_of_many_claims_of_a_vanished_row_wins(s: Subject) -> None:
    """Of many claims with the etag of a row that has vanished, exactly one wins."""
    racers = s.others(RACERS)
    for partition_id in ROUNDS:
        etag = s.client.take(partition_id, "a")["etag"]
        s.put_raw("ownership", partition_id, None)
        won = winners(racers, partition_id, etag)
        assert len(won) == 1, f"{len(won)} of {RACERS} racers won a row that had vanished"
