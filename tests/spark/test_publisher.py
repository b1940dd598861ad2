"""Queries on a local hub whose progress returns to a store, and real clients behind them."""

import json
import threading
import uuid
from collections import defaultdict

import pyspark
import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints import (
    ConfigurationError,
    MemoryCheckpointStore,
    Scope,
    StoreAccessError,
    StoreUnavailableError,
    open_store,
)
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.spark.publisher import CheckpointPublisher
from eventhub_checkpoints.spark.query_follower import LastEvent
from waiting import LIMIT

WAIT = 2 * LIMIT
"""Seconds after which a query counts as stuck."""


@pytest.fixture
def scope(address):
    return address.scope()


@pytest.fixture
def url():
    """A store in memory that others of this process open by the same URL."""
    return f"memory:{uuid.uuid4().hex}"


@pytest.fixture
def events(spark, hub):
    """The hub as a stream."""
    source = spark.readStream.format("eventhubs")
    return source.option("connectionString", hub.connection_string("Orders")).load()


@pytest.fixture
def start(tmp_path):
    """Start a query; it is stopped after the test."""
    started = []

    def start(frame, sink=None, trigger=None, name=None, checkpoint="query"):
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / checkpoint))
        writer = writer.format("noop") if sink is None else writer.foreachBatch(sink)
        writer = writer.queryName(name) if name else writer
        started.append(writer.trigger(**(trigger or {"availableNow": True})).start())
        return started[-1]

    yield start
    for query in started:
        query.stop()


@pytest.fixture
def run(start):
    """Run a query until it has read what was there."""

    def run(frame, sink=None, **settings):
        assert start(frame, sink, **settings).awaitTermination(WAIT)

    return run


def stored(store, scope):
    """Sequence number and offset text (None where there is none) by partition."""
    return {
        row["partition_id"]: (
            row["sequence_number"],
            row["offset"] if isinstance(row["offset"], str) else None,
        )
        for row in store.list_checkpoints(*scope)
    }


def numbers(store, scope):
    return {partition: number for partition, (number, _) in stored(store, scope).items()}


def consume(address, store, count):
    """What the next so many events of the official client are, with our store."""
    client = EventHubConsumerClient.from_connection_string(
        address.connection_string,
        address.consumer_group,
        checkpoint_store=store,
        load_balancing_interval=0.4,
        socket_timeout=0.02,
    )
    found, enough = defaultdict(list), threading.Event()

    def on_event(context, event):
        found[context.partition_id].append(event.sequence_number)
        if sum(map(len, found.values())) >= count:
            enough.set()

    receiving = threading.Thread(
        target=client.receive, args=(on_event,), kwargs={"starting_position": "-1"}
    )
    receiving.start()
    in_time = enough.wait(LIMIT)
    client.close()
    receiving.join()
    assert in_time, f"of {count} events came {dict(found)}"
    return dict(sorted(found.items()))


def test_a_consumer_goes_on_behind_sparks_last_event(spark, hub, events, run, url, scope, address):
    with CheckpointPublisher(url, scope).attach(spark) as publisher:
        run(publisher.observe(events, partitions=4).where("sequenceNumber = 0"))
    store = open_store(url)
    assert stored(store, scope) == {
        partition: (last, hub.partition_properties("Orders", partition).last_offset)
        for partition, last in {"0": 9, "1": 19, "2": 29}.items()
    }
    assert publisher.stats().published == publisher.stats().with_offset == 3
    for partition in ("0", "2", "3"):
        hub.publish("Orders", partition, ["new"])
    assert consume(address, store, 3) == {"0": [10], "2": [30], "3": [0]}


def test_a_position_without_offset_text_is_gone_on_from_and_its_lag_is_seen(
    spark, hub, events, run, scope, address, blob_container
):
    hub.recreate("Orders")
    hub.publish("Orders", "1", ["only"])
    hub.publish("Orders", "3", ["one", "two"])
    with BlobCheckpointStore.from_connection_string(
        blob_container.connection_string, blob_container.name
    ) as store:
        with CheckpointPublisher(store, scope).attach(spark):
            run(events)
        assert stored(store, scope) == {"1": (0, None), "3": (1, None)}
        for partition in ("0", "1", "3"):
            hub.publish("Orders", partition, ["new"])
        hub.publish("Orders", "3", ["newer"])
        # As KEDA does with checkpointStrategy blobMetadata: it never reads the offset.
        lag = {}
        for partition in ("1", "3"):
            blob = blob_container.client().get_blob_client(f"{scope.folded}/checkpoint/{partition}")
            with blob:
                processed = int(blob.get_blob_properties().metadata["sequencenumber"])
            last = hub.partition_properties("Orders", partition).last_sequence_number
            lag[partition] = last - processed
        assert lag == {"1": 1, "3": 2}
        assert consume(address, store, 4) == {"0": [0], "1": [1], "3": [2, 3]}


def test_what_a_crash_kept_from_the_store_is_caught_up(spark, events, run, scope, tmp_path):
    run(events)
    for session in (None, spark):
        store = MemoryCheckpointStore()
        with CheckpointPublisher(store, scope) as publisher:
            assert publisher.catch_up(tmp_path / "first start", session) == {}
            found = publisher.catch_up(tmp_path / "query", session)
        assert found == numbers(store, scope) == {"0": 9, "1": 19, "2": 29}


def test_a_folder_that_is_no_checkpoint_is_refused(url, scope, tmp_path):
    (tmp_path / "something").write_text("else")
    publisher = CheckpointPublisher(url, scope)
    with pytest.raises(ConfigurationError, match="is not a checkpoint of a streaming query"):
        publisher.catch_up(tmp_path)


@pytest.fixture
def committed(tmp_path):
    """Write a query's checkpoint with one committed batch, whose offset may name a namespace."""

    def write(**metadata):
        end = json.dumps({"0": 7, "_hub": "Orders", **metadata})
        for name, text in (("offsets/0", f"v1\n{{}}\n{end}"), ("commits/0", "v1\n{}")):
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def test_the_progress_of_another_namespace_is_not_caught_up(url, committed):
    publisher = CheckpointPublisher(url, Scope("ns.example.net", "Orders", "$Default"))
    with pytest.raises(ConfigurationError, match=r"in 'test\.example\.net', and the publisher"):
        publisher.catch_up(committed(_namespace="test.example.net"))


@pytest.mark.parametrize("metadata", [{"_namespace": "NS.example.net"}, {}])
def test_the_progress_of_the_same_or_an_unknown_namespace_is_caught_up(url, committed, metadata):
    with CheckpointPublisher(url, Scope("ns.example.net", "Orders", "$Default")) as publisher:
        assert publisher.catch_up(committed(**metadata)) == {"0": 6}


class Outage(MemoryCheckpointStore):
    """A store that is away while a test says so."""

    is_away = False

    def write_checkpoint(self, checkpoint, seen):
        if self.is_away:
            raise StoreUnavailableError("the store is away")
        return super().write_checkpoint(checkpoint, seen)


def test_a_running_query_does_not_feel_an_outage_of_the_store(
    spark, hub, events, start, scope, caplog
):
    store = Outage(write_timeout=0.2)
    with CheckpointPublisher(store, scope).attach(spark) as publisher:
        query = start(events, trigger={"processingTime": "0 seconds"})
        query.processAllAvailable()
        publisher.flush()
        assert numbers(store, scope) == {"0": 9, "1": 19, "2": 29}
        store.is_away = True
        for number in range(2):
            hub.publish("Orders", "3", [f"late {number}"])
            query.processAllAvailable()
        with pytest.raises(StoreUnavailableError, match="partition 3, are not in the store"):
            publisher.flush(timeout=0.1)
        assert query.isActive
        assert publisher.stats().waiting == {"3": 1}
        store.is_away = False
        publisher.flush()
        assert publisher.stats().stored == {"0": 9, "1": 19, "2": 29, "3": 1}
        assert publisher.stats().failures > 0
    hub.publish("Orders", "3", ["after the end"])
    query.processAllAvailable()
    assert numbers(store, scope)["3"] == 1


def test_a_query_that_begins_again_at_the_start_moves_nothing_back(
    spark, hub, events, run, url, scope, caplog
):
    with CheckpointPublisher(url, scope).attach(spark) as publisher:
        run(events)
        publisher.flush()
        hub.recreate("Orders")
        hub.publish("Orders", "0", ["new"] * 5)
        run(events, checkpoint="another")
    assert numbers(open_store(url), scope) == {"0": 9, "1": 19, "2": 29}
    assert publisher.stats().stale == 1
    assert "checkpoint 4 of partition 0" in caplog.text


def test_of_two_queries_on_one_hub_one_is_named(spark, events, start, url, scope):
    idle = {"processingTime": "0 seconds"}
    with CheckpointPublisher(url, scope, query_name="counts").attach(spark) as named:
        unnamed = CheckpointPublisher("memory:", scope).attach(spark)
        for name in ("counts", "archive"):
            start(events, trigger=idle, name=name, checkpoint=name).processAllAvailable()
        with pytest.raises(ConfigurationError, match=r"query_name= \(a name or an id\)"):
            unnamed.close()
        named.flush()
        assert numbers(open_store(url), scope) == {"0": 9, "1": 19, "2": 29}


@pytest.mark.parametrize("wrong", ["eventhub_name", "fully_qualified_namespace"])
def test_a_scope_of_another_hub_than_the_querys_is_refused_by_flush(
    spark, events, run, url, scope, wrong
):
    other = scope._replace(**{wrong: "returns.example.net"})
    publisher = CheckpointPublisher(url, other).attach(spark)
    run(events, name="counts")
    with pytest.raises(
        ConfigurationError, match=r"counts reads hub 'Orders' in '127\.0\.0\.1:\d+'"
    ):
        publisher.flush()
    with pytest.raises(ConfigurationError, match="no query reads"):
        publisher.close()
    assert numbers(open_store(url), other) == {}


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark does not report the end of the hub")
def test_the_lag_behind_the_end_of_the_hub_is_in_the_statistics(spark, hub, run, url, scope):
    source = spark.readStream.format("eventhubs").option("maxEventsPerTrigger", 30)
    limited = source.option("connectionString", hub.connection_string("Orders")).load()
    lags = []

    def sink(batch, batch_id):
        publisher.flush()
        lags.append(publisher.stats().behind_latest)

    with CheckpointPublisher(url, scope).attach(spark) as publisher:
        run(limited, sink)
    assert [lag and sum(lag.by_partition.values()) for lag in lags] == [None, 30]
    assert publisher.stats().behind_latest.by_partition == dict.fromkeys("0123", 0)


def test_rows_without_offset_text_cannot_be_observed(spark, url, scope):
    frame = spark.range(1).selectExpr("id AS offset", "'Orders' AS topic", "1 AS partition")
    publisher = CheckpointPublisher(url, scope)
    with pytest.raises(ConfigurationError, match=r"no column sequenceNumber: .* Kafka"):
        publisher.observe(frame)


@pytest.mark.parametrize("store", [AioMemoryCheckpointStore(), object(), None])
def test_a_store_that_cannot_be_written_from_a_thread_is_refused(store, scope):
    with pytest.raises(ConfigurationError, match=f"{type(store).__name__} cannot be written"):
        CheckpointPublisher(store, scope)


def test_a_connection_string_in_the_place_of_a_scope_is_not_shown(url, address):
    with pytest.raises(ConfigurationError) as told:
        CheckpointPublisher(url, address.connection_string)
    assert "is of type str; expected a Scope" in str(told.value)


def test_what_is_closed_is_closed(spark, url, scope):
    publisher = CheckpointPublisher(url, scope)
    publisher.close()
    publisher.close()
    with pytest.raises(ConfigurationError, match="closed"):
        publisher.attach(spark)


class Closing(MemoryCheckpointStore):
    """A store that notes whether it was closed."""

    is_closed = False

    def close(self):
        self.is_closed = True
        super().close()


def make_closing():
    """A store, by its name."""
    MADE.append(Closing())
    return MADE[-1]


MADE = []


def test_only_a_store_that_was_opened_here_is_closed(scope):
    own = Closing()
    CheckpointPublisher(own, scope).close()
    assert not own.is_closed
    CheckpointPublisher(f"{__name__}:make_closing", scope).close()
    assert MADE[-1].is_closed


def test_what_went_wrong_in_the_block_is_what_is_raised(scope, caplog):
    class Refusing(MemoryCheckpointStore):
        def read_checkpoints(self, scope):
            raise StoreAccessError("no right to read")

    def job():
        with CheckpointPublisher(Refusing(), scope) as publisher:
            publisher._background.put({"0": LastEvent(5)})
            raise KeyError("of the block")

    with pytest.raises(KeyError):
        job()
    assert "no right to read" in caplog.text
