"""What is written on purpose, what is refused, and what fails."""

import pytest

from eventhub_checkpoints import Position, StaleCheckpointError, StoreUnavailableError, every
from waiting import LIMIT


def test_a_rewind_on_purpose_is_written_at_once_and_stays(kept) -> None:
    kept.save("0", 10)
    kept.save("0", 5, force=True)
    assert kept.below.writes == [("write", "0", 5)]
    assert kept.below.given == [{"force": True}]
    assert kept.flush()
    assert kept.below.stored() == 5
    assert kept.stats().position == kept.stats().saved_position == Position(5, "1005")
    kept.save("0", 6)
    assert kept.position("0") == 6


def test_a_write_on_purpose_that_fails_is_raised_and_what_was_kept_stays(kept) -> None:
    kept.save("0", 10)
    kept.below.error = StoreUnavailableError("no answer")
    with pytest.raises(StoreUnavailableError, match="no answer"):
        kept.save("0", 5, force=True)
    kept.below.error = None
    assert kept.flush()
    assert kept.below.writes == [("write", "0", 5), ("write", "0", 10)]
    stats = kept.stats()
    assert (stats.saved, stats.failed, stats.lag_events) == (1, 1, 0)
    assert kept.errors == []


def test_a_write_on_purpose_waits_for_the_one_under_way(make, wait) -> None:
    kept = make(every(events=1))
    kept.below.gate.clear()
    kept.save("0", 10)
    kept.entered()
    later = kept.begin("update_checkpoint", kept.checkpoint("0", 5, "500"), force=True)
    assert kept.below.writes == []
    kept.below.gate.set()
    later.result(LIMIT)
    assert kept.below.writes == [("write", "0", 10), ("write", "0", 5)]
    assert kept.below.stored() == 5


def test_a_write_on_purpose_ends_where_the_one_under_way_does_not(make) -> None:
    kept = make(every(events=1), write_timeout=0.2, forward_only=False)
    kept.below.gate.clear()
    kept.save("0", 10)
    kept.entered()
    if kept.is_aio:  # what hangs is cut off, and the next one hangs as well
        return
    with pytest.raises(StoreUnavailableError, match="still being written"):
        kept.save("0", 5, force=True)


def test_a_stale_checkpoint_is_told_and_counted_and_not_tried_again(kept, wait) -> None:
    kept.save("0", 1)
    kept.flush()
    kept.below.official_write(100)
    kept.save("0", 50)
    assert kept.flush()
    ((partition_id, error),) = wait(lambda: kept.errors)
    assert partition_id == "0"
    assert isinstance(error, StaleCheckpointError)
    assert (error.sequence_number, error.newest) == (50, 100)
    stats = kept.stats()
    assert (stats.saved, stats.refused, stats.failed, stats.lag_events) == (1, 1, 0, 0)
    assert kept.below.stored() == 100


def test_a_stale_checkpoint_with_arguments_is_treated_as_the_store_treats_it(kept) -> None:
    kept.save("0", 1)
    kept.flush()
    kept.below.official_write(100)
    kept.save("0", 50, timeout=5)
    with pytest.raises(StaleCheckpointError):
        kept.save("0", 50, on_stale="raise")
    assert kept.stats().refused == 1
    assert kept.below.stored() == 100


def test_a_write_that_failed_is_told_and_tried_again(make, wait) -> None:
    kept = make(every(events=1))
    kept.below.error = error = StoreUnavailableError("no answer")
    kept.save("0", 7)
    wait(lambda: len(kept.errors) >= 2)
    assert kept.errors[0] == ("0", error)
    assert kept.stats().lag_events == 1
    assert kept.stats().failed >= 2
    kept.below.error = None
    wait(lambda: kept.stats().lag_events == 0)
    assert kept.below.stored() == 7


def test_what_on_error_raises_stops_nothing(make, wait) -> None:
    def on_error(partition_id: str, error: Exception) -> None:
        raise ValueError(partition_id)

    kept = make(every(events=1), on_error=on_error)
    kept.below.error = StoreUnavailableError("no answer")
    kept.save("0", 7)
    wait(lambda: len(kept.below.writes) >= 2)
    kept.below.error = None
    wait(lambda: kept.below.stored() == 7)
