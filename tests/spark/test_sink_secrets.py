"""A sink's secrets are in no plan, event log, checkpoint, progress or error of Spark."""

import base64
import json
from contextlib import contextmanager

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from crashes.sink.pipeline import FAILS_AT, TOKEN, failing
from spark_runs import wait_for_listeners

SECRET = base64.b64encode(b"the key that nobody may see").decode()


@contextmanager
def event_log(spark, folder):
    """Write Spark's event log into a folder meanwhile, as `spark.eventLog.enabled` does."""
    scala, jvm = spark.sparkContext._jsc.sc(), spark.sparkContext._jvm
    conf = scala.conf().clone().set("spark.eventLog.compress", "false")
    log = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "a-test", jvm.scala.Option.empty(), folder.toURI(), conf, scala.hadoopConfiguration()
    )
    log.start()
    scala.addSparkListener(log)
    try:
        yield
    finally:
        wait_for_listeners(spark)
        scala.removeSparkListener(log)
        log.stop()


@pytest.fixture
def started(spark, hub, tmp_path):
    """Start a stream into a sink; a token in the folder makes a task fail."""

    def start(**options):
        source = hub.connection_string("Orders").replace("any-key-will-do", SECRET)
        events = spark.readStream.format("eventhubs").option("connectionString", source).load()
        passed = F.udf(failing(str(tmp_path)), "string", useArrow=False)
        return (
            events.select(passed(F.col("body").cast("string")).alias("body"))
            .writeStream.format("eventhubs")
            .options(**options)
            .option("checkpointLocation", str(tmp_path / "query"))
            .trigger(availableNow=True)
            .start()
        )

    return start


def test_a_stream_shows_no_secret_of_its_sink(spark, hub, started, tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    out = hub.connection_string("Orders").replace("any-key-will-do", SECRET)
    hub.publish("Orders", "2", ["more"] * FAILS_AT)
    shown = []
    with event_log(spark, spark.sparkContext._jvm.java.io.File(str(logs))):
        (tmp_path / TOKEN).touch()
        with pytest.raises(StreamingQueryException, match="chosen to fail") as failed:
            started(connectionString=out).awaitTermination()
        shown.append(str(failed.value))
        query = started(connectionString=out)
        query.awaitTermination()
        query.explain(True)
        shown.append(capsys.readouterr().out)
    shown += [json.dumps(json.loads(progress.json)) for progress in query.recentProgress]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    shown += [path.read_text(errors="replace") for path in files]
    assert any("physicalPlanDescription" in text for text in shown)
    assert "Logical Plan" in shown[1]
    assert hub.partition_properties("Orders", "0").last_sequence_number > 10
    for text in shown:
        assert SECRET not in text
