import pytest

from eventhub_checkpoints.spark.kept_connections import MOST_KEPT, KeptConnections


class Connection:
    """What a test lends."""

    def __init__(self, key):
        self.key, self.is_usable, self.is_closed = key, True, False

    def close(self):
        self.is_closed = True


def used(kept, key):
    with kept.lent(key) as connection:
        assert connection.key == key
        assert not connection.is_closed
    return connection


def test_tasks_that_take_turns_share_the_connection_of_their_key():
    kept = KeptConnections(Connection)
    first, second = used(kept, "a"), used(kept, "b")
    assert used(kept, "a") is first
    assert used(kept, "b") is second
    kept.close()
    assert first.is_closed
    assert second.is_closed


def test_two_tasks_at_the_same_time_share_none():
    kept = KeptConnections(Connection)
    with kept.lent("a") as one, kept.lent("a") as other:
        assert one is not other


def test_what_is_unusable_is_closed_by_the_next_task_whatever_its_key():
    kept = KeptConnections(Connection)
    broken = used(kept, "a")
    broken.is_usable = False
    other = used(kept, "b")
    assert broken.is_closed
    assert used(kept, "a") is not broken
    assert not other.is_closed


def test_a_connection_is_replaced_after_a_while():
    kept = KeptConnections(Connection, replaced_after=0.0)
    old = used(kept, "a")
    assert used(kept, "a") is not old
    assert old.is_closed


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_the_connection_of_a_task_that_fails_is_closed(error):
    kept = KeptConnections(Connection)
    with pytest.raises(error), kept.lent("a") as connection:
        raise error
    assert connection.is_closed
    assert used(kept, "a") is not connection


def test_only_a_few_are_kept_the_latest_ones():
    kept = KeptConnections(Connection)
    connections = [used(kept, number) for number in range(MOST_KEPT + 2)]
    assert [each.is_closed for each in connections] == [True] * 2 + [False] * MOST_KEPT
