"""A pipeline from hub to hub that fails in a micro-batch, and continues.

`python -m crashes sink` kills one.
"""

import pytest
from pyspark.errors import StreamingQueryException

from crashes.sink.judge import judged, sent_events
from crashes.sink.pipeline import QUERY, SMALL_PIECES, TOKEN, read_bodies, read_once, run
from crashes.sink.rows import WAYS, name_of, numbers_of, read_batches, rows_of

pytestmark = pytest.mark.long


@pytest.fixture
def hubs(server):
    """Empty hubs `source` and `target`."""
    for name, partitions in (("source", 2), ("target", 4)):
        server.create(name, partitions)
    yield server
    for name in ("source", "target"):
        server.delete(name)


@pytest.mark.parametrize("way", WAYS)
def test_a_pipeline_that_fails_in_the_middle_of_a_batch_is_effectively_exact(
    way, spark, hubs, tmp_path, request
):
    for partition in (0, 1):
        names = [*map(name_of, numbers_of(partition, range(400)))]
        hubs.publish("source", str(partition), names)
    for setting, value in SMALL_PIECES.items():
        before = spark.conf.get(setting)
        spark.conf.set(setting, value)
        request.addfinalizer(lambda name=setting, value=before: spark.conf.set(name, value))
    strings = [hubs.connection_string(name) for name in ("source", "target")]
    (tmp_path / TOKEN).touch()
    hubs.lose_answers(2)
    with pytest.raises(StreamingQueryException, match="this task was chosen to fail"):
        # This session tries a task once, so the micro-batch fails after half of its rows.
        run(spark, way, strings, tmp_path, {"availableNow": True})
    run(spark, way, strings, tmp_path, {"availableNow": True})
    for _ in range(2):
        read_once(spark, strings[1], tmp_path)
    expected = rows_of(way, 400, read_batches(tmp_path / QUERY))
    outcome = judged(400, expected, sent_events(hubs, "target"), read_bodies(tmp_path))
    assert outcome.problems == []
    assert outcome.copies > 0
