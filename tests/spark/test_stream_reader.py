import json
import pickle
from types import SimpleNamespace

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import DataLossError
from eventhub_checkpoints.receive.address import HubQueries
from eventhub_checkpoints.spark.source import sizes, stream
from eventhub_checkpoints.spark.source.batches import make_tasks, plan_batch, read_task
from eventhub_checkpoints.spark.source.options import SourceOptions
from eventhub_checkpoints.spark.source.stream import (
    EventHubStreamReader,
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from waiting import eventually


@pytest.fixture
def reader(hub, monkeypatch):
    monkeypatch.setattr(stream, "CONFIRM_AFTER", 0.0)
    made = []

    def make(**options):
        string = hub.connection_string("Orders")
        options = {"connectionString": string, "idlePollInterval": "0.001", **options}
        made.append(EventHubStreamReader(SourceOptions.parse(options)))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def ranges(tasks):
    return {
        one.partition_id: (one.from_sequence_number, one.until_sequence_number)
        for task in tasks
        for one in task.ranges
    }


def first_batch(reader, limit=None):
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit or reader.getDefaultReadLimit())
    return start, end


def test_the_first_batch_is_pinned_by_its_end(reader, hub):
    start, end = first_batch(reader(startingPosition="latest"))
    known = {"_hub": "Orders", "_namespace": f"127.0.0.1:{hub.port}"}
    known["_created"] = start["_created"]
    assert start == {"0": 10, "1": 20, "2": 30, "3": 0, **known, "_initial": True}
    assert end == {
        "0": 10,
        "1": 20,
        "2": 30,
        "3": 0,
        "_from": {"0": 10, "1": 20, "2": 30, "3": 0},
        **known,
    }
    # A query that failed comes back, and `latest` has moved on.
    hub.publish("Orders", "0", ["more"] * 5)
    again = reader(startingPosition="latest")
    moved = again.initialOffset()
    assert moved["0"] == 15
    assert again.partitions(moved, end) == []
    following = again.latestOffset(end, ReadAllAvailable())
    assert ranges(again.partitions(end, following)) == {"0": (10, 15)}


def test_a_batch_that_is_run_again_reads_the_same_events(reader, hub):
    start, end = first_batch(reader(startingPosition="earliest"))
    hub.publish("Orders", "0", ["more"] * 5)
    again = reader(startingPosition="latest")
    planned = again.partitions(again.initialOffset(), end)
    assert ranges(planned) == {"0": (0, 10), "1": (0, 20), "2": (0, 30)}
    assert ranges(reader().partitions(start, end)) == ranges(planned)


def test_an_idle_hub_is_answered_with_the_same_bytes(reader):
    one = reader()
    _, end = first_batch(one)
    text = json.dumps(end)
    assert json.dumps(one.latestOffset(json.loads(text), ReadAllAvailable())) == text


def test_a_stream_keeps_one_connection_until_it_is_stopped(reader, hub, accepted_connections):
    one = reader(startingPosition="earliest")
    start, end = first_batch(one)
    for _ in range(5):
        hub.publish("Orders", "1", ["more"])
        start, end = end, one.latestOffset(end, ReadAllAvailable())
        assert [*ranges(one.partitions(start, end))] == ["1"]
    [connection] = accepted_connections
    assert not connection._wire.is_closing()
    one.stop()
    eventually(connection._wire.is_closing)


class Pauses:
    """The clock of a stream and the event that ends its pauses, which take no time here."""

    def __init__(self):
        self.now = 0.0
        self.taken = []

    def monotonic(self):
        return self.now

    def wait(self, seconds):
        self.taken.append(seconds)
        self.now += max(0.0, seconds)

    def set(self):
        pass


def test_an_idle_hub_is_left_in_peace_for_a_while(reader, monkeypatch):
    pauses = Pauses()
    monkeypatch.setattr(stream, "time", SimpleNamespace(monotonic=pauses.monotonic))
    one = reader(idlePollInterval="0.75")
    one._stopped = pauses
    _, end = first_batch(one)
    assert one.latestOffset(end, ReadAllAvailable()) == end
    assert pauses.taken == []
    pauses.now = 0.5  # is how long the query needed for an empty batch
    one.latestOffset(end, ReadAllAvailable())
    one.latestOffset(end, ReadAllAvailable())
    assert pauses.taken == [0.25, 0.75]


def test_stopping_ends_the_pause_of_an_idle_hub(reader):
    # The pause would be longer than a test may take.
    one = reader(idlePollInterval="PT10H")
    _, end = first_batch(one)
    one.latestOffset(end, ReadAllAvailable())
    one._stopped.set()
    assert one.latestOffset(end, ReadAllAvailable()) == end


def test_an_idle_hub_is_queried_once_a_second_by_default(reader):
    string = reader()._options.address.connection_string
    assert SourceOptions.parse({"connectionString": string}).idle_poll_interval == 1


def test_limits_are_told_to_spark_and_kept(reader):
    one = reader(maxEventsPerTrigger="9")
    assert one.getDefaultReadLimit() == ReadMaxRows(9)
    _, end = first_batch(one)
    assert sum(end[partition] for partition in "0123") == 9
    _, everything = first_batch(one, ReadAllAvailable())
    assert [everything[partition] for partition in "0123"] == [10, 20, 30, 0]
    assert isinstance(reader().getDefaultReadLimit(), ReadAllAvailable)


def test_few_events_wait_for_more_or_for_the_delay(reader, hub, monkeypatch):
    one = reader(minEventsPerTrigger="5", maxTriggerDelay="1h")
    limit = one.getDefaultReadLimit()
    assert limit == ReadMaxRows(stream.NO_TOTAL)
    _, end = first_batch(one)
    hub.publish("Orders", "0", ["more"] * 3)
    assert one.latestOffset(end, limit) == end
    hub.publish("Orders", "3", ["more"] * 2)
    following = one.latestOffset(end, limit)
    assert [following[partition] for partition in "0123"] == [13, 20, 30, 2]
    hub.publish("Orders", "0", ["more"])
    assert one.latestOffset(following, limit) == following
    # A trigger that demands everything, and the end of a query, wait for nothing.
    assert one.latestOffset(following, ReadAllAvailable())["0"] == 14
    again = reader(minEventsPerTrigger="5")
    again.prepareForTriggerAvailableNow()
    assert again.latestOffset(following, limit)["0"] == 14
    began = stream.time.monotonic()
    monkeypatch.setattr(stream, "time", SimpleNamespace(monotonic=lambda: began + 3601))
    assert one.latestOffset(following, limit)["0"] == 14


@pytest.mark.parametrize("path", ["fast", "public"])
def test_bytes_are_limited_by_the_sizes_of_the_next_events(reader, hub, monkeypatch, path):
    monkeypatch.setattr(sizes, "SAMPLE_EVERY", 0.0)
    hub.recreate("Orders", 2)
    hub.publish("Orders", "0", [b"x" * 100] * 100 + [b"x" * 1000] * 100)
    one = reader(maxBytesPerTrigger="5k", receivePath=path)
    assert one.getDefaultReadLimit() == ReadMaxRows(stream.NO_TOTAL)
    _, end = first_batch(one)
    assert (end["0"], end["1"]) == (51, 0)
    hub.publish("Orders", "1", [b""] * 51)
    following = one.latestOffset(end, ReadMaxRows(stream.NO_TOTAL))
    assert 4800 < 100 * (following["0"] - 51) + following["1"] <= 5120
    # An end beyond the small events: the next batch has fewer.
    last = one.latestOffset({**following, "0": 100, "1": 51}, ReadMaxRows(stream.NO_TOTAL))
    assert last["0"] == 105
    _, all_ = first_batch(one, ReadAllAvailable())
    assert (all_["0"], all_["1"]) == (200, 51)
    assert reader(maxBytesPerTrigger="1g").latestOffset(last, None)["0"] == 200


def test_the_smaller_of_two_limits_counts(reader):
    both = reader(maxBytesPerTrigger="30", maxEventsPerTrigger="5")
    _, end = first_batch(both)
    assert sum(end[partition] for partition in "0123") == 5
    _, end = first_batch(both, ReadMaxRows(50))
    assert sum(end[partition] for partition in "0123") == 10


def test_rates_of_partitions_are_kept(reader):
    rates = json.dumps({json.dumps({"ehName": "Orders", "partitionId": 2}): 7})
    _, end = first_batch(reader(maxRatePerPartition="4", maxRatesPerPartition=rates))
    assert [end[partition] for partition in "0123"] == [4, 4, 7, 0]


def test_available_now_ends_where_the_hub_ended(reader, hub):
    one = reader(maxEventsPerTrigger="40")
    assert isinstance(one, SupportsTriggerAvailableNow)
    one.prepareForTriggerAvailableNow()
    hub.publish("Orders", "0", ["late"] * 5)
    hub.add_partitions("Orders", 1)
    hub.publish("Orders", "4", ["new"])
    offset = one.initialOffset()
    for _ in range(3):
        offset = one.latestOffset(offset, one.getDefaultReadLimit())
    assert [offset[partition] for partition in "01234"] == [10, 20, 30, 0, 0]
    assert one.latestOffset(offset, one.getDefaultReadLimit()) == offset


def test_a_new_partition_begins_at_its_first_event(reader, hub):
    one = reader(startingPosition="latest")
    _, end = first_batch(one)
    hub.add_partitions("Orders", 1)
    hub.publish("Orders", "4", ["new"] * 3)
    following = one.latestOffset(end, ReadAllAvailable())
    assert ranges(one.partitions(end, following)) == {"4": (0, 3)}


def test_the_newest_numbers_are_reported_for_the_lag(reader, hub):
    one = reader(maxEventsPerTrigger="4")
    assert one.reportLatestOffset() is None
    first_batch(one)
    assert one.reportLatestOffset() == {"0": 10, "1": 20, "2": 30, "3": 0, "_hub": "Orders"}


def test_spark_before_4_2_asks_without_a_start_and_before_it_asks_where_to_begin(reader, hub):
    one = reader(maxEventsPerTrigger="30")
    end = one.latestOffset()
    start = one.initialOffset()
    assert sum(until for _, until in ranges(one.partitions(start, end)).values()) == 30
    following = one.latestOffset()
    rest = ranges(one.partitions(end, following))
    assert sum(until - begin for begin, until in rest.values()) == 30
    assert json.dumps(one.latestOffset()) == json.dumps(following)
    # A query that goes on is planned again where it stood.
    again = reader(startingPosition="latest")
    assert again.partitions(following, following) == []
    hub.publish("Orders", "3", ["more"])
    assert ranges(again.partitions(following, again.latestOffset())) == {"3": (0, 1)}


@pytest.mark.parametrize("limited", [True, False])
def test_spark_before_4_2_is_warned_once_of_what_available_now_leaves(reader, caplog, limited):
    one = reader(**({"maxRatePerPartition": "4"} if limited else {}))
    one.latestOffset()
    one.latestOffset()
    first_batch(reader(maxRatePerPartition="4"))  # Spark 4.2 continues by itself
    warned = [each.message for each in caplog.records if "availableNow" in each.message]
    assert len(warned) == limited
    if limited:
        assert "the limits leave 48 events of 127.0.0.1" in warned[0]


def test_expired_events_fail_the_query_or_are_counted(reader, hub, caplog):
    start, end = first_batch(reader(startingPosition="earliest", maxEventsPerTrigger="6"))
    hub.trim("Orders", "2", before=25)
    with pytest.raises(DataLossError, match=r"partition 2 of .*; the first retained is 25, so"):
        reader().latestOffset(end, ReadAllAvailable())
    tolerant = reader(failOnDataLoss="false")
    following = tolerant.latestOffset(end, ReadAllAvailable())
    assert following["_lost"] == {"2": 25 - end["2"]}
    assert following["_from"] == {"2": 25}
    assert ranges(tolerant.partitions(end, following))["2"] == (25, 30)
    assert "events are lost" in caplog.text
    # Lost while it was being read: the batch is planned again.
    with pytest.raises(DataLossError, match="sequence number 0 has expired"):
        reader().partitions(start, end)
    assert "2" not in ranges(reader(failOnDataLoss="false").partitions(start, end))


PATHS = pytest.mark.parametrize("path", ["fast", "public"])
LOST_40 = "sequence number 0 has expired; the first retained is 40, so 40 events are lost"


def sequence_numbers(tasks):
    return [
        number
        for task in tasks
        for batch in read_task(task)
        for number in batch["sequenceNumber"].to_pylist()
    ]


@pytest.fixture
def hundred(hub):
    """A hub with a hundred events in one partition."""
    hub.recreate("Orders", 1)
    hub.publish("Orders", "0", ["event"] * 100)
    return hub


@PATHS
def test_events_that_expire_before_a_batch_is_run_again_are_counted(reader, hundred, caplog, path):
    start, end = first_batch(reader(receivePath=path))
    hundred.trim("Orders", "0", before=40)
    with pytest.raises(DataLossError, match=LOST_40):
        reader(receivePath=path).partitions(start, end)
    for _ in range(2):  # it is counted once, however often the query comes back
        again = reader(failOnDataLoss="false", receivePath=path)
        assert sequence_numbers(again.partitions(start, end)) == [*range(40, 100)]
    assert LOST_40 in caplog.text
    noted = again.latestOffset(end, ReadAllAvailable())
    assert again.latestOffset(end, ReadAllAvailable()) == noted  # asked twice for one batch
    assert noted == {**{key: end[key] for key in end if key != "_from"}, "_lost": {"0": 40}}
    assert again.partitions(end, noted) == []
    assert again.latestOffset(noted, ReadAllAvailable()) == noted
    hundred.publish("Orders", "0", ["more"] * 10)
    hundred.trim("Orders", "0", before=103)
    following = again.latestOffset(noted, ReadAllAvailable())
    assert following["_lost"] == {"0": 43}
    assert sequence_numbers(again.partitions(noted, following)) == [*range(103, 110)]


def test_each_of_two_batches_counts_its_own_expired_events(reader, hundred, caplog):
    start, end = first_batch(reader(maxEventsPerTrigger="10"))
    hundred.trim("Orders", "0", before=40)
    with pytest.raises(DataLossError, match="the first retained is 40, so 10 events are lost"):
        reader().partitions(start, end)
    again = reader(failOnDataLoss="false")
    assert again.partitions(start, end) == []
    following = again.latestOffset(end, ReadAllAvailable())
    assert following["_lost"] == {"0": 40}
    assert following["_from"] == {"0": 40}


def test_spark_before_4_2_counts_what_expired_before_a_batch_is_run_again(reader, hundred):
    one = reader()
    end, start = one.latestOffset(), one.initialOffset()
    hundred.trim("Orders", "0", before=40)
    again = reader(failOnDataLoss="false")
    assert sequence_numbers(again.partitions(start, end)) == [*range(40, 100)]
    noted = again.latestOffset()
    assert noted["_lost"] == {"0": 40}
    assert again.partitions(end, noted) == []
    assert json.dumps(again.latestOffset()) == json.dumps(noted)


@PATHS
@pytest.mark.parametrize("is_stream", [True, False])
def test_events_that_expire_between_the_plan_and_its_tasks_are_logged_or_fail_the_task(
    reader, hundred, caplog, path, is_stream
):
    def tasks(**options):
        one = reader(receivePath=path, **options)
        if is_stream:
            return one.partitions(*first_batch(one))
        return make_tasks(one._options, plan_batch(one._options))

    strict, tolerant = tasks(), tasks(failOnDataLoss="false")
    hundred.trim("Orders", "0", before=40)
    with pytest.raises(DataLossError, match=LOST_40):
        sequence_numbers(strict)
    assert sequence_numbers(tolerant) == [*range(40, 100)]
    assert LOST_40 in caplog.text


def test_a_partition_that_is_gone_when_a_batch_is_run_again_is_loss(reader, hub, caplog):
    start, end = ({**offset, "_created": ""} for offset in first_batch(reader()))
    hub.recreate("Orders", 2)
    for partition, count in (("0", 10), ("1", 20)):
        hub.publish("Orders", partition, ["new"] * count)
    with pytest.raises(DataLossError, match="has no partition 2 any more"):
        reader().partitions(start, end)
    tolerant = reader(failOnDataLoss="false").partitions(start, end)
    assert ranges(tolerant) == {"0": (0, 10), "1": (0, 20)}
    assert "has no partition 2 any more" in caplog.text
    assert "has no partition 3" not in caplog.text  # of which nothing was to be read


def test_a_hub_that_was_created_again_is_told_from_an_empty_one(reader, hub):
    _, end = first_batch(reader())
    hub.trim("Orders")
    one = reader()
    assert one.latestOffset(end, ReadAllAvailable()) == end
    hub.recreate("Orders")
    hub.publish("Orders", "1", ["new"] * 3)
    with pytest.raises(DataLossError, match="deleted and created again"):
        one.latestOffset(end, ReadAllAvailable())
    tolerant = reader(failOnDataLoss="false")
    following = tolerant.latestOffset(end, ReadAllAvailable())
    assert ranges(tolerant.partitions(end, following)) == {"1": (0, 3)}
    assert tolerant.latestOffset(following, ReadAllAvailable()) == following


def test_a_hub_that_was_created_again_is_told_after_it_has_grown_past_the_position(reader, hub):
    one = reader()
    start, end = first_batch(one)
    hub.recreate("Orders")
    for partition in "0123":
        hub.publish("Orders", partition, ["new"] * 40)
    for running in (one, reader()):
        with pytest.raises(DataLossError, match="so its sequence numbers are those of other even"):
            running.latestOffset(end, ReadAllAvailable())
    # A batch that was planned before, and is run again.
    with pytest.raises(DataLossError, match="deleted and created again"):
        reader().partitions(start, end)
    tolerant = reader(failOnDataLoss="false")
    assert tolerant.partitions(start, end) == []
    following = tolerant.latestOffset(end, ReadAllAvailable())
    everything = dict.fromkeys("0123", (0, 40))
    assert ranges(tolerant.partitions(end, following)) == everything
    assert tolerant.latestOffset(following, ReadAllAvailable()) == following


def test_a_partition_that_tells_an_older_end_for_a_moment_is_asked_again(reader, monkeypatch):
    one = reader()
    _, end = first_batch(one)
    ask, answers = HubQueries.state, []

    def stale(*arguments):
        answers.append(found := ask(*arguments))
        if len(answers) == 1:
            empty = found.partitions["3"]
            return found._replace(partitions={**found.partitions, "1": empty})
        return found

    monkeypatch.setattr(HubQueries, "state", stale)
    assert one.latestOffset(end, ReadAllAvailable()) == end
    assert len(answers) == 2


def test_the_checkpoint_of_another_hub_is_refused(reader):
    one = reader()
    with pytest.raises(ConfigurationError, match="give a query on another hub its own"):
        one.latestOffset({"0": 5, "_hub": "clicks"}, ReadAllAvailable())


@pytest.mark.parametrize("offset", [0, "x", [1], {}])
def test_the_checkpoint_of_another_source_is_refused(reader, offset):
    one = reader()
    _, end = first_batch(one)
    for act in (
        lambda: one.latestOffset(offset, ReadAllAvailable()),
        lambda: one.partitions(offset, end),
        lambda: one.partitions(end, offset),
    ):
        with pytest.raises(ConfigurationError, match="checkpoint was written by another source"):
            act()


def test_partitions_are_grouped_into_tasks(reader):
    one = reader(partitionsPerTask="2")
    start, end = first_batch(one)
    tasks = one.partitions(start, end)
    assert [[each.partition_id for each in task.ranges] for task in tasks] == [
        ["0", "1"],
        ["2"],
    ]
    auto = reader(partitionsPerTask="auto", parallelism="1")
    assert len(auto.partitions(start, end)) == 1


def test_an_executor_is_sent_no_state_and_no_task_shows_a_secret(reader, hub):
    one = reader()
    start, end = first_batch(one)
    sent = pickle.loads(pickle.dumps(one))
    assert (sent._state.partitions, sent._queries) == ({}, None)
    secret = hub.connection_string("Orders").split("SharedAccessKey=")[1].split(";")[0]
    assert secret not in repr(one.partitions(start, end)) + repr(one._options)
