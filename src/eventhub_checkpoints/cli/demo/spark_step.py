"""PySpark job in a separate process, with quiet output and cleanup even after a kill."""

import importlib.util
import os
import sys
import time
from pathlib import Path

from eventhub_checkpoints.cli.children import ChildError
from eventhub_checkpoints.cli.demo.stage import TICK_SECONDS, Stage

SPARK_SECONDS = 240
"""Timeout of the whole job. Java and PySpark start slowly on a busy machine."""

JAVA_FOR_A_SHORT_JOB = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No second compiler and no parallel collector: measured 9 s of CPU time instead of 16 s."""


def read_with_spark(stage: Stage) -> dict[str, list[int]]:
    """Run the job; return the sequence numbers that it read, by partition.

    Raises:
        ChildError: it failed, or did not finish in time; has the end of its log.
    """
    job = stage.start("spark_job", "", environment=spark_environment(stage.folder))
    deadline = time.monotonic() + SPARK_SECONDS
    while (status := job.child.poll()) is None and time.monotonic() < deadline:
        time.sleep(TICK_SECONDS)
        stage.look()
    if status != 0:
        ended = "still runs" if status is None else f"ended with status {status}"
        raise ChildError(f"the PySpark job {ended}{job.last_words()}")
    job.journal.read()
    return job.journal.events


def spark_environment(folder: Path) -> dict[str, str]:
    """Return variables that restrict Spark to this PySpark, machine and folder."""
    found = importlib.util.find_spec("pyspark")
    home = str(Path(found.origin).parent) if found and found.origin else ""
    scratch = folder / "spark-scratch"
    scratch.mkdir()
    java = f"{JAVA_FOR_A_SHORT_JOB} -XX:-UsePerfData -Djava.io.tmpdir={scratch}"
    return {
        # Another Spark on this machine may be of another version.
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {java}".strip(),
    }
