"""What of batches is committed, what a restart goes on with, and which stores are taken."""

import threading

import pyarrow as pa
import pytest

from arrow_rows import last_of, numbers
from eventhub_checkpoints import (
    ConfigurationError,
    DataLossError,
    HubUnavailableError,
    MemoryCheckpointStore,
    StaleCheckpointError,
    StoreNotReadyError,
    aio,
    open_store,
)
from eventhub_checkpoints.arrow import HubAddress, ReadSettings
from waiting import LIMIT

TENS = ReadSettings(rows_per_batch=10)
GO_ON = ReadSettings(fail_on_data_loss=False)
ALL = {"0": [*range(100)], "1": [*range(100)], "2": [*range(10)]}


# What a commit covers


def test_a_commit_covers_what_was_handed_out_and_a_restart_goes_on_behind(variant, address, kept):
    settings = {"store": kept.url, "settings": ReadSettings(rows_per_batch=30)}
    with variant.read_batches(address, **settings) as batches:
        first = [next(batches) for _ in range(4)]
        saved = batches.commit()
    seen = numbers(first)
    assert saved == {partition: rows[-1] for partition, rows in seen.items()}
    lasts = {row["partition"]: row for row in map(last_of, first)}
    expected = {one: (row["sequenceNumber"], row["offset"]) for one, row in lasts.items()}
    assert kept.rows() == expected
    with variant.read_batches(address, **settings) as batches:
        rest = numbers(batches)
        batches.commit()
    assert {one: seen.get(one, []) + rest.get(one, []) for one in ALL} == ALL
    assert kept.numbers() == {one: rows[-1] for one, rows in ALL.items()}
    with variant.read_batches(address, **settings) as batches:
        assert numbers(batches) == {}


def test_what_was_not_committed_is_read_again(variant, address, kept):
    settings = {"store": kept.url, "settings": TENS, "partition_ids": ["0"]}
    with variant.read_batches(address, **settings) as batches:
        next(batches)
        batches.commit()
        next(batches)
    assert kept.numbers() == {"0": 9}
    with variant.read_batches(address, **settings) as batches:
        assert last_of(next(batches))["sequenceNumber"] == 19


def test_a_commit_writes_only_positions_that_are_not_stored(variant, address, kept):
    with variant.read_batches(address, store=kept.url, partition_ids=["2"]) as batches:
        assert batches.commit() == {}
        next(batches)
        assert batches.commit() == {"2": 9}
        assert batches.commit() == {}
        assert [*batches] == []
        assert batches.commit() == {}


def test_the_offset_is_none_where_there_is_none(variant, hub, address, scope):
    """As over Kafka: the sequence number alone goes on."""
    store = variant.open_store("memory:")
    batches = variant.read_batches(address, scope, store, partition_ids=["2"])
    with batches:
        batch = next(batches)
    inner = variant.inner(batches)
    nothing = pa.nulls(batch.num_rows, pa.string())
    inner._positions.handed_out.clear()
    inner._positions.hand_out(batch.set_column(2, "offset", nothing))
    assert inner._positions.handed_out == {"2": (9, None)}
    batches.commit()
    with variant.read_batches(address, scope, store, partition_ids=["2"]) as again:
        assert numbers(again) == {}


# No checkpoint goes back (G3)


def test_another_consumer_that_is_further_ahead_is_not_put_back(variant, address, kept, caplog):
    settings = {"store": kept.url, "settings": TENS, "partition_ids": ["0", "2"]}
    with variant.read_batches(address, **settings) as batches:
        first = next(batches)
        kept.save("0", 80)
        kept.save("2", 5)
        seen = numbers([first, *batches])
        assert seen == {"0": ALL["0"], "2": ALL["2"]}
        assert batches.commit() == {"0": 99, "2": 9}
    kept.save("0", 19)
    with variant.read_batches(address, **settings) as batches:
        assert numbers([next(batches)]) == {"0": [*range(20, 30)]}
        kept.save("0", 80)
        assert batches.commit() == {}
        assert kept.numbers()["0"] == 80
        assert "80" in caplog.text
        assert batches.commit() == {}
        assert len(numbers(batches)["0"]) == 70
        assert batches.commit() == {"0": 99}


def test_a_store_that_raises_is_heard_after_the_other_partitions_are_saved(variant, address, kept):
    store = variant.open_store(kept.url, on_stale="raise")
    settings = {"partition_ids": ["0", "2"], "until": 10}
    with variant.read_batches(address, store=store, **settings) as batches:
        assert len(numbers(batches)) == 2
        kept.save("0", 80)
        with pytest.raises(StaleCheckpointError, match="80"):
            batches.commit()
        assert batches.commit() == {}
    assert kept.numbers() == {"0": 80, "2": 9}
    variant.close(store)


def test_checkpoints_behind_the_end_leave_nothing_to_read(variant, address, kept):
    kept.save("0", 80)
    with variant.read_batches(address, store=kept.url, partition_ids=["0"], until=50) as batches:
        assert numbers(batches) == {}
        assert batches.commit() == {}
    assert kept.numbers() == {"0": 80}


def test_a_start_at_the_latest_is_kept_by_a_commit(variant, hub, address, kept):
    latest = {"store": kept.url, "start": "latest"}
    with variant.read_batches(address, **latest) as batches:
        assert numbers(batches) == {}
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
    hub.publish("orders", "2", ["later"] * 3)
    with variant.read_batches(address, **latest) as batches:
        assert numbers(batches) == {"2": [10, 11, 12]}


# When events are missing


def test_events_that_expired_before_they_were_read_are_an_error(variant, hub, address, kept):
    kept.save("0", 19)
    hub.trim("orders", "0", before=50)
    settings = {"store": kept.url, "partition_ids": ["0"]}
    with (
        variant.read_batches(address, **settings) as batches,
        pytest.raises(DataLossError, match="fail_on_data_loss=False") as raised,
    ):
        next(batches)
    assert (raised.value.requested, raised.value.first_retained) == (20, 50)
    with variant.read_batches(address, **settings, settings=GO_ON) as batches:
        assert numbers(batches) == {"0": [*range(50, 100)]}


def test_a_partition_that_is_gone_is_an_error(variant, hub, address, kept):
    kept.save("2", 3)
    hub.recreate("orders", 2)
    with (
        variant.read_batches(address, store=kept.url) as batches,
        pytest.raises(DataLossError, match="no partition 2 any more"),
    ):
        next(batches)
    with variant.read_batches(address, store=kept.url, settings=GO_ON) as batches:
        assert numbers(batches) == {}


def test_a_hub_that_was_created_again_is_read_from_its_first_event(variant, hub, address, kept):
    kept.save("0", 99)
    hub.recreate("orders")
    hub.publish("orders", "0", ["new"] * 7)
    settings = {"store": kept.url, "partition_ids": ["0"]}
    with (
        variant.read_batches(address, **settings) as batches,
        pytest.raises(DataLossError, match="created again"),
    ):
        next(batches)
    with variant.read_batches(address, **settings, settings=GO_ON) as batches:
        assert numbers(batches) == {"0": [*range(7)]}
        assert batches.commit() == {"0": 6}
    assert kept.numbers() == {"0": 6}


def test_what_came_before_an_error_is_handed_out_and_can_be_committed(variant, address, kept):
    """An error is of one partition; what the others gave is not lost by it."""
    store = variant.open_store(kept.url)
    failed = threading.Event()

    def open_stream(self, partition_id, *args):
        if partition_id == "1":
            failed.set()
            raise HubUnavailableError("partition 1 is away")
        return HubAddress.open_stream(self, partition_id, *args)

    type(address).open_stream = open_stream
    settings = {"partition_ids": ["0", "1"], "partitions_at_once": 1}
    with variant.read_batches(address, store=store, **settings) as batches:
        assert numbers([next(batches)]) == {"0": ALL["0"]}
        assert failed.wait(LIMIT)
        with pytest.raises(HubUnavailableError, match="partition 1 is away"):
            next(batches)
        assert [*batches] == []
        assert batches.commit() == {"0": 99}
    variant.close(store)


# Which stores are taken


def test_a_store_that_was_given_stays_open(variant, address, scope):
    store = variant.open_store("memory:")
    for expected in ([*range(10)], []):
        with variant.read_batches(address, scope, store, partition_ids=["2"]) as batches:
            assert numbers(batches).get("2", []) == expected
            batches.commit()


def test_a_store_of_the_other_variant_is_refused(variant, address):
    other = MemoryCheckpointStore() if variant.is_async else aio.MemoryCheckpointStore()
    for given in (other, 5, MemoryCheckpointStore):
        with pytest.raises(ConfigurationError, match="expected a store of the"):
            variant.read_batches(address, store=given)


def test_a_commit_without_a_store_is_refused(variant, address):
    with (
        variant.read_batches(address) as batches,
        pytest.raises(ConfigurationError, match="store="),
    ):
        batches.commit()


def test_a_store_whose_tables_are_missing_says_what_creates_them(variant, address, tmp_path):
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    with (
        variant.read_batches(address, store=url) as batches,
        pytest.raises(StoreNotReadyError, match="create"),
    ):
        next(batches)
    with open_store(url) as store:
        store.create()


def test_a_scope_without_checkpoints_is_logged_once_with_those_that_have_some(
    variant, address, kept, scope, caplog
):
    kept.save("0", 9)
    wrong = scope._replace(consumer_group="nope")
    with variant.read_batches(address, wrong, kept.url) as batches:
        assert batches.to_table().num_rows == 210
    [record] = [one for one in caplog.records if "arrow" in one.name]
    assert record.levelname == "WARNING"
    assert f"no checkpoint of '{wrong}'; it holds '{scope}'".lower() in record.getMessage().lower()
    with (
        variant.read_batches(address, wrong, kept.url, missing="error") as batches,
        pytest.raises(ConfigurationError, match=r"no checkpoint of .*; it holds "),
    ):
        next(batches)


def test_missing_error_refuses_partitions_without_a_checkpoint(variant, hub, address, kept):
    kept.save("0", 9)
    with (
        variant.read_batches(address, store=kept.url, missing="error") as batches,
        pytest.raises(
            ConfigurationError, match="for partition 1, 2, which missing='error' requires"
        ),
    ):
        next(batches)
    kept.save("1", 9)
    hub.recreate("orders", 3)
    hub.publish("orders", "0", ["event"] * 20)
    hub.publish("orders", "1", ["event"] * 20)
    with variant.read_batches(address, store=kept.url, missing="error") as batches:
        # Partition 2 has never had an event.
        assert batches.to_table().num_rows == 20


@pytest.mark.parametrize("missing", ["earliest", "raise", None])
def test_missing_is_start_or_error(variant, address, kept, missing):
    with pytest.raises(ConfigurationError, match=r"missing is .*; expected 'start' or 'error'"):
        variant.read_batches(address, store=kept.url, missing=missing)
    with pytest.raises(ConfigurationError, match="pass store= to read_batches"):
        variant.read_batches(address, missing="error")
