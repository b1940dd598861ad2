"""Claims of one scope are one transaction, and each of them still wins or loses by itself."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.query import BatchStatement

from backends.cassandra import Keyspace
from eventhub_checkpoints.conformance.clients import Client

MANY = [str(number) for number in range(64)]
Make = Callable[..., Client]


@pytest.fixture
def trips(client: Make, keyspace: Keyspace) -> tuple[Client, list[Any]]:
    """A client that is connected and prepared, and what it asks from now on."""
    made = client(keyspace)
    made.take("probe", "a")
    made.take("probe", "a", made.row("probe")["etag"])
    requests = made.store._requests
    asked: list[Any] = []
    send = requests._session.execute_async

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(session, name)

        def execute_async(self, statement: Any, **kwargs: Any) -> Any:
            asked.append(statement)
            return send(statement, **kwargs)

    session, requests._session = requests._session, Counting()
    return made, asked


def proposals(client: Client, names: list[str], owner: str, etags: dict[str, str]) -> list[Any]:
    return [client.proposal(name, owner, etags.get(name)) for name in names]


def test_first_claims_and_renewals_of_64_partitions_are_one_trip_each(trips) -> None:
    client, asked = trips
    first = client.claim_ownership(proposals(client, MANY, "a", {}))
    assert [row["partition_id"] for row in first] == MANY
    assert len(asked) == 1
    etags = {row["partition_id"]: row["etag"] for row in first}
    again = client.claim_ownership(proposals(client, MANY, "a", etags))
    assert [row["partition_id"] for row in again] == MANY
    assert len(asked) == 2
    assert {row["etag"] for row in again}.isdisjoint(etags.values())


def test_a_batch_is_not_idempotent_and_is_not_sent_twice(trips) -> None:
    client, asked = trips
    client.claim_ownership(proposals(client, MANY[:2], "a", {}))
    client.list_ownership()
    batch, read = asked
    assert isinstance(batch, BatchStatement)
    assert (batch.is_idempotent, read.is_idempotent) == (False, True)
    for statement in asked:
        assert type(statement.retry_policy).__name__ == "FallthroughRetryPolicy"


def test_losers_in_the_middle_keep_nobody_from_winning(trips, client, keyspace) -> None:
    first, asked = trips
    other = client(keyspace)
    for name in ("20", "40"):
        other.take(name, "b")
    won = first.claim_ownership(proposals(first, MANY, "a", {}))
    assert [row["partition_id"] for row in won] == [n for n in MANY if n not in ("20", "40")]
    assert len(asked) == 2, "the losers are told by the answer, and cost one more trip"
    assert other.owner("20") == other.owner("40") == "b"


def test_first_claims_renewals_and_vanished_rows_share_a_batch(trips, keyspace, scope) -> None:
    client, asked = trips
    held = {name: client.take(name, "a")["etag"] for name in ("0", "1", "2")}
    keyspace.put_raw("ownership", scope, "1", None)
    keyspace.put_raw("ownership", scope, "2", {"ownerid": "b"})
    asked.clear()
    won = client.claim_ownership(proposals(client, ["0", "1", "2", "3"], "a", held))
    assert [row["partition_id"] for row in won] == ["0", "1", "3"]
    assert len(asked) == 2
    assert client.owner("2") == "b"


def test_a_batch_above_the_limit_is_cut(trips) -> None:
    client, asked = trips
    names = [str(number) for number in range(300)]
    assert len(client.claim_ownership(proposals(client, names, "a", {}))) == 300
    assert len(asked) == 3


def test_a_partition_that_is_proposed_twice_is_won_once(trips) -> None:
    client, _ = trips
    won = client.claim_ownership(proposals(client, ["0", "0"], "a", {}))
    assert len(won) == 1
    assert won[0]["etag"] == client.row("0")["etag"]


def test_racing_batches_have_one_winner_for_each_partition(client, keyspace) -> None:
    racers = [client(keyspace) for _ in range(8)]
    for racer in racers:
        racer.list_ownership()
    barrier, won = threading.Barrier(len(racers)), Counter()

    def race(racer: Client, owner: str) -> None:
        # Each begins elsewhere, so that batches overlap without being the same.
        start = 8 * int(owner)
        names = [MANY[(start + step) % len(MANY)] for step in range(48)]
        barrier.wait()
        won.update(
            row["partition_id"] for row in racer.claim_ownership(proposals(racer, names, owner, {}))
        )

    threads = [
        threading.Thread(target=race, args=(racer, str(number)))
        for number, racer in enumerate(racers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == Counter(MANY)
