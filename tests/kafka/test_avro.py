"""Recipe for Avro with one schema: the page's code, on events of a local hub."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import col

from eventhub_checkpoints.localhub import LocalHub
from page_blocks import blocks

PAGE = Path(__file__).parents[2] / "docs/how-to/spark-json-avro.md"
ORDERS = [{"device": "a", "value": 1.5}, {"device": "b", "value": -2.0}]


def test_events_of_one_schema_are_decoded_by_spark(spark: Any) -> None:
    fastavro = pytest.importorskip("fastavro")
    [recipe] = [block for block in blocks(PAGE) if "import from_avro" in block.text]
    with LocalHub({"orders": 1}) as hub:
        source = spark.read.format("eventhubs")
        source = source.option("connectionString", hub.connection_string("orders"))
        page: dict[str, Any] = {"events": source.load(), "col": col}
        exec(recipe.text, page)
        schema = fastavro.parse_schema(json.loads(page["written_with"]))
        for order in ORDERS:
            payload = io.BytesIO()
            fastavro.schemaless_writer(payload, schema, order)
            hub.publish("orders", "0", [payload.getvalue()])
        rows = page["flat"].collect()
    assert [row.asDict() for row in rows] == [{"partition": "0", **order} for order in ORDERS]
