"""How far a query is behind its hub, and what is said of progress that cannot be read."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import parse_progress
from eventhub_checkpoints.spark.offsets import (
    BehindLatest,
    StreamOffset,
    behind_latest,
    by_hub,
    hub_and_namespace,
    namespace_of,
    sources_of_hub,
)

OURS = {"0": 42, "1": 7, "_hub": "Orders", "_namespace": "test.net"}


def progress_of(*sources: tuple[Any, Any]) -> dict[str, Any]:
    """A whole progress of sources with these end and latest offsets."""
    return {"sources": [{"endOffset": end, "latestOffset": latest} for end, latest in sources]}


def said(progress: Any, hub: Any = None, read: Any = parse_progress, **given: Any) -> str:
    with pytest.raises(ConfigurationError) as failure:
        read(progress, hub, **given)
    return str(failure.value)


def test_what_is_not_committed_is_counted_by_partition() -> None:
    latest = {"hub": {"0": 9, "1": 30, "2": 4, "3": 7}}
    progress = progress_of(({"hub": {"0": 5, "1": 10, "2": 4}}, latest))
    found = behind_latest(progress)
    assert found == BehindLatest({"0": 4, "1": 20, "2": 0})
    assert (found.min, found.avg, found.max) == (0, 8.0, 20)
    source = SimpleNamespace(endOffset='{"hub": {"0": 5}}', latestOffset=json.dumps(latest))
    assert behind_latest(SimpleNamespace(sources=[source])) == BehindLatest({"0": 4})
    assert behind_latest(json.dumps(progress)) == found


def test_a_partition_whose_end_lies_before_its_offset_is_not_behind() -> None:
    progress = progress_of(({"hub": {"0": 5, "1": 5}}, {"hub": {"0": 3, "1": 6}}))
    assert behind_latest(progress) == BehindLatest({"0": 0, "1": 1})


def test_of_several_sources_the_one_of_the_hub_counts() -> None:
    progress = progress_of(
        ({"a": {"0": 5}}, {"a": {"0": 6}}),
        ({"x": {"0": 1}, "B": {"0": 5}}, {"x": {"0": 1}, "b": {"0": 8}}),
    )
    assert behind_latest(progress, "a") == BehindLatest({"0": 1})
    assert behind_latest(progress, "b") == BehindLatest({"0": 3})
    twice = progress_of(({"a": {"0": 5}}, {"a": {"0": 6}}), ({"a": {"0": 5}}, {"a": {"0": 8}}))
    assert behind_latest(twice, "a", source=1) == BehindLatest({"0": 3})


@pytest.mark.parametrize(
    ("end", "latest"),
    [
        (None, {"hub": {"0": 6}}),
        ({"hub": {"0": 5}}, None),
        ({"hub": {"0": 5}}, 17),
        ({"hub": {"0": 5}}, {"other": {"0": 6}}),
        ({"hub": {"0": 5}}, {"hub": {"1": 6}}),
    ],
)
def test_without_an_offset_or_the_end_of_the_hub_it_is_not_known(end: Any, latest: Any) -> None:
    assert behind_latest(progress_of((end, latest)), "hub") is None


def test_the_offset_of_a_single_source_does_not_contain_the_end() -> None:
    assert said({"hub": {"0": 5}}, "hub", behind_latest) == (
        "only a whole StreamingQueryProgress contains the end of the hub; pass query.lastProgress"
    )


def test_a_source_of_several_topics_is_read_for_one() -> None:
    end = {"x": {"0": 1}, "Orders": {"0": 5}}
    assert parse_progress(progress_of((end, None)), "orders") == {"0": 4}


def test_an_offset_that_is_text_within_text_is_none() -> None:
    assert said(json.dumps('{"0":5}'), "hub").startswith("the progress is not an offset")


@pytest.mark.parametrize("read", [parse_progress, behind_latest])
def test_what_is_no_name_of_a_hub_is_refused(read: Any) -> None:
    assert said(progress_of(({"hub": {"0": 5}}, None)), 5, read) == (
        "hub is of type int; expected the hub's name, or None"
    )


def test_progress_that_cannot_be_used_is_told_in_full() -> None:
    assert said({"logOffset": 3}, "hub") == (
        'the progress is not an offset of an event hub; expected for example {"Orders":{"0":124}} '
        'or {"0":124}, or a whole StreamingQueryProgress'
    )
    assert said({"hub": {"0": 5}}, "other") == "the progress is of hub 'hub', not of hub 'other'"
    assert said({"a": {"0": 5}, "A": {"0": 5}, "b": {"0": 5}}, None) == (
        "the progress is of hub 'A', 'a', 'b'; pass one of these names, in the same spelling"
    )
    twice = progress_of(({"hub": {"0": 5}}, None), (3, None), ({"HUB": {"0": 9}}, None))
    assert said(twice, "hub") == (
        "sources 0, 2 of the query all read hub 'hub'; choose one, for example source=0"
    )
    assert said(progress_of(({"0": 5}, None), ({"0": 6}, None))) == (
        "sources 0, 1 of the query all read a hub; choose one, for example source=0"
    )
    assert said(twice, "other") == (
        "no source of the query reads hub 'other'; its 3 sources read hub 'HUB', 'hub'"
    )
    assert said(progress_of((3, None))) == (
        "no source of the query reads a hub; its 1 sources read no named event hub"
    )
    for source in (3, -1, "0"):
        assert said(twice, "hub", source=source) == (
            f"source is {source!r}; the query has 3 sources, counted from 0"
        )
    assert parse_progress(twice, "hub", source=0) == {"0": 4}


def test_sources_that_name_the_hub_come_before_those_that_name_none() -> None:
    named, other, unnamed = {"hub": {"0": 5}}, {"b": {"0": 5}}, {"0": 5}
    assert sources_of_hub([unnamed, named, other, {"HUB": {"0": 1}}], "hub") == [1, 3]
    assert sources_of_hub([unnamed, other, None, unnamed], "hub") == [0, 3]
    assert sources_of_hub([other, None], "hub") == []


def test_an_offset_is_read_by_its_hubs() -> None:
    assert by_hub(OURS) == {"Orders": {"0": 42, "1": 7}}
    assert by_hub({"0": 42, "_hub": 5}) == by_hub({"0": 42}) == {None: {"0": 42}}
    assert by_hub({"b": {"10": 1, "9": 2}, "a": {"0": 5}, "_meta": 3}) == {
        "b": {"9": 2, "10": 1},
        "a": {"0": 5},
    }
    assert by_hub({"b": {"0": 1}, "a": 5}) == by_hub([1]) == by_hub(None) == {}


def test_the_namespace_of_an_offset_is_the_one_that_it_names() -> None:
    assert namespace_of(OURS) == "test.net"
    assert [namespace_of(each) for each in ({"0": 5}, {"_namespace": 5}, None, [1])] == [""] * 4
    assert hub_and_namespace(OURS) == "hub 'Orders' in 'test.net'"
    assert hub_and_namespace({"a": {"0": 5}, "b": {"0": 5}}) == "hub 'a', 'b'"
    assert hub_and_namespace({"0": 5}) == "no named event hub"
    assert hub_and_namespace({"logOffset": 3}) == ""


def test_a_checkpoint_of_another_hub_or_source_is_told_in_full() -> None:
    def refused(offset: Any, hub: str = "orders", namespace: str = "test.net") -> str:
        with pytest.raises(ConfigurationError) as failure:
            StreamOffset.from_json(offset, hub, namespace)
        return str(failure.value)

    give = "give a query on another hub its own checkpointLocation"
    assert refused(OURS, "clicks") == (
        "the query's checkpoint belongs to hub 'Orders', and the options name 'clicks'; " + give
    )
    assert refused(OURS, namespace="prod.net") == (
        "the query's checkpoint belongs to namespace 'test.net', and the options name 'prod.net'; "
        + give
    )
    for offset, foreign in (
        ({"0": 5, "1": "6", "2": "7"}, "'1'"),
        ({"logOffset": 3}, "'logOffset'"),
        ({"0": 5, "_lost": {"0": "5"}}, "'_from'"),
    ):
        assert refused(offset) == (
            f"the query's checkpoint was written by another source (it has {foreign}); give the "
            "query a new checkpointLocation, and begin where the old one stopped with "
            "read_spark_checkpoint"
        )


def test_a_hub_is_the_same_unless_both_times_of_creation_are_known_and_differ() -> None:
    stored = StreamOffset("orders", {}, created="10:00")
    assert [stored.is_of(created) for created in ("10:00", "11:00", "")] == [True, False, True]
    assert StreamOffset("orders", {}).is_of("10:00")


def test_what_an_offset_does_not_hold_is_empty() -> None:
    read = StreamOffset.from_json({"0": 5}, "orders", "test.net")
    assert read == StreamOffset("orders", {"0": 5}, {}, {}, False, "test.net", "")
    assert (read.is_initial, read.created) == (False, "")
    assert StreamOffset("orders", {"0": 5}).to_json() == {"0": 5, "_hub": "orders"}
