import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import parse_progress

CONNECTOR = '{"hub":{"2":100,"1":100,"3":100,"0":100}}'
KAFKA = '{"my-hub":{"0":8,"1":0,"10":30,"2":9}}'
OURS = '{"0": 42, "1": 7, "_hub": "Orders", "_initial": {"0": 1}, "_lost": {"1": 3}}'
NUMBERS = st.dictionaries(st.integers(0, 2000).map(str), st.integers(0, 2**63 - 1))


def progress_of(*ends):
    """A whole progress as `query.lastProgress` and `event.progress` carry it."""
    return {
        "id": "f3a7",
        "batchId": 4,
        "sources": [
            {"description": f"S@{at}", "startOffset": "None", "endOffset": end, "metrics": {}}
            for at, end in enumerate(ends)
        ],
        "sink": {"description": "noop"},
    }


@pytest.mark.parametrize(
    ("text", "hub", "last"),
    [
        (CONNECTOR, "hub", {"0": 99, "1": 99, "2": 99, "3": 99}),
        (KAFKA, "my-hub", {"0": 7, "2": 8, "10": 29}),
        (OURS, "Orders", {"0": 41, "1": 6}),
        ('{"0":5}', "any name", {"0": 4}),
    ],
    ids=["connector", "kafka", "ours", "ours without its hub's name"],
)
def test_an_offset_is_read_as_text_and_as_what_it_holds(text, hub, last):
    for form in (text, json.loads(text), json.dumps(json.loads(text), indent=2)):
        found = parse_progress(form, hub)
        assert found == last
        assert list(found) == sorted(found, key=int)


@pytest.mark.parametrize("none", [None, "None", "null", "", " null "])
def test_no_offset_gives_no_checkpoint(none):
    assert parse_progress(none, "hub") == {}
    assert parse_progress(progress_of(none), "hub") == {}
    assert parse_progress(progress_of(none)["sources"][0], "hub") == {}


def test_an_offset_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ConfigurationError, match="not an offset of an event hub"):
        parse_progress('{"hub":' * 100_000, "hub")


def test_next_0_is_no_event_and_gives_no_checkpoint():
    assert parse_progress('{"hub":{"0":0,"1":1}}', "hub") == {"1": 0}


def test_the_hub_is_found_in_any_case():
    assert parse_progress('{"orders":{"0":5}}', "Orders") == {"0": 4}
    assert parse_progress(OURS, "ORDERS") == {"0": 41, "1": 6}


def test_of_two_topics_that_differ_in_case_the_exact_one_is_meant():
    text = '{"orders":{"0":5},"Orders":{"0":9}}'
    assert parse_progress(text, "Orders") == {"0": 8}
    with pytest.raises(ConfigurationError, match="hub 'Orders', 'orders'; pass one of these names"):
        parse_progress(text, "ORDERS")


def test_no_hub_at_all_takes_the_only_one():
    assert parse_progress(KAFKA, None) == {"0": 7, "2": 8, "10": 29}
    assert parse_progress('{"0":5}', None) == {"0": 4}
    with pytest.raises(ConfigurationError, match="pass one of these names"):
        parse_progress('{"a":{"0":5},"b":{"0":5}}', None)


@pytest.mark.parametrize("whole", [dict, json.dumps], ids=["dict", "text"])
@pytest.mark.parametrize("end", [CONNECTOR, json.loads(CONNECTOR)], ids=["text", "nested"])
def test_a_whole_progress_is_read_in_every_form(whole, end):
    assert parse_progress(whole(progress_of(end)), "hub")["3"] == 99


def test_a_progress_of_pyspark_3_is_an_object():
    source = SimpleNamespace(startOffset="None", endOffset=CONNECTOR)
    assert parse_progress(SimpleNamespace(sources=[source]), "hub")["0"] == 99
    assert parse_progress(source, "hub")["0"] == 99


def test_of_several_sources_the_one_that_reads_the_hub_is_found():
    several = progress_of(17, '{"logOffset":3}', KAFKA, CONNECTOR, OURS, "None")
    assert parse_progress(several, "hub")["0"] == 99
    assert parse_progress(several, "my-hub")["0"] == 7
    assert parse_progress(several, "orders")["0"] == 41


def test_a_source_that_names_the_hub_goes_before_one_that_names_none():
    assert parse_progress(progress_of('{"0":5}', CONNECTOR), "hub")["0"] == 99


def test_two_sources_of_one_hub_are_told_apart_by_their_index():
    twice = progress_of('{"hub":{"0":5}}', 3, '{"HUB":{"0":9}}')
    with pytest.raises(ConfigurationError, match=r"sources 0, 2 .*hub 'hub'.*source=0"):
        parse_progress(twice, "hub")
    assert parse_progress(twice, "hub", source=2) == {"0": 8}


@pytest.mark.parametrize("index", [-1, 1])
def test_a_source_that_the_query_does_not_have_is_an_error(index):
    with pytest.raises(ConfigurationError, match=rf"source is {index}; the query has 1"):
        parse_progress(progress_of(CONNECTOR), "hub", source=index)


def test_a_source_that_reads_something_else_is_an_error_and_not_no_checkpoint():
    with pytest.raises(
        ConfigurationError, match=r"no source .*'other'; its 2 sources read hub 'hub'"
    ):
        parse_progress(progress_of(CONNECTOR, 3), "other")
    with pytest.raises(ConfigurationError, match="is of hub 'hub', not of hub 'other'"):
        parse_progress(CONNECTOR, "other")
    with pytest.raises(ConfigurationError, match="not an offset of an event hub"):
        parse_progress(progress_of(3, CONNECTOR), "hub", source=0)


def test_a_source_without_an_offset_may_be_the_one_that_is_meant():
    assert parse_progress(progress_of(3, None), "hub") == {}


@pytest.mark.parametrize(
    "odd",
    [
        *("{", "[1]", "5", '{"hub":[1]}', '{"hub":{"0":-1}}', '{"hub":{"0":"5"}}'),
        *('{"hub":{"0":true}}', '{"hub":{"0":5.0}}', '{"hub":{"a":5}}', '{"0":-5}', {0: "5"}),
        *('{"logOffset":3}', '{"hub":{"0":5},"other":3}'),
    ],
)
def test_what_is_no_offset_of_a_hub_is_an_error(odd):
    with pytest.raises(ConfigurationError, match="not an offset of an event hub"):
        parse_progress(odd, "hub")


@given(NUMBERS, st.sampled_from(["flat", "named", "nested", "whole"]))
def test_next_numbers_come_back_as_the_last_ones(following, form):
    nested = {"Orders": following}
    offset = {
        "flat": following,
        "named": {**following, "_hub": "Orders"},
        "nested": nested,
        "whole": progress_of(json.dumps(nested)),
    }[form]
    last = {partition: number - 1 for partition, number in following.items() if number}
    assert parse_progress(json.dumps(offset), "orders") == last
