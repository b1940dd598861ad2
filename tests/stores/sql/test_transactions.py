"""Checkpoints inside of a transaction of the caller's own."""

import threading
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

from eventhub_checkpoints import Checkpoint, ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.abilities import WritesInTransaction
from eventhub_checkpoints.aio.abilities import WritesInTransaction as AioWritesInTransaction


class Work:
    """A transaction of the caller's; every step is called from the test's own thread."""

    def __init__(self, variant: Any, client: Any, engine: Any) -> None:
        self.variant, self.client = variant, client
        self.connection = engine.connect()
        if variant.name == "aio":
            self.variant.finished(self.connection.start())

    def write(self, number: int, partition_id: str = "0", **expected: Any) -> None:
        record = Checkpoint(self.client.scope, partition_id, str(number), number)
        self.client.call("write_in", self.connection, record, **expected)

    def read(self, *partition_ids: str) -> dict[str, int]:
        found = self.client.call("read_in", self.connection, self.client.scope, partition_ids)
        return {key: row.sequence_number for key, row in found.items()}

    def end(self, how: str) -> None:
        self.variant.finished(getattr(self.connection, how)())

    def execute(self, statement: str) -> Any:
        return self.variant.finished(self.connection.execute(text(statement)))


@pytest.fixture
def client(variant: Any, place: Any) -> Any:
    return variant.open(place)


@pytest.fixture
def begin(variant: Any, place: Any, client: Any) -> Any:
    engine = variant.engine(place)

    @contextmanager
    def make() -> Any:
        work = Work(variant, client, engine)
        try:
            yield work
        finally:
            work.end("close")

    return make


def test_the_ability_is_declared(client: Any) -> None:
    assert isinstance(client.store, (WritesInTransaction, AioWritesInTransaction))


def test_results_and_position_are_committed_together(client: Any, begin: Any, place: Any) -> None:
    result = place.tables.quoted("result").replace('"', "")
    place.execute(f"CREATE TABLE {result} (total INTEGER)")
    with begin() as work:
        work.write(5)
        work.execute(f"INSERT INTO {result} VALUES (42)")
        work.end("commit")
    assert client.position("0") == 5
    assert place.execute(f"SELECT total FROM {result}") == [(42,)]


def test_what_is_rolled_back_leaves_nothing(client: Any, begin: Any) -> None:
    with begin() as work:
        work.write(5)
        work.end("rollback")
    with begin() as work:
        work.write(6)  # closing without a commit
    assert client.position("0") is None


def test_a_number_that_is_expected_is_compared(client: Any, begin: Any) -> None:
    with begin() as work:
        work.write(5, expected_sequence_number=None)
        work.write(9, expected_sequence_number=5)
        for expected in (5, None, 10):
            with pytest.raises(StaleCheckpointError) as stale:
                work.write(12, expected_sequence_number=expected)
            assert stale.value.newest == 9
        with pytest.raises(StaleCheckpointError) as stale:
            work.write(12, "1", expected_sequence_number=5)
        assert stale.value.newest is None
        assert "nothing is stored; roll the transaction back" in str(stale.value)
        work.write(3, expected_sequence_number=9)  # going back is what was asked for
        work.end("commit")
    assert client.position("0") == 3


def test_by_default_nothing_goes_back(client: Any, begin: Any, place: Any) -> None:
    place.put_raw("checkpoint", client.scope, "1", {"offset": "no number"})
    with begin() as work:
        work.write(5)
        work.write(5)
        work.write(6)
        with pytest.raises(StaleCheckpointError, match="has stored 6"):
            work.write(4)
        work.write(4, "1")
        work.end("commit")
    assert client.position("0") == 6
    assert client.position("1") == 4


@pytest.mark.long  # that it waits shows in time only
def test_a_read_locks_until_the_transaction_ends(begin: Any, client: Any) -> None:
    client.save("0", 5)
    order: list[str] = []
    with begin() as first, begin() as second:
        assert first.read("0", "1") == {"0": 5}

        def compete() -> None:
            assert second.read("0") == {"0": 6}
            order.append("second has read")
            second.end("commit")

        thread = threading.Thread(target=compete)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()  # it waits for the first
        order.append("first commits")
        first.write(6, expected_sequence_number=5)
        first.end("commit")
        thread.join()
    assert order == ["first commits", "second has read"]


@pytest.mark.parametrize("stored", [None, 5])
def test_of_two_that_expect_the_same_one_commits(begin: Any, client: Any, stored: Any) -> None:
    if stored is not None:
        client.save("0", stored)
    outcomes: list[str] = []
    barrier = threading.Barrier(2)

    def compete(number: int) -> None:
        with begin() as work:
            barrier.wait()
            try:
                work.write(number, expected_sequence_number=stored)
                work.end("commit")
                outcomes.append("committed")
            except StaleCheckpointError:
                outcomes.append("stale")

    threads = [threading.Thread(target=compete, args=(n,)) for n in (7, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["committed", "stale"]
    assert client.position("0") in (7, 8)


def test_the_store_and_a_transaction_see_each_others_writes(client: Any, begin: Any) -> None:
    client.take_listed("0", "a")
    client.save("0", 5)
    with begin() as work:
        work.write(6, expected_sequence_number=5)
        work.end("commit")
    client.save("0", 7)  # the row is not the one that the store has seen, and it is not higher
    with begin() as work:
        work.write(8, expected_sequence_number=7)
        work.end("commit")
    client.set(on_stale="raise")
    with pytest.raises(StaleCheckpointError):
        client.save("0", 7)


def test_a_connection_to_something_else_is_refused(client: Any) -> None:
    record = Checkpoint(client.scope, "0", "1", 1)
    with pytest.raises(ConfigurationError, match=r"of SQLAlchemy to (sqlite|postgresql|mysql)"):
        client.call("write_in", object(), record)
