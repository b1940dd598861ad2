import json
from collections import defaultdict

import pytest
from pyspark.errors import StreamingQueryException

from eventhub_checkpoints.spark import read_spark_checkpoint
from spark_runs import DRAINS
from waiting import LIMIT, eventually, let_pass

pytestmark = pytest.mark.long

WAIT = 2 * LIMIT
"""Seconds after which a query counts as stuck."""


class Batches:
    """What a sink was given: the sequence numbers by partition, a dict for each batch."""

    def __init__(self, fails_at=None):
        self.found = []
        self.fails_at = fails_at

    def __call__(self, frame, batch_id):
        numbers = defaultdict(list)
        for row in frame.select("partition", "sequenceNumber").collect():
            numbers[row.partition].append(row.sequenceNumber)
        self.found.append({one: sorted(held) for one, held in sorted(numbers.items())})
        if self.fails_at == batch_id:
            raise RuntimeError("the sink is broken")

    @property
    def with_rows(self):
        return [batch for batch in self.found if batch]

    @property
    def numbers(self):
        """Everything, sorted: an event that came twice is there twice."""
        together = defaultdict(list)
        for batch in self.found:
            for partition, held in batch.items():
                together[partition] += held
        return {one: sorted(held) for one, held in sorted(together.items())}


@pytest.fixture
def drain(start_query):
    """Run a query until it has read what was there; give what came."""

    def drain(**options):
        batches = Batches()
        query = start_query(batches, **options)
        assert query.awaitTermination(WAIT)
        return batches

    return drain


EVERYTHING = {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}


def test_what_is_there_comes_in_batches_of_the_limit_and_then_nothing(drain, hub, tmp_path):
    first = drain(maxEventsPerTrigger="25")
    batches = first.with_rows + (
        [] if DRAINS else [drain(maxEventsPerTrigger="25").found[0] for _ in range(2)]
    )
    assert [sum(map(len, batch.values())) for batch in batches] == [25, 25, 10]
    # Every partition that has something is in the first batch.
    assert batches[0].keys() == EVERYTHING.keys()
    together = defaultdict(list)
    for batch in batches:
        for partition, numbers in batch.items():
            together[partition] += numbers
    assert together == EVERYTHING
    assert read_spark_checkpoint(tmp_path / "query", "Orders").positions == {
        "0": 9,
        "1": 19,
        "2": 29,
    }
    assert drain().found == []
    hub.publish("Orders", "3", ["more"] * 2)
    assert drain(startingPosition="latest").found == [{"3": [0, 1]}]


def test_a_first_batch_that_fails_is_read_again_although_the_store_has_moved(
    start_query, drain, stored, address
):
    def save(number):
        row = {**address.scope().as_dict(), "offset": None, "sequence_number": number}
        stored.write_text(json.dumps([row | {"partition_id": str(one)} for one in range(3)]))

    options = {"checkpointStore": "store_for_source:make"}
    save(5)
    broken = Batches(fails_at=0)
    with pytest.raises(StreamingQueryException, match="the sink is broken"):
        start_query(broken, **options).awaitTermination(WAIT)
    save(9)
    again = drain(**options)
    assert broken.found == again.found
    assert again.numbers == {"0": [*range(6, 10)], "1": [*range(6, 20)], "2": [*range(6, 30)]}


def test_a_query_runs_on_through_silence_new_partitions_and_new_events(
    spark, start_query, drain, hub, tmp_path, capfd, accepted_connections
):
    batches = Batches()
    query = start_query(
        batches, trigger={"processingTime": "100 milliseconds"}, startingPosition="latest"
    )
    # There is a first batch even of a silent hub: from then on nothing that comes is lost.
    eventually(lambda: batches.found == [{}], WAIT)
    query.stop()
    hub.publish("Orders", "3", ["while nobody looks"])
    query = start_query(
        batches, trigger={"processingTime": "100 milliseconds"}, startingPosition="latest"
    )
    eventually(lambda: batches.numbers == {"3": [0]}, WAIT)
    assert hub.add_partitions("Orders", 4) == ["4", "5", "6", "7"]
    new = {partition: [*range(3)] for partition in "4567"}
    for partition in new:
        hub.publish("Orders", partition, ["new"] * 3)
    eventually(lambda: batches.numbers == {"3": [0], **new}, WAIT)
    hub.publish("Orders", "7", ["more"])
    new["7"].append(3)
    eventually(lambda: batches.numbers == {"3": [0], **new}, WAIT)
    eventually(lambda: (query.lastProgress or {}).get("batchId", 0) >= 2, WAIT)
    count, opened = len(batches.found), len(accepted_connections)
    let_pass(1)  # of ten triggers
    assert len(batches.found) == count
    # An idle stream queries the hub over the connection that it has.
    assert len(accepted_connections) == opened
    query.explain(True)
    told = capfd.readouterr().out + str(query.recentProgress) + str(query.lastProgress)
    told += query._jsq.toString() + str(query.status)
    assert "eventhubs" in told
    secret = hub.connection_string("Orders").split("SharedAccessKey=")[1].split(";")[0]
    assert secret not in told
    [source] = query.lastProgress["sources"]
    end = json.loads(source["endOffset"])
    assert end["_hub"] == "Orders"
    assert [end[partition] for partition in "01234567"] == [10, 20, 30, 1, 3, 3, 3, 4]


def test_lost_events_fail_a_query_or_are_counted_in_its_progress(start_query, drain, hub):
    drain(startingPosition="latest")
    hub.publish("Orders", "2", ["gone"] * 40 + ["kept"] * 5)
    hub.trim("Orders", "2", before=70)
    with pytest.raises(StreamingQueryException) as caught:
        start_query(Batches()).awaitTermination(WAIT)
    assert "partition 2 of" in str(caught.value)
    assert "sequence number 30 has expired; the first retained is 70, so 40" in str(caught.value)
    secret = hub.connection_string("Orders").split("SharedAccessKey=")[1].split(";")[0]
    assert secret not in str(caught.value)
    batches = Batches()
    query = start_query(batches, failOnDataLoss="false")
    assert query.awaitTermination(WAIT)
    assert batches.numbers == {"2": [*range(70, 75)]}
    end = json.loads(query.lastProgress["sources"][0]["endOffset"])
    assert end["_lost"] == {"2": 40}


def test_events_that_expire_before_a_failed_batch_is_run_again_are_counted(start_query, hub):
    with pytest.raises(StreamingQueryException, match="the sink is broken"):
        start_query(Batches(fails_at=0)).awaitTermination(WAIT)
    hub.trim("Orders", "2", before=25)
    with pytest.raises(StreamingQueryException, match="the first retained is 25, so 25 events"):
        start_query(Batches()).awaitTermination(WAIT)
    batches = Batches()
    query = start_query(batches, failOnDataLoss="false")
    assert query.awaitTermination(WAIT)
    assert batches.numbers == {**EVERYTHING, "2": [*range(25, 30)]}
    if DRAINS:  # else the query ends with the batch that is run again, and notes nothing after it
        end = json.loads(query.lastProgress["sources"][0]["endOffset"])
        assert end["_lost"] == {"2": 25}


ADDED = ("_namespace", "_created")
"""Keys that the first offsets did not have."""


def test_a_query_goes_on_from_an_old_log_but_in_no_other_hub_of_the_name(
    start_query, drain, hub, tmp_path
):
    drain()
    logged = tmp_path / "query" / "offsets" / "0"
    *head, offset = logged.read_text().split("\n")
    old = {key: value for key, value in json.loads(offset).items() if key not in ADDED}
    logged.write_text("\n".join([*head, json.dumps(old)]))
    logged.with_name(".0.crc").unlink()
    hub.publish("Orders", "3", ["more"] * 2)
    assert drain().numbers == {"3": [0, 1]}
    hub.recreate("Orders")
    for partition in "0123":
        hub.publish("Orders", partition, ["new"] * 40)
    with pytest.raises(StreamingQueryException, match="deleted and created again"):
        start_query(Batches()).awaitTermination(WAIT)
    assert drain(failOnDataLoss="false").numbers == {each: [*range(40)] for each in "0123"}
    production = hub.connection_string("Orders").replace("127.0.0.1", "localhost")
    with pytest.raises(StreamingQueryException, match=r"belongs to namespace '127\.0\.0\.1:"):
        start_query(Batches(), connectionString=production).awaitTermination(WAIT)


def test_the_checkpoint_of_another_source_is_refused(start_query, drain, hub, tmp_path):
    drain()
    logged = tmp_path / "query" / "offsets" / "0"
    *head, _ = logged.read_text().split("\n")
    for number, offset in enumerate((0, "x", [1])):
        logged.write_text("\n".join([*head, json.dumps(offset)]))
        logged.with_name(".0.crc").unlink(missing_ok=True)
        with pytest.raises(StreamingQueryException, match="was written by another source") as told:
            start_query(Batches()).awaitTermination(WAIT)
        assert "AttributeError" not in str(told.value), number


def test_a_stream_has_no_end(start_query):
    with pytest.raises(StreamingQueryException, match="a stream has no end") as caught:
        start_query(Batches(), endingPosition="latest").awaitTermination(WAIT)
    # Nothing of Spark's or Python's own follows the sentence.
    assert "UnboundLocalError" not in str(caught.value)
    assert str(caught.value).count("Traceback") == 1


def test_a_schema_of_ones_own_is_refused_on_a_stream_too(spark, hub, tmp_path):
    source = spark.readStream.format("eventhubs").schema("body string")
    frame = source.option("connectionString", hub.connection_string("Orders")).load()
    writer = frame.writeStream.foreachBatch(Batches())
    query = writer.option("checkpointLocation", str(tmp_path / "own")).start()
    with pytest.raises(StreamingQueryException, match="leave out") as caught:
        query.awaitTermination(WAIT)
    assert "UnboundLocalError" not in str(caught.value)
