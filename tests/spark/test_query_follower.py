import json
import logging
from types import SimpleNamespace

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.listener import StreamingQueryProgress

from eventhub_checkpoints import ConfigurationError, Scope
from eventhub_checkpoints.spark.query_follower import (
    LastEvent,
    QueryFollower,
    latest_events,
    observed_offsets,
)
from telemetry_records import recording
from waiting import LIMIT

QUERY, OTHER = "0000000a-0000-0000-0000-000000000000", "0000000b-0000-0000-0000-000000000000"
RUN, OTHER_RUN = "0000000c-0000-0000-0000-000000000000", "0000000d-0000-0000-0000-000000000000"

OURS = '{"0": 100, "1": 1, "2": 0, "_hub": "Orders"}'
KAFKA = '{"orders":{"0":100,"1":1,"2":0}}'
CONNECTOR = '{"Orders":{"2":0,"1":1,"0":100}}'
POSITIONS = {"0": LastEvent(99), "1": LastEvent(0)}


SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


def progress(
    *ends, query=QUERY, run=RUN, name=None, batch=1, observed=None, rows=10, latest="null"
):
    """The progress of a query as Spark 4 tells it."""
    sources = [
        {
            "description": f"source {index}",
            "startOffset": "null",
            "endOffset": end,
            "latestOffset": latest,
            "numInputRows": rows,
            "inputRowsPerSecond": 1.0,
            "processedRowsPerSecond": 1.0,
        }
        for index, end in enumerate(ends)
    ]
    return StreamingQueryProgress.fromJson(
        {
            "id": query,
            "runId": run,
            "name": name,
            "timestamp": "2026-11-21T10:00:00.000Z",
            "batchId": batch,
            "batchDuration": 10,
            "stateOperators": [],
            "sources": sources,
            "sink": {"description": "sink", "numOutputRows": -1},
            "numInputRows": rows,
            "observedMetrics": observed or {},
        }
    )


class Session:
    """A session's `streams`, with queries that a test invents."""

    def __init__(self, *active):
        self.active = list(active)
        self.listener = None
        self.streams = self

    def addListener(self, listener):  # noqa: N802
        self.listener = listener

    def removeListener(self, listener):  # noqa: N802
        assert self.listener is listener
        self.listener = None


def query(query_id=QUERY, run_id=RUN, name=None, last=None):
    return SimpleNamespace(id=query_id, runId=run_id, name=name, lastProgress=last)


@pytest.fixture
def follow():
    """A follower, and what it has handed on."""

    def make(**settings):
        put = []
        settings = {"query_name": None, "source": None} | settings
        return QueryFollower(SCOPE, put.append, **settings), put

    return make


@pytest.mark.parametrize("end", [OURS, KAFKA, CONNECTOR], ids=["ours", "Kafka", "connector"])
def test_the_committed_end_is_handed_on_whatever_the_source(follow, end):
    follower, put = follow()
    follower.take(progress(end))
    assert put == [POSITIONS]


def test_progress_of_spark_3_is_read_too(follow):
    follower, put = follow()
    given = progress(CONNECTOR)
    listened = SimpleNamespace(**{key: given[key] for key in given if key != "sources"})
    listened.sources = [SimpleNamespace(**source) for source in given["sources"]]
    follower.take(listened)
    last = json.loads(given.json)
    last["sources"][0]["endOffset"] = json.loads(CONNECTOR)
    follower.take(last)
    assert put == [POSITIONS, POSITIONS]


@pytest.mark.parametrize("end", ["null", "None", '{"0": 0, "_hub": "Orders"}'])
def test_a_query_that_has_committed_nothing_moves_nothing(follow, end):
    follower, put = follow()
    follower.take(progress(end, rows=0))
    assert put in ([], [{}])
    assert follower.problem is None


def newest(*events):
    """An observation as Spark Connect tells it."""
    names = ("sequenceNumber", "offset", "partition")
    return {"newest": [dict(zip(names, event, strict=True)) for event in events]}


@pytest.mark.parametrize("number", [98, 100])
def test_an_observed_offset_of_another_event_is_not_used(follow, number):
    follower, put = follow()
    seen = newest((number, "3960", "0"), (0, "0", "1"))
    follower.take(progress(OURS, observed={"eventhub_checkpoints of Orders": seen}))
    assert put == [{"0": LastEvent(99), "1": LastEvent(0, "0")}]


def test_observations_of_others_are_not_used(follow):
    follower, put = follow()
    seen = newest((99, "3960", "0"))
    follower.take(progress(OURS, observed={"eventhub_checkpoints of Returns": seen, "mine": {}}))
    assert put == [POSITIONS]


@pytest.mark.parametrize(
    "observed",
    [
        Row(newest=[Row(sequenceNumber=5, offset="1:A:7", partition="0")]),
        Row("newest")([{"sequenceNumber": 5, "offset": "1:A:7", "partition": "0"}]),
        {"newest": [{"sequenceNumber": 5, "offset": "1:A:7", "partition": "0"}]},
    ],
    ids=["Spark", "Spark Connect", "Spark 3"],
)
def test_an_observation_is_read_in_every_form(observed):
    assert observed_offsets(observed) == {("0", 5): "1:A:7"}


@pytest.mark.parametrize(
    "observed",
    [None, Row(newest=None), {}, newest((5, None, "0")), newest((5, "", "0"))],
    ids=["nothing", "null", "no column", "null offset", "empty offset"],
)
def test_where_no_action_has_read_the_rows_there_is_no_offset(observed):
    assert observed_offsets(observed) == {}


def test_every_place_has_its_aggregate():
    assert latest_events(3).count("max(") == 3


def test_the_source_is_found_by_the_hubs_name(follow):
    follower, put = follow()
    follower.take(progress('{"0": 7, "_hub": "Returns"}', OURS, '{"returns":{"0":5}}', "5"))
    assert put == [POSITIONS]


def test_two_sources_of_one_hub_are_an_error_until_one_is_named(follow, caplog):
    follower, put = follow()
    with caplog.at_level(logging.ERROR):
        follower.take(progress(OURS, CONNECTOR))
        follower.take(progress(OURS, CONNECTOR))
    assert put == []
    assert len(caplog.records) == 1
    assert isinstance(follower.problem, ConfigurationError)
    assert "source=" in str(follower.problem)
    follower, put = follow(source=1)
    follower.take(progress('{"0": 7, "_hub": "Orders"}', CONNECTOR))
    assert put == [POSITIONS]


def test_two_queries_on_one_hub_are_an_error_until_one_is_named(follow):
    follower, put = follow()
    follower.attach(Session(query(QUERY, RUN, "counts"), query(OTHER, OTHER_RUN)))
    follower.take(progress(OURS))
    follower.take(progress(OURS, query=OTHER, run=OTHER_RUN))
    follower.take(progress(OURS))
    assert put == [POSITIONS]
    assert isinstance(follower.problem, ConfigurationError)
    assert f"counts and {OTHER}; choose the one to publish" in str(follower.problem)


@pytest.mark.parametrize("wanted", [OTHER, "second"])
def test_a_query_is_named_by_its_name_or_id(follow, wanted):
    follower, put = follow(query_name=wanted)
    follower.take(progress('{"0": 7, "_hub": "Orders"}', name="first"))
    follower.take(progress(OURS, query=OTHER, run=OTHER_RUN, name="second"))
    assert put == [POSITIONS]
    assert follower.problem is None


def test_a_query_that_is_over_makes_room_for_the_next(follow):
    follower, put = follow()
    session = Session()
    follower.attach(session)
    session.listener.onQueryStarted(query())
    follower.take(progress(OURS))
    session.listener.onQueryTerminated(query())
    session.listener.onQueryStarted(query(OTHER, OTHER_RUN))
    follower.take(progress(OURS, query=OTHER, run=OTHER_RUN, batch=0))
    assert put == [POSITIONS, POSITIONS]
    assert follower.problem is None


def test_a_batch_that_is_told_late_is_not_handed_on(follow):
    follower, put = follow()
    follower.take(progress(OURS, batch=5))
    follower.take(progress('{"0": 7, "_hub": "Orders"}', batch=4))
    assert put == [POSITIONS]


def test_queries_on_other_things_are_left_alone_and_told_once(follow, caplog):
    follower, put = follow()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            follower.take(progress("5", name="ticks"))
            follower.take(progress('{"returns":{"0":5}}', query=OTHER, rows=0))
        follower.take(progress(OURS))
    assert [record.message for record in caplog.records] == [
        "query ticks has read events, but not those of hub 'Orders' in "
        "'ns.servicebus.windows.net': its progress is not published"
    ]
    assert put == [POSITIONS]


ELSEWHERE = {
    "another hub": ('{"0": 7, "_hub": "Returns"}', "hub 'Returns'"),
    "Kafka's source": ('{"returns":{"0":5}}', "hub 'returns'"),
    "another namespace": (
        '{"0": 7, "_hub": "orders", "_namespace": "test.servicebus.windows.net"}',
        "hub 'orders' in 'test.servicebus.windows.net'",
    ),
}


@pytest.mark.parametrize(("end", "where"), ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("is_named", [False, True])
def test_a_publisher_of_a_hub_that_no_query_reads_is_refused(follow, end, where, is_named):
    follower, put = follow(**({"query_name": "counts"} if is_named else {}))
    follower.attach(Session(query(name="counts", last=progress(end, name="counts"))))
    with pytest.raises(ConfigurationError) as refused:
        follower.collect(timeout=LIMIT)
    assert f"counts reads {where}. Create the publisher with the scope" in str(refused.value)
    assert put == []


def test_a_query_of_the_hub_is_found_in_its_namespace(follow):
    follower, put = follow()
    end = OURS.replace("}", ', "_namespace": "NS.servicebus.windows.net"}')
    follower.attach(Session(query(last=progress(end))))
    assert follower.collect(timeout=LIMIT)
    assert put == [POSITIONS]


RETURNS = query(name="returns", last=progress(ELSEWHERE["another hub"][0], name="returns"))
BY_OTHER = {"query": OTHER, "run": OTHER_RUN}


@pytest.mark.parametrize(
    "mine",
    [None, progress("null", rows=0, **BY_OTHER), progress(OURS, **BY_OTHER)],
    ids=["no progress", "no offset", "the hub"],
)
def test_queries_on_other_hubs_do_not_stop_a_publisher(follow, mine):
    """A query that has no offset yet may still read the hub."""
    follower, _ = follow()
    follower.attach(Session(query(OTHER, OTHER_RUN, last=mine), RETURNS))
    assert follower.collect(timeout=LIMIT)


def test_a_query_that_reads_no_hub_neither_shows_nor_hides_a_wrong_name(follow):
    ticks = query(OTHER, OTHER_RUN, last=progress("5", **BY_OTHER))
    follower, _ = follow()
    follower.attach(Session(ticks))
    assert follower.collect(timeout=LIMIT)
    follower, _ = follow()
    follower.attach(Session(ticks, RETURNS))
    with pytest.raises(ConfigurationError, match="returns reads hub 'Returns'"):
        follower.collect(timeout=LIMIT)


def test_a_query_that_reads_the_hub_after_a_restart_is_followed(follow):
    follower, put = follow()
    session = Session(query(last=progress(ELSEWHERE["another hub"][0])))
    follower.attach(session)
    with pytest.raises(ConfigurationError):
        follower.collect(timeout=LIMIT)
    session.listener.onQueryTerminated(query())
    session.active[:] = [query(run_id=OTHER_RUN)]
    assert follower.collect(timeout=LIMIT)
    follower.take(progress(OURS, run=OTHER_RUN, batch=0))
    assert put == [POSITIONS]


LATEST = '{"0": 130, "1": 1, "2": 20, "_hub": "Orders"}'


@pytest.mark.parametrize(
    ("end", "latest"),
    [(OURS, LATEST), (KAFKA, '{"orders":{"0":130,"1":0,"2":20,"3":8}}')],
    ids=["ours", "Kafka"],
)
def test_the_lag_of_the_query_is_reported(follow, caplog, end, latest):
    follower, _ = follow()
    with recording() as records, caplog.at_level(logging.INFO):
        follower.take(progress(end, latest=latest, name="counts"))
        assert follower.behind.by_partition == {"0": 30, "1": 0, "2": 20}
        figures = {"min": 0, "avg": 50 / 3, "max": 30}
        for figure, value in figures.items():
            assert getattr(follower.behind, figure) == value
            [point] = records.points(f"eventhub_checkpoints.behind_latest.{figure}")
            assert point.value == value
            assert dict(point.attributes) == {
                "messaging.system": "eventhubs",
                "messaging.destination.name": "Orders",
                "messaging.consumer.group.name": "$Default",
                "server.address": "ns.servicebus.windows.net",
            }
        assert "query counts is behind the end of hub Orders by 0 (min), 16.7 (avg)" in caplog.text
        follower.attach(Session())
        follower.detach()
        assert records.points("eventhub_checkpoints.behind_latest.max") == []


@pytest.mark.parametrize("latest", ["null", "5", '{"other":{"0":9}}', '{"unforeseen": 1}'])
def test_where_the_end_of_the_hub_is_not_reported_the_lag_is_unknown(follow, latest):
    follower, put = follow()
    follower.take(progress(OURS, latest=latest))
    assert (follower.behind, follower.problem, put) == (None, None, [POSITIONS])


def test_nothing_is_raised_into_spark(follow):
    def broken(_):
        raise RuntimeError("unforeseen")

    follower = QueryFollower(SCOPE, broken, query_name=None, source=None)
    follower.take(progress(OURS))
    assert str(follower.problem) == "unforeseen"
    follower.take(None)


def test_what_runs_is_collected_without_waiting_for_its_event(follow):
    follower, put = follow()
    follower.attach(Session(query(last=progress(OURS)), query(OTHER, OTHER_RUN)))
    assert follower.collect(timeout=LIMIT)
    assert put == [POSITIONS]


def test_the_end_of_a_query_is_waited_for(follow):
    follower, _ = follow()
    session = Session(query())
    follower.attach(session)
    session.active.clear()
    assert not follower.collect(timeout=0.01)
    session.listener.onQueryTerminated(query())
    assert follower.collect(timeout=LIMIT)


def test_a_session_that_is_gone_is_not_waited_for(follow):
    class Gone(Session):
        @property
        def active(self):
            if self.listener is not None:
                raise ConnectionError("stopped")
            return [query()]

        @active.setter
        def active(self, _):
            pass

        def removeListener(self, listener):  # noqa: N802
            raise ConnectionError("stopped")

    follower, _ = follow()
    follower.attach(Gone())
    assert follower.collect(timeout=LIMIT)
    follower.detach()


def test_a_query_name_that_nobody_has_is_an_error(follow):
    follower, _ = follow(query_name="count")
    follower.attach(Session(query(name="counts"), query(OTHER, OTHER_RUN)))
    with pytest.raises(
        ConfigurationError, match=f"no query is named 'count'; the session has run counts, {OTHER}"
    ):
        follower.collect(timeout=LIMIT)


def test_one_publisher_listens_to_one_session(follow):
    follower, _ = follow()
    session = Session()
    follower.attach(session)
    with pytest.raises(ConfigurationError, match="'Orders' is attached to a session already"):
        follower.attach(session)
    follower.detach()
    assert session.listener is None


@pytest.mark.parametrize("kind", ["classic", "Connect"])
def test_while_a_query_runs_in_spark_connect_the_listener_stays_and_is_deaf(follow, kind):
    follower, put = follow()
    session = Session(query())
    session._jvm = object() if kind == "classic" else None
    follower.attach(session)
    follower.detach()
    assert (session.listener is None) == (kind == "classic")
    follower.take(progress(OURS))
    assert put == []
