"""A job on two executors, with the package shipped by the line that the page gives."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark import SparkContext

import spark_runs

SECONDS = 240
JOB = Path(__file__).with_name("job.py")
LEFT = {"0": [*range(5, 10)], "1": [*range(10, 20)], "2": [*range(30)]}
"""What the hub holds behind the checkpoints."""


@pytest.fixture(params=["local-cluster", "standalone"])
def master(request):
    if request.param == "local-cluster":
        return "local-cluster[2,1,1024]"
    return request.getfixturevalue("standalone_master")


def numbers(rows):
    return spark_runs.sorted_numbers((partition, number) for partition, number, *_ in rows)


def assert_two_executors_read_with_what_was_shipped(rows):
    used = {(Path(executor), Path(package)) for _, _, executor, package in rows}
    assert {executor.name for executor, _ in used} == {"0", "1"}
    for executor, package in used:
        assert package == executor / "eventhub_checkpoints.zip/eventhub_checkpoints/__init__.py"


def test_spark_finds_a_shipped_zip_and_no_wheel():
    """Why the page says that the wheel must be renamed."""
    assert ".zip" in SparkContext.PACKAGE_EXTENSIONS
    assert ".whl" not in SparkContext.PACKAGE_EXTENSIONS


def test_the_cluster_has_everything_but_this_package(bare):
    needed = "import azure.eventhub, pyarrow, pyspark, sqlalchemy; import eventhub_checkpoints"
    ran = subprocess.run([bare.python, "-c", needed], capture_output=True, text=True, check=False)
    assert "No module named 'eventhub_checkpoints'" in ran.stderr


def test_a_shipped_job_reads_each_event_once_on_two_executors(
    shipping, hub, master, tmp_path, tell, request
):
    shutil.copy(JOB, tmp_path)
    variables = {"HUB": hub.connection_string, "STORE": hub.store_url}
    settings = {"spark.master": master}
    with shipping.start(
        "zip spark-submit --py-files", tmp_path, settings, **variables
    ) as submitted:
        assert submitted.wait(SECONDS) == 0, submitted.tail()
    found = json.loads((tmp_path / "read.json").read_text())
    assert numbers(found["batch"]) == LEFT
    assert_two_executors_read_with_what_was_shipped(found["batch"])
    streamed = [row for batch in found["stream"] for row in batch]
    assert numbers(streamed) == LEFT
    assert [len(batch) for batch in found["stream"]] == [30, 15]
    assert_two_executors_read_with_what_was_shipped(streamed)
    for kind, rows in (("batch", found["batch"]), ("stream", streamed)):
        held = sorted({(Path(row[2]).name, row[0]) for row in rows})
        told = ", ".join(f"executor {executor} read partition {one}" for executor, one in held)
        tell("executors", f"{request.node.callspec.id}, {kind}: {told}")
