"""What is said to the databases: how often, in which order, and what happens meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

MANY = 64


def many(client: Any, owner_id: str = "a", rows: Any = ()) -> list[dict[str, Any]]:
    """Claims of all partitions; with the etags of rows that were won before."""
    etags = {row["partition_id"]: row["etag"] for row in rows}
    ids = [str(number) for number in range(MANY)]
    return [client.proposal(one, owner_id, etags.get(one)) for one in ids]


@pytest.fixture
def logged(own_server: Any, own: Any) -> Iterator[Any]:
    """Collects what a server was told, from its own log."""
    log = Path(own_server.folder) / "postgres.log"

    @contextmanager
    def collect() -> Iterator[list[str]]:
        texts: list[str] = []
        before = log.stat().st_size
        yield texts
        with log.open("rb") as file:
            file.seek(before)
            lines = file.read().decode().splitlines()
        texts += [line for line in lines if "LOG:  statement" in line or "LOG:  execute" in line]

    own.execute("ALTER ROLE test SET log_statement = 'all'")
    yield collect
    own.execute("ALTER ROLE test RESET log_statement")


def test_a_batch_is_one_round_trip_on_postgres(variant: Any, own: Any, logged: Any) -> None:
    client = variant.open(own)
    client.list_ownership()
    with logged() as first:
        won = client.claim_ownership(many(client))
    with logged() as renewal:
        again = client.claim_ownership(many(client, rows=won))
    assert len(won) == len(again) == MANY
    assert (len(first), len(renewal)) == (1, 1), [*first, *renewal]


def test_everything_else_is_one_round_trip_on_postgres(variant: Any, own: Any, logged: Any) -> None:
    client = variant.open(own)
    client.list_ownership()
    for call in (
        lambda: client.save("0", 1),
        lambda: client.save("0", 2),
        client.list_ownership,
        client.list_checkpoints,
    ):
        with logged() as texts:
            call()
        assert len(texts) == 1, texts
    with logged() as texts:
        client.save("0", 1, force=True)
    assert len(texts) == 2, texts
    assert "_ownership" in texts[1], "a look at the owner"


def test_a_batch_is_one_transaction_on_sqlite(variant: Any, sqlite: Any) -> None:
    engine = variant.engine(sqlite)
    said: list[str] = []

    @event.listens_for(getattr(engine, "sync_engine", engine), "before_cursor_execute")
    def note(_1: Any, _2: Any, statement: str, *_: Any) -> None:
        said.append(statement.split()[0])

    client = variant.open(engine)
    won = client.claim_ownership(many(client))
    assert len(client.claim_ownership(many(client, rows=won))) == MANY
    claims = ["SAVEPOINT", "INSERT", "SELECT", "RELEASE"]
    assert said[-7:] == [*claims, "SAVEPOINT", "UPDATE", "RELEASE"]


def test_a_batch_of_both_kinds_wins_what_it_may(variant: Any, place: Any) -> None:
    client, rival = variant.open(place), variant.open(place)
    mine = client.take("0", "a")
    theirs = rival.take("1", "b")
    gone = client.take("2", "a")
    place.put_raw("ownership", client.scope, "2", None)
    won = client.claim_ownership(
        [
            client.proposal("0", "a", mine["etag"]),  # renewed
            client.proposal("1", "a", "an old etag"),  # lost
            client.proposal("2", "a", gone["etag"]),  # created
            client.proposal("3", "a"),  # created
            client.proposal("1", "a"),  # lost
        ]
    )
    assert [row["partition_id"] for row in won] == ["0", "2", "3"]
    assert client.holder("1") == ("b", theirs["etag"])


def test_batches_in_opposite_orders_do_not_deadlock(variant: Any, own: Any) -> None:
    before = deadlocks(own)
    stores = [variant.open(own) for _ in range(4)]
    first = stores[0].claim_ownership(many(stores[0]))
    etags: dict[str, str] = {row["partition_id"]: row["etag"] for row in first}
    for _ in range(15):
        won: list[list[Any]] = [[] for _ in stores]
        rows = [{"partition_id": key, "etag": etag} for key, etag in etags.items()]

        def claim(number: int, won: Any = won, rows: Any = rows) -> None:
            batch = many(stores[number], f"owner-{number}", rows)
            won[number] = stores[number].claim_ownership(batch[:: 1 if number % 2 else -1])

        threads = [threading.Thread(target=claim, args=(n,)) for n in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        etags = {row["partition_id"]: row["etag"] for rows in won for row in rows}
        assert sum(map(len, won)) == len(etags) == MANY  # one winner each
    assert deadlocks(own) == before


def deadlocks(own: Any) -> int:
    ((found,),) = own.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")
    return int(found)


def test_serialization_failures_are_tried_again(variant: Any, own: Any) -> None:
    own.execute("ALTER ROLE test SET default_transaction_isolation = 'serializable'")
    try:
        stores = [variant.open(own) for _ in range(4)]
        errors: list[BaseException] = []
        assert own.execute("SHOW transaction_isolation") == [("serializable",)]

        def work(number: int) -> None:
            try:
                for count in range(20):
                    stores[number].claim_ownership(many(stores[number], f"owner-{number}")[:8])
                    stores[number].save("0", 100 * count, force=True)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        owners = {row["owner_id"] for row in stores[0].list_ownership()}
        assert len(stores[0].list_ownership()) == 8
        assert owners <= {f"owner-{number}" for number in range(4)}
    finally:
        own.execute("ALTER ROLE test RESET default_transaction_isolation")
