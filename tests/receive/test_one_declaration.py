"""A column is added by one line in `receive/columns.py`: all sources and both schemas have it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eventhub_checkpoints
from eventhub_checkpoints.receive.columns import column_types
from waiting import LIMIT

PACKAGE = Path(eventhub_checkpoints.__file__).parent
TOOLS = Path(__file__).parents[2] / "tools"

BEFORE = "    properties: TextMaps ="
DECLARED = """\
    sizes: list[int] = column("bodySize", "bigint", lambda events: [*map(len, events.bodies)])
    kinds: list[Text | None] = column("kind", "string", b"x-opt-kind")
"""

USED = """
import json
from amqp_deliveries import client_columns, frames_of, new_link, payload, reference
from confluent_kafka import TIMESTAMP_CREATE_TIME
from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from eventhub_checkpoints.receive.batches import record_batch, schema_of
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.kafka.records import HeaderReader, Records
from eventhub_checkpoints.spark.source import EventHubSource

class Message:
    def value(self): return b"body"
    def headers(self): return None
    def key(self): return None
    def offset(self): return 7
    def timestamp(self): return TIMESTAMP_CREATE_TIME, 1795255200000

numbers = range(1000, 1099)
payloads = [payload(n, b"body", {"x-opt-kind": f"k{n % 3}"} if n % 2 else {}) for n in numbers]
link = new_link()
for number, raw in zip(numbers, payloads, strict=True):
    link.feed(frames_of(raw, number)[0])
assert link.generic < 9
sources = {
    "fast": link.take(),
    "generic": reference(payloads),
    "client": client_columns(payloads),
    "kafka": Columns.of(Records([Message()], HeaderReader("auto"))),
}
connection = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=h"
found = {name: record_batch("0", columns).to_pylist() for name, columns in sources.items()}
assert found["fast"] == found["client"] == found["generic"]
kinds = PartitionBatch.of("0", sources["fast"], schema_of(["kind"]))
assert [event.raw_amqp_message.annotations.get(b"x-opt-kind") for event in kinds] == [
    None if (kind := row["kind"]) is None else kind.encode() for row in found["fast"]
]
last = {name: [rows[-1]["bodySize"], rows[-2:][0]["kind"]] for name, rows in found.items()}
print(json.dumps([last, EventHubSource({"connectionString": connection}).schema()]))
"""


@pytest.fixture
def copied(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_column_is_added_in_one_file(copied):
    declarations = copied / PACKAGE.name / "receive" / "columns.py"
    text = declarations.read_text()
    assert text.count(BEFORE) == 1
    declarations.write_text(text.replace(BEFORE, DECLARED + BEFORE))
    done = subprocess.run(
        [sys.executable, "-c", USED],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(copied), str(TOOLS)))},
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, schema = json.loads(done.stdout)
    assert found == {
        "fast": [4, "k2"],
        "generic": [4, "k2"],
        "client": [4, "k2"],
        "kafka": [4, None],
    }
    names = [*column_types()]
    names[names.index("properties") :] = ["bodySize", "kind", "properties", "systemProperties"]
    assert [field.split()[0] for field in schema.split(", ")] == names
    assert "bodySize bigint, kind string" in schema
