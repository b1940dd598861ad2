"""A pipeline that fails and continues: a short run of `python -m sink_crashes`, and its judge."""

import pytest
from pyspark.errors import StreamingQueryException

from sink_crashes import __main__ as command
from sink_crashes.judge import Outcome, judged, sent_events
from sink_crashes.pipeline import QUERY, SMALL_PIECES, TOKEN, read_bodies, read_once, run
from sink_crashes.rows import WAYS, name_of, numbers_of, read_batches, rows_of


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
    assert outcome.is_good, outcome
    assert outcome.copies > 0


def test_a_total_shows_an_event_that_is_lost_or_counted_twice():
    # The events 0 and 150 have one key, 1 and 151 another one.
    rows = rows_of("aggregated", 152, [{"0": 1, "1": 75}, {"0": 76, "1": 76}])
    assert {"train 0:1:0", "train 0:2:150", "train 1:1:1", "train 1:2:152"} <= rows
    assert len(rows) == 152
    assert "train 0:2:150" in rows_of("aggregated", 152, [{"0": 76, "1": 76}])
    assert "train 0:1:0" not in rows_of("aggregated", 152, [{"0": 76, "1": 76}])
    unread = rows_of("aggregated", 152, [{"0": 1, "1": 75}])
    assert unread == rows


NAMES = {"a:1", "b:1"}
SENT = [("a:1", "1"), ("b:1", "2")]


@pytest.mark.parametrize(
    ("sent", "deduplicated", "outcome"),
    [
        (SENT, ["a:1", "b:1"], Outcome(3, 2, 2, 0, 0, 0, 0, 0)),
        ([*SENT, SENT[0]], ["a:1", "b:1"], Outcome(3, 2, 3, 0, 1, 0, 0, 0)),
        (SENT[:1], ["a:1"], Outcome(3, 2, 1, 1, 0, 0, 0, 0)),
        ([*SENT, ("a:1", "3")], ["a:1", "b:1", "a:1"], Outcome(3, 2, 3, 0, 1, 1, 0, 0)),
        (SENT, ["a:1"], Outcome(3, 2, 2, 0, 0, 0, 1, 0)),
        ([*SENT, ("a:2", "3")], ["a:1", "b:1", "a:2"], Outcome(3, 2, 3, 0, 0, 0, 0, 1)),
        ([("a:1", "1"), ("b:1", "1")], ["a:1", "b:1"], Outcome(3, 2, 2, 0, 0, 0, 0, 1)),
    ],
)
def test_the_judge_counts_what_is_lost_and_what_is_there_twice(sent, deduplicated, outcome):
    assert judged(3, NAMES, sent, deduplicated) == outcome
    assert outcome.is_good == (outcome.lost + outcome.kept + outcome.dropped + outcome.wrong == 0)


@pytest.mark.parametrize(("lost", "status"), [(0, 0), (1, 1)])
def test_the_command_prints_its_seed_and_the_outcome(lost, status, monkeypatch, capsys):
    monkeypatch.setattr(command.Round, "kill", lambda self, kind: kind)
    monkeypatch.setattr(command.Round, "finish", lambda self: Outcome(9, 9, 10, lost, 1, 0, 0, 0))
    assert command.main(["--seed", "7", "--kills", "2"]) == status
    printed = capsys.readouterr().out
    assert "sink_crashes: seed 7, 2 kills" in printed
    assert f"9 events in, 9 rows of them, 10 out: {lost} lost, 1 copies" in printed
