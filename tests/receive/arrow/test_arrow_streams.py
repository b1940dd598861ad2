"""What takes Arrow streams takes a hub."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventhub_checkpoints import DataLossError
from eventhub_checkpoints.arrow import ReadSettings, read_batches

TENS = ReadSettings(rows_per_batch=10)
COUNTED = """
    select partition, count(*), min(sequenceNumber), max(sequenceNumber) from given group by 1
"""


def asked(given, query):
    """What DuckDB answers; it finds `given` by its name."""
    return duckdb.sql(query).fetchall()


def test_duckdb_queries_a_hub_and_the_commit_covers_what_it_has_read(address, kept):
    with read_batches(address, store=kept.url, settings=TENS) as batches:
        rows = asked(batches.to_reader(), COUNTED)
        assert sorted(rows) == [("0", 100, 0, 99), ("1", 100, 0, 99), ("2", 10, 0, 9)]
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}


def test_duckdb_takes_the_batches_themselves(text):
    with read_batches(text, partition_ids=["2"]) as batches:
        rows = asked(batches, "select properties, body from given order by sequenceNumber")
        assert rows[0] == ({}, b"event 0")
        assert len(rows) == 10


def test_a_query_that_needs_a_few_rows_reads_no_more_than_it_takes(address, kept):
    """And what it did not take is not committed."""
    with read_batches(address, store=kept.url, partition_ids=["0"], settings=TENS) as batches:
        reader = batches.to_reader()
        assert reader.read_next_batch().num_rows == 10
        assert batches.commit() == {"0": 9}


def test_the_arrow_stream_of_the_batches_is_a_table(address):
    with read_batches(address, settings=TENS) as batches:
        table = pa.table(batches)
    assert table.num_rows == 210
    assert table.schema == batches.schema


def test_batches_go_into_a_file_of_parquet_one_by_one(address, tmp_path):
    path = tmp_path / "hub.parquet"
    with read_batches(address) as batches, pq.ParquetWriter(path, batches.schema) as file:
        for batch in batches:
            file.write_batch(batch)
    assert duckdb.sql(f"select count(*) from '{path}'").fetchall() == [(210,)]


def test_an_error_of_the_hub_comes_through_a_reader(hub, address, kept):
    hub.trim("orders", "0", before=50)
    kept.save("0", 3)
    with (
        read_batches(address, store=kept.url) as batches,
        pytest.raises(DataLossError, match="has expired"),
    ):
        batches.to_reader().read_all()
    with (
        read_batches(address, store=kept.url) as batches,
        pytest.raises(duckdb.Error, match="has expired"),
    ):
        asked(batches.to_reader(), COUNTED)


def test_a_time_of_the_hub_is_a_time_in_duckdb(address):
    with read_batches(address, partition_ids=["2"]) as batches:
        query = "select typeof(enqueuedTime), epoch(enqueuedTime) from given limit 1"
        ((kind, seconds),) = asked(batches, query)
    assert kind == "TIMESTAMP WITH TIME ZONE"
    assert seconds > 1_700_000_000


def test_an_empty_hub_is_an_empty_table(hub, address):
    hub.recreate("orders")
    with read_batches(address) as batches:
        assert asked(batches, "select count(*) from given") == [(0,)]
