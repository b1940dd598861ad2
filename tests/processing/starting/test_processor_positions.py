"""Positions that the hub does not have, and partitions that are lost and claimed again."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, InvalidCheckpointError, every
from variants import EVERY_CLIENT, ONLY_SIMULATED, ONLY_SYNC, REAL_AIO

BEYOND = 5000, "999999"


@pytest.fixture
def lose(runs: Any, wait: Any) -> Callable[..., None]:
    """Has another owner take the partition, do something, and leave it."""

    def lost(run: Any, store: Any, meanwhile: Callable[[Any], None] = lambda other: None) -> None:
        other = runs.stage.store(store.inner.rows)
        closed = len(run.seen.closed)
        runs.take(other, "another owner")
        wait(lambda: len(run.seen.closed) > closed)
        meanwhile(other)
        runs.take(other, "")

    return lost


@pytest.fixture
def reluctant(runs: Any) -> dict[str, Any]:
    """A store and a policy with which nothing is saved before the processor stops."""
    store = runs.stage.store()
    store.inner.forward_only = False
    return {"store": store, "policy": every(seconds=1000)}


@pytest.mark.parametrize("options", [{"from_saved": False}, {"save": False}], ids=str)
def test_a_partition_that_is_claimed_again_goes_on_where_it_was(
    runs: Any, wait: Any, lose: Any, reluctant: dict[str, Any], options: dict[str, Any]
) -> None:
    runs.publish(5)
    run = runs.start(**reluctant, **options)
    wait(lambda: run.seen.has(4))
    lose(run, run.store)
    runs.publish(2)
    wait(lambda: run.seen.has(6))
    run.stop()
    assert run.seen.events["0"] == [0, 1, 2, 3, 4, 5, 6]
    assert run.seen.opened == run.seen.closed == ["0", "0"]
    assert runs.saved(run.store) == ({"0": 6} if options.get("save", True) else {})


def test_what_was_hidden_at_first_is_not_gone_back_to(
    runs: Any, wait: Any, lose: Any, reluctant: dict[str, Any]
) -> None:
    store = reluctant["store"]
    offset = runs.publish(3)
    runs.save(store, 2, offset)
    runs.publish(2)
    run = runs.start(**reluctant, from_saved=False)
    wait(lambda: run.seen.has(4))
    lose(run, store)
    assert runs.saved(store) == {"0": 2}
    runs.publish(1)
    wait(lambda: run.seen.has(5))
    run.stop()
    assert run.seen.events["0"] == [0, 1, 2, 3, 4, 5]
    assert runs.saved(store) == {"0": 5}


def test_what_another_owner_has_processed_meanwhile_is_not_processed_again(
    runs: Any, wait: Any, lose: Any
) -> None:
    store = runs.stage.store()
    runs.save(store, 0, runs.publish(1))
    runs.publish(2)
    run = runs.start(store, from_saved=False)
    wait(lambda: run.seen.has(2))
    offset = runs.publish(4)
    lose(run, store, lambda other: runs.save(other, 6, offset))
    runs.publish(1)
    wait(lambda: run.seen.has(7))
    run.stop()
    assert (run.seen.events["0"][0], run.seen.events["0"][-1]) == (0, 7)
    assert run.seen.events["0"].count(2) == 1
    assert runs.saved(store) == {"0": 7}


@REAL_AIO
def test_a_position_older_than_what_is_retained_starts_at_the_first_event_there_is(
    runs: Any, wait: Any
) -> None:
    store = runs.stage.store()
    runs.save(store, 2, runs.publish(3))
    runs.publish(5)
    runs.hub.trim("orders", "0", before=6)
    run = runs.start(store)
    wait(lambda: run.seen.has(7))
    assert run.seen.events["0"] == [6, 7]


def test_a_row_without_an_offset_is_gone_on_from_by_its_number(runs: Any, wait: Any) -> None:
    store = runs.stage.foreign_store()
    runs.publish(5)
    runs.save(store, 2, "")
    run = runs.start(store)
    wait(lambda: run.seen.has(4))
    assert run.seen.events["0"] == [3, 4]


@pytest.mark.parametrize("offset", [BEYOND[1], ""], ids=["offset", "number"])
def test_a_position_beyond_the_end_ends_the_run_with_an_error(
    runs: Any, offset: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = runs.stage.store()
    runs.publish(5)
    runs.save(store, BEYOND[0], offset)
    run = runs.make(store)
    with pytest.raises(InvalidCheckpointError) as failure:
        run.run()
    text = str(failure.value)
    assert text.startswith("the hub has no such position in partition '0': sequence number 5000 is")
    assert text.endswith("to begin at the start position, or reset the checkpoint")
    assert "\n" not in text
    assert [record.getMessage() for record in caplog.records if ours(record)] == [text]
    assert run.seen.events == {}
    assert (runs.saved(store), runs.owned(store)) == ({"0": BEYOND[0]}, [])


def ours(record: logging.LogRecord) -> bool:
    """Whether a warning or an error is of this package."""
    return record.name == "eventhub_checkpoints" and record.levelno >= logging.WARNING


def test_who_only_starts_and_stops_is_told_too(runs: Any, wait: Any) -> None:
    store = runs.stage.store()
    runs.save(store, *BEYOND)
    run = runs.start(store)
    wait(lambda: not run.processor.healthy())
    with pytest.raises(InvalidCheckpointError):
        run.stop()
    run.stop()
    run.start()
    assert run.processor.healthy()
    wait(lambda: not run.processor.healthy())
    with pytest.raises(InvalidCheckpointError):
        run.stop()


def test_a_restart_begins_at_the_start_position_and_saves_from_there(
    runs: Any, wait: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = runs.stage.store()
    runs.save(store, *BEYOND)
    runs.publish(5)
    run = runs.start(store, starting_position=1, on_invalid_checkpoint="restart")
    wait(lambda: runs.saved(store) == {"0": 4})
    runs.publish(1)
    wait(lambda: runs.saved(store) == {"0": 5})
    run.stop()
    assert run.seen.events["0"] == [2, 3, 4, 5]
    [told] = [record.getMessage() for record in caplog.records if ours(record)]
    assert told.startswith(
        "the hub lacks the saved position of partition 0, so it is read from its start position: "
        "sequence number 5000 is "
    )
    assert runs.owned(store) == []


@pytest.mark.parametrize("wanted", ["raise", "restart"])
def test_a_start_position_that_the_hub_does_not_have_is_an_error_at_once(
    runs: Any, wanted: str, caplog: pytest.LogCaptureFixture
) -> None:
    runs.publish(5)
    run = runs.make(runs.stage.store(), starting_position=BEYOND[1], on_invalid_checkpoint=wanted)
    with pytest.raises(
        InvalidCheckpointError, match=r"; change starting_position, which names it$"
    ):
        run.run()
    assert run.seen.events == {}
    assert [record.levelname for record in caplog.records if ours(record)] == ["ERROR"]


def test_a_restart_at_a_start_position_that_is_wrong_too_ends_the_run(
    runs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = runs.stage.store()
    runs.save(store, *BEYOND)
    run = runs.make(store, starting_position=BEYOND[0], on_invalid_checkpoint="restart")
    with pytest.raises(
        InvalidCheckpointError, match=r"; change starting_position, which names it$"
    ):
        run.run()
    levels = [record.levelname for record in caplog.records if ours(record)]
    assert levels == ["WARNING", "ERROR"]


def test_a_hub_that_is_created_anew_meanwhile_is_read_from_the_start(runs: Any, wait: Any) -> None:
    store = runs.stage.store()
    runs.publish(50)
    run = runs.start(store, on_invalid_checkpoint="restart")
    for before, last in ((50, 3), (4, 1)):  # and once more, after fewer events
        wait(lambda before=before: len(run.seen.events["0"]) == before)
        run.seen.events.clear()
        runs.hub.recreate("orders")
        runs.publish(last + 1)
        wait(lambda last=last: runs.saved(store) == {"0": last})
        assert run.seen.events["0"] == list(range(last + 1))
    run.stop()
    assert runs.owned(store) == []


def test_a_hub_that_is_created_anew_meanwhile_is_an_error_where_nothing_else_was_asked(
    runs: Any, wait: Any
) -> None:
    store = runs.stage.store()
    runs.publish(50)
    run = runs.start(store)
    wait(lambda: runs.saved(store) == {"0": 49})
    runs.hub.recreate("orders")
    wait(lambda: not run.processor.healthy())
    with pytest.raises(InvalidCheckpointError, match="was the hub deleted and created again"):
        run.stop()


@pytest.mark.parametrize("wanted", ["raise", "restart"])
def test_a_client_that_is_ready_is_looked_after_too(runs: Any, wanted: str) -> None:
    store = runs.stage.store()
    runs.publish(5)
    runs.save(store, *BEYOND)
    if wanted == "restart":
        with pytest.raises(ConfigurationError, match="client is ready"):
            runs.make(store, runs.ready(store), on_invalid_checkpoint=wanted)
        return
    with pytest.raises(InvalidCheckpointError, match="was the hub deleted and created again"):
        runs.make(store, runs.ready(store)).run()


@REAL_AIO
@pytest.mark.parametrize("kind", ["callable", "ready"])
def test_a_partition_whose_events_have_all_expired_is_gone_on_with(
    runs: Any, wait: Any, kind: str
) -> None:
    store = runs.stage.store()
    offset = runs.publish(5)
    # A client that is ready starts at the offset, which this hub would refuse.
    runs.save(store, 4, offset if kind == "callable" else "")
    runs.hub.trim("orders", "0", forget_offset=True)
    run = runs.start(store, runs.ready(store) if kind == "ready" else None)
    wait(lambda: run.seen.opened == ["0"])
    wait(lambda: runs.hub.receivers("orders"))
    runs.publish(1)
    wait(lambda: run.seen.events["0"] == [5])
    assert run.processor.healthy()


def geo_replicate(runs: Any) -> str:
    """Have the hub geo-replicated after three events, and two follow; the offset of the third."""
    offset = str(runs.publish(3))
    runs.hub.replicate("orders")
    runs.publish(2)
    return offset


@REAL_AIO
def test_a_hub_that_became_geo_replicated_is_gone_on_with_by_the_number(
    runs: Any, wait: Any
) -> None:
    store = runs.stage.store()
    runs.save(store, 2, geo_replicate(runs))
    run = runs.start(store)
    wait(lambda: runs.saved(store) == {"0": 4})
    run.stop()
    assert run.seen.events["0"] == [3, 4]
    runs.publish(1)
    run.start()
    wait(lambda: run.seen.events["0"] == [3, 4, 5])
    assert run.processor.healthy()


@REAL_AIO
@pytest.mark.parametrize("wanted", ["raise", "restart"])
def test_an_offset_without_a_number_is_invalid_on_a_hub_that_became_geo_replicated(
    runs: Any, wait: Any, wanted: str
) -> None:
    store = runs.stage.foreign_store()
    runs.save(store, None, geo_replicate(runs))
    run = runs.make(store, on_invalid_checkpoint=wanted)
    if wanted == "restart":
        run.start()
        wait(lambda: run.seen.events["0"] == [0, 1, 2, 3, 4])
        return
    with pytest.raises(InvalidCheckpointError, match="it is geo-replicated now"):
        run.run()


@REAL_AIO
def test_a_client_that_is_ready_cannot_go_on_by_the_number_and_that_is_an_error(runs: Any) -> None:
    store = runs.stage.store()
    runs.save(store, 2, geo_replicate(runs))
    with pytest.raises(InvalidCheckpointError, match="it is geo-replicated now") as failure:
        runs.make(store, runs.ready(store)).run()
    assert str(failure.value).endswith(
        "; pass a callable that makes the client, so that the partition continues by its "
        "sequence number"
    )


@REAL_AIO
def test_a_start_at_an_offset_is_wrong_on_a_hub_that_became_geo_replicated(runs: Any) -> None:
    run = runs.make(runs.stage.store(), starting_position=geo_replicate(runs))
    with pytest.raises(
        InvalidCheckpointError, match=r"; change starting_position, which names it$"
    ):
        run.run()


REFUSED = "1:AAAAAAAAAHA=:7", "corrupt!", "$latest"


@EVERY_CLIENT
@pytest.mark.parametrize("offset", REFUSED)
@pytest.mark.parametrize("wanted", ["raise", "restart"])
def test_an_offset_without_a_number_that_the_hub_refuses_is_invalid(
    runs: Any, wait: Any, wanted: str, offset: str
) -> None:
    store = runs.stage.foreign_store()
    runs.publish(3)
    runs.save(store, None, offset)
    run = runs.make(store, on_invalid_checkpoint=wanted)
    if wanted == "restart":
        run.start()
        wait(lambda: run.seen.events["0"] == [0, 1, 2])
        assert run.processor.healthy()
        return
    with pytest.raises(InvalidCheckpointError, match="no such position in partition '0'"):
        run.run()
    assert run.seen.events == {}


@EVERY_CLIENT
@pytest.mark.parametrize("offset", REFUSED)
def test_a_start_at_an_offset_that_the_hub_refuses_is_an_error(runs: Any, offset: str) -> None:
    runs.publish(3)
    store = runs.stage.foreign_store()
    if offset == "$latest":
        with pytest.raises(ConfigurationError, match=r"^starting_position"):
            runs.make(store, starting_position=offset)
        return
    with pytest.raises(
        InvalidCheckpointError, match=r"; change starting_position, which names it$"
    ):
        runs.make(store, starting_position=offset).run()


@EVERY_CLIENT
def test_a_client_that_is_ready_goes_by_the_offset_so_that_one_is_looked_at(runs: Any) -> None:
    runs.publish(3)
    store = runs.stage.store()
    runs.save(store, 1, "corrupt!")
    with pytest.raises(InvalidCheckpointError, match="'corrupt!' is invalid") as failure:
        runs.make(store, runs.ready(store)).run()
    assert str(failure.value).endswith("so that the partition continues by its sequence number")


@EVERY_CLIENT
def test_an_offset_beside_a_number_does_not_matter_to_a_client_of_the_processor(
    runs: Any, wait: Any
) -> None:
    runs.publish(3)
    store = runs.stage.store()
    runs.save(store, 1, "corrupt!")
    run = runs.start(store)
    wait(lambda: run.seen.events["0"] == [2])


@REAL_AIO
def test_an_opaque_offset_of_the_hub_is_gone_on_from(runs: Any, wait: Any) -> None:
    runs.hub.replicate("orders")
    runs.publish(3)
    offset = str(runs.hub.partition_properties("orders", "0").last_offset)
    runs.publish(2)
    store = runs.stage.foreign_store()
    runs.save(store, None, offset)
    run = runs.start(store)
    wait(lambda: run.seen.events["0"] == [3, 4])
    assert run.processor.healthy()


@ONLY_SIMULATED
def test_a_hub_that_could_not_say_anything_of_an_offset_is_asked_again(
    runs: Any, wait: Any
) -> None:
    runs.publish(3)
    store = runs.stage.foreign_store()
    runs.save(store, None, "corrupt!")
    runs.hub.is_away = True

    class Reached(runs.client_kind):  # type: ignore[misc,name-defined]
        async def get_partition_ids(self) -> list[str]:
            return ["0"]

    run = runs.start(store, runs.maker(kind=Reached))
    wait(lambda: run.seen.opened == ["0"])
    assert run.processor.healthy()
    runs.hub.is_away = False
    wait(lambda: not run.processor.healthy())
    with pytest.raises(InvalidCheckpointError, match="'corrupt!' is invalid"):
        run.stop()


def test_a_hub_that_is_not_asked_about_is_believed(runs: Any, wait: Any) -> None:
    class Silent(runs.client_kind):  # type: ignore[misc,name-defined]
        def get_partition_properties(self, partition_id: str, **kwargs: Any) -> Any:
            raise OSError("no way to ask")

    store = runs.stage.store()
    runs.save(store, 2, runs.publish(3))
    runs.publish(2)
    run = runs.start(store, runs.maker(kind=Silent))
    wait(lambda: run.seen.has(4))
    assert run.seen.events["0"] == [3, 4]


@ONLY_SYNC
@pytest.mark.parametrize("wanted", ["raise", "restart"])
def test_what_a_client_without_retries_is_told_by_the_hub_counts(
    runs: Any, wait: Any, wanted: str
) -> None:
    store = runs.stage.foreign_store()
    runs.publish(5)
    runs.save(store, None, "0:replica:17")
    run = runs.start(store, runs.maker(retry_total=0), on_invalid_checkpoint=wanted)
    if wanted == "restart":
        wait(lambda: runs.saved(store) == {"0": 4})
        assert run.seen.events["0"] == [0, 1, 2, 3, 4]
        return
    wait(lambda: not run.processor.healthy())
    with pytest.raises(InvalidCheckpointError, match="offset '0:replica:17' is invalid"):
        run.stop()
