import json
from types import SimpleNamespace

import pytest
from pyspark.errors import StreamingQueryException

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import (
    OffsetRange,
    SparkCheckpoint,
    StartingPositions,
    parse_progress,
    ranges_of,
    read_spark_checkpoint,
)

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795244369887,"conf":{"a":"b"}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


class QueryFolder:
    """A checkpoint folder as Spark leaves it, with the files that lie beside its logs."""

    def __init__(self, path):
        self.path = path
        self.write("metadata", '{"id":"b6a0bd2e"}')
        self.write("offsets/.0.crc", "crc")
        self.write("offsets/.7.0e1b.tmp", "v1")
        self.write("commits/.0.crc", "crc")

    def write(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())

    def begin(self, offset, source=0):
        self.write(f"sources/{source}/0", "\0v1\n" + offset)

    def log(self, batch, *offsets, version="v1"):
        self.write(f"offsets/{batch}", "\n".join([version, METADATA, *offsets]))

    def commit(self, *batches):
        for batch in batches:
            self.write(f"commits/{batch}", COMMIT)
            self.write(f"commits/.{batch}.crc", "crc")


@pytest.fixture
def query(tmp_path):
    return QueryFolder(tmp_path)


def ranges(**by_partition):
    return [
        OffsetRange(partition.removeprefix("p"), begin, until)
        for partition, (begin, until) in by_partition.items()
    ]


def test_the_last_committed_batch_and_its_ranges_are_read(query):
    query.begin('{"hub":{"1":5,"0":100}}')
    query.log(0, '{"hub":{"1":5,"0":110}}')
    query.log(1, '{"hub":{"0":130,"1":9}}')
    query.commit(0, 1)
    assert read_spark_checkpoint(query.path) == SparkCheckpoint(
        1, {"0": 129, "1": 8}, ranges(p0=(110, 130), p1=(5, 9)), []
    )


def test_a_batch_that_was_logged_and_not_committed_is_pending(query):
    query.log(0, '{"hub":{"0":110,"1":0}}')
    query.log(1, '{"hub":{"0":130,"1":4}}')
    query.commit(0)
    found = read_spark_checkpoint(query.path, "HUB")
    assert (found.batch_id, found.positions) == (0, {"0": 109})
    assert found.pending == ranges(p0=(110, 130), p1=(0, 4))


def test_the_first_batch_of_a_connector_begins_where_its_source_noted_it(query):
    query.begin('{"my-hub":{"0":12,"1":0,"2":28,"3":30}}')
    query.log(0, '{"my-hub":{"2":30,"1":20,"0":12,"3":31}}')
    found = read_spark_checkpoint(query.path, "my-hub")
    assert (found.batch_id, found.positions, found.ranges) == (None, {}, [])
    assert found.pending == ranges(p0=(12, 12), p1=(0, 20), p2=(28, 30), p3=(30, 31))
    query.commit(0)
    assert read_spark_checkpoint(query.path, "my-hub").ranges == found.pending


def test_the_first_batch_of_our_source_notes_its_begin_in_its_end(query):
    query.log(0, '{"0": 100, "1": 7, "_from": {"0": 90, "1": 7}, "_hub": "Orders"}')
    query.log(1, '{"0": 124, "1": 7, "_hub": "Orders"}')
    query.commit(0)
    found = read_spark_checkpoint(query.path, "orders")
    assert found.positions == {"0": 99, "1": 6}
    assert found.ranges == ranges(p0=(90, 100), p1=(7, 7))
    assert found.pending == ranges(p0=(100, 124), p1=(7, 7))


def test_a_later_batch_of_our_source_notes_what_begins_elsewhere(query):
    """Partition 0 has lost ten events, and partition 2 is new."""
    query.log(4, '{"0": 100, "1": 7, "_hub": "Orders"}')
    query.log(5, '{"0": 124, "1": 9, "2": 6, "_from": {"0": 110, "2": 5}, "_lost": {"0": 10}}')
    query.commit(4, 5)
    found = read_spark_checkpoint(query.path)
    assert found.ranges == ranges(p0=(110, 124), p1=(7, 9), p2=(5, 6))


def test_without_a_begin_the_positions_are_told_and_no_range_is_made_up(query):
    query.log(0, '{"hub":{"0":110}}')
    query.commit(0)
    assert read_spark_checkpoint(query.path) == SparkCheckpoint(0, {"0": 109}, [], [])
    query.path.joinpath("offsets/0").unlink()
    query.log(7, '{"hub":{"0":120}}')
    query.commit(7)
    assert read_spark_checkpoint(query.path) == SparkCheckpoint(7, {"0": 119}, [], [])


def test_a_partition_that_appeared_begins_with_its_first_event(query):
    query.log(0, '{"hub":{"0":110}}')
    query.log(1, '{"hub":{"0":110,"1":3}}')
    query.commit(0, 1)
    assert read_spark_checkpoint(query.path).ranges == ranges(p0=(110, 110), p1=(0, 3))


def test_a_new_partition_that_our_source_does_not_note_has_read_nothing(query):
    query.log(0, '{"0":110}')
    query.log(1, '{"0":110,"1":3}')
    query.commit(0, 1)
    assert read_spark_checkpoint(query.path).ranges == ranges(p0=(110, 110), p1=(3, 3))


def test_a_source_that_was_moved_back_read_nothing(query):
    query.begin('{"hub":{"0":5000}}')
    query.log(0, '{"hub":{"0":3000}}')
    query.commit(0)
    assert read_spark_checkpoint(query.path).ranges == ranges(p0=(3000, 3000))


def test_of_several_sources_the_one_of_the_hub_is_read(query):
    query.begin('{"hub":{"0":4}}', source=2)
    query.log(0, "17", "-", '{"hub":{"0":8}}', '{"other":{"0":1}}')
    query.commit(0)
    found = read_spark_checkpoint(query.path, "hub")
    assert (found.positions, found.ranges) == ({"0": 7}, ranges(p0=(4, 8)))
    with pytest.raises(ConfigurationError, match="sources 2, 3 of the query all read a hub"):
        read_spark_checkpoint(query.path)
    assert read_spark_checkpoint(query.path, source=3).positions == {"0": 0}


def test_the_second_version_of_the_log_names_its_sources(query):
    query.begin('{"hub":{"0":4}}', source=1)
    query.log(0, '1:{"hub":{"0":8}}', '0:{"logOffset":3}', version="v2")
    query.commit(0)
    found = read_spark_checkpoint(query.path, "hub")
    assert (found.positions, found.ranges) == ({"0": 7}, ranges(p0=(4, 8)))
    assert read_spark_checkpoint(query.path, source=1) == found


@pytest.mark.parametrize("name", ["\u0661", "9" * 5000])
def test_a_source_may_have_a_name_that_resembles_a_number(query, name):
    query.log(0, f'{name}:{{"other":{{"0":3}}}}', '0:{"hub":{"0":8}}', version="v2")
    query.write("offsets/\u0661", "v1")
    query.commit(0)
    assert read_spark_checkpoint(query.path, "hub").positions == {"0": 7}


def test_a_source_without_an_offset_yet_has_no_position(query):
    query.log(0, "-", "17")
    query.commit(0)
    assert read_spark_checkpoint(query.path, "hub") == SparkCheckpoint(0, {}, [], [])


def test_a_query_that_has_logged_nothing_has_read_nothing(query):
    assert read_spark_checkpoint(query.path) == SparkCheckpoint(None, {}, [], [])


@pytest.mark.parametrize("batch", [0, 7])
def test_a_copy_without_the_folder_of_commits_is_an_error(query, batch):
    """Spark creates the folder before its first batch, so that only a copy can lack it."""
    query.log(batch, '{"hub":{"0":110}}')
    query.path.joinpath("commits/.0.crc").unlink()
    assert read_spark_checkpoint(query.path).batch_id is None
    query.path.joinpath("commits").rmdir()
    with pytest.raises(
        ConfigurationError, match=f"up to batch {batch} and no folder named commits"
    ):
        read_spark_checkpoint(query.path)


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_a_folder_that_is_no_checkpoint_is_an_error(tmp_path, folder):
    with pytest.raises(ConfigurationError, match="is not a checkpoint of a streaming query"):
        read_spark_checkpoint(tmp_path / folder)


@pytest.mark.parametrize("text", ["", "v3\n{}\n{}", "5"])
def test_a_log_in_no_known_format_is_an_error_that_names_the_file(query, text):
    query.write("offsets/0", text)
    with pytest.raises(ConfigurationError, match=r"offsets/0 in .* expected v1 or v2"):
        read_spark_checkpoint(query.path)


def test_a_damaged_log_is_an_error_that_names_the_file(query):
    query.log(0, '{"0": 5}')
    (query.path / "offsets" / "0").write_bytes(b"v1\n\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"offsets/0 in .* is damaged, .* at byte 3\)"):
        read_spark_checkpoint(query.path, "Orders")


def test_a_folder_in_place_of_a_log_is_an_error_that_names_it(query):
    (query.path / "offsets" / "0").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"offsets/0 cannot be read \(Is a directory\)"):
        read_spark_checkpoint(query.path, "Orders")


def test_a_committed_batch_whose_offsets_are_gone_is_an_error(query):
    query.commit(3)
    with pytest.raises(ConfigurationError, match="has no offsets of batch 3"):
        read_spark_checkpoint(query.path)


def test_a_file_url_is_a_local_path(query):
    query.log(0, '{"0":110}')
    query.commit(0)
    assert read_spark_checkpoint(query.path.as_uri()).batch_id == 0
    assert read_spark_checkpoint(str(query.path)).batch_id == 0


def test_another_file_system_wants_a_session():
    with pytest.raises(
        ConfigurationError, match=r"with abfss: is not in a local file system; pass spark="
    ):
        read_spark_checkpoint("abfss://container@account.dfs.core.windows.net/query")


def test_a_session_of_spark_connect_is_told_what_it_lacks(query):
    with pytest.raises(ConfigurationError, match="pass a classic SparkSession"):
        read_spark_checkpoint(query.path.as_uri(), spark=SimpleNamespace())


@pytest.mark.parametrize("given", ["path", "url", "another file system"])
def test_spark_reads_what_its_hadoop_client_reads(spark, query, given):
    query.begin('{"hub":{"0":100}}')
    query.log(0, '{"hub":{"0":110}}')
    query.log(1, '{"hub":{"0":130}}')
    query.commit(0)
    # Known to this session only, as the settings of a storage account often are.
    spark.conf.set("fs.viewfs.mounttable.elsewhere.link./query", query.path.as_uri())
    locations = {"path": str(query.path), "url": query.path.as_uri()}
    location = locations.get(given, "viewfs://elsewhere/query")
    assert read_spark_checkpoint(location, "hub", spark) == read_spark_checkpoint(query.path)
    with pytest.raises(ConfigurationError, match="is not a checkpoint"):
        read_spark_checkpoint(location + "/commits", "hub", spark)


def test_a_file_system_that_spark_does_not_know_is_named(spark):
    with pytest.raises(ConfigurationError, match=r"system of nowhere://a/b: .*scheme \"nowhere\""):
        read_spark_checkpoint("nowhere://a/b", spark=spark)


def test_what_spark_itself_writes_is_read(spark, tmp_path):
    """A real query of two sources, in both versions of the log; the rate source is none of ours."""
    for version in ("1", "2"):
        folder = tmp_path / version
        spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", version)
        rates = [spark.readStream.format("rate").load() for _ in range(2)]
        query = rates[0].union(rates[1]).writeStream.format("noop")
        query = query.option("checkpointLocation", str(folder)).trigger(once=True).start()
        query.awaitTermination()
        spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")
        assert json.loads((folder / "metadata").read_text())["id"] == query.id
        with pytest.raises(ConfigurationError, match="its 2 sources read no named event hub"):
            read_spark_checkpoint(folder, "hub", spark)
        with pytest.raises(ConfigurationError, match="not an offset of an event hub"):
            read_spark_checkpoint(folder, source=1)


def test_a_stream_of_our_source_is_read_while_it_runs_and_after_it_failed(spark, hub, tmp_path):
    """The ranges are known in `foreachBatch` already, and are those of the rows."""
    location = str(tmp_path / "query")
    seen = []

    def sink(batch, batch_id):
        pending = read_spark_checkpoint(location, "orders").pending
        seen.append((pending, ranges_of(batch)))
        if batch_id == 1:
            raise OSError("the sink is full")

    stream = spark.readStream.format("eventhubs").options(
        connectionString=hub.connection_string("Orders"),
        maxEventsPerTrigger="30",
        startingPositions=StartingPositions.after("Orders", {"0": 4}, range(4)).to_connector(),
        startingPosition="earliest",
    )
    query = stream.load().writeStream.foreachBatch(sink).trigger(availableNow=True)
    failing = query.option("checkpointLocation", location).start()
    with pytest.raises(StreamingQueryException):
        failing.awaitTermination()
    found = read_spark_checkpoint(location, "Orders", spark)
    assert len(seen) == 2
    for pending, read in seen:
        assert [one for one in pending if not one.is_empty] == read
    assert (found.ranges, found.pending) == (seen[0][0], seen[1][0])
    assert sum(one.until_sequence_number - one.from_sequence_number for one in found.ranges) == 30
    assert found.positions == parse_progress(failing.lastProgress, "Orders")
