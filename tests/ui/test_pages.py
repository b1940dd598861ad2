"""What the pages show, and what a rewind changes."""

import gc
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from eventhub_checkpoints.cli.records import records
from eventhub_checkpoints.operations.reset import START_OF_STREAM
from operators import Site, ehcp
from pages import Visitor, hidden_fields, opened, path_of, target

# The client leaves sockets to the garbage collector when a hub refuses its connections.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def test_groups_have_state_lag_and_trend(visitor: Visitor, site: Site) -> None:
    site.save("0", 3, "audit")
    text = visitor.wait_known("/", "LOST")
    assert "orders / $default" in text
    assert 'aria-label="lag 14, between 14 and 14"' in text
    assert ">14<" in text
    # Groups are found at the start.
    assert "audit" not in text


def test_all_groups_of_the_hub_are_shown_and_others_by_name(site: Site) -> None:
    site.save("0", 3, "audit")
    elsewhere = site.scope._replace(eventhub_name="payments")
    row = {"partition_id": "0", "sequence_number": 1, "offset": "1"}
    site.store.update_checkpoint({**elsewhere.as_dict(), **row})
    with opened() as pages:
        text = Visitor(pages).wait_known("/", "LOST")
    assert "orders / audit" in text
    assert "Groups of other hubs" in text
    assert "payments / $default" in text
    assert "orders / payments" not in text


def test_a_named_group_is_the_only_one(site: Site) -> None:
    with opened(replace(target(), group="audit")) as pages:
        text = Visitor(pages).wait_known("/", ">50<")
    assert "orders / audit" in text
    assert "$default" not in text


def test_a_group_has_a_lane_for_each_partition(visitor: Visitor, site: Site) -> None:
    site.own("0", "2")
    path = path_of(site.scope)
    text = visitor.wait_known(path, "consumer-7")
    assert text.count('<svg class="trend"') == 1 + 4
    assert [text.count(f'id="p-{id_}"') for id_ in "0123"] == [1, 1, 1, 1]
    assert "LOST" in text
    assert "UNOWNED" in text
    assert text.index('id="p-0"') < text.index('id="p-1"')


def test_lanes_can_be_ordered_and_filtered(visitor: Visitor, site: Site) -> None:
    site.own("0", "1", "2", "3")
    site.save("0", 18)
    path = path_of(site.scope)
    text = visitor.wait_known(f"{path}?sort=lag", '"state ok"')
    assert text.index('id="p-1"') < text.index('id="p-0"') < text.index('id="p-2"')
    site.save("0", 19)
    visitor.wait_known(f"{path}?sort=state", 'lag 0, between 0 and 1"')
    text = visitor.text(f"{path}?sort=state")
    assert text.index('id="p-1"') < text.index('id="p-0"')
    text = visitor.text(f"{path}?show=attention")
    assert 'id="p-1"' in text
    assert 'id="p-2"' not in text
    assert visitor.text(f"{path}?sort=nonsense&show=nonsense").count('id="p-') == 4


def test_htmx_gets_only_the_part_that_changes(visitor: Visitor, site: Site) -> None:
    for path in ("/", path_of(site.scope), path_of(site.scope, "partitions", "0")):
        visitor.wait_known("/", "LOST")
        part = visitor.client.get(path, headers={"HX-Request": "true"}).text
        assert part.startswith('<div id="live" hx-get=')
        assert "<html" not in part
        assert "</div>" in part


def test_refreshing_can_be_paused(visitor: Visitor) -> None:
    assert "hx-trigger" in visitor.text("/")
    text = visitor.text("/?live=off")
    assert "hx-trigger" not in text
    assert "Refresh again" in text


def test_a_partition_shows_what_is_stored(visitor: Visitor, site: Site) -> None:
    visitor.wait_known("/", "LOST")
    text = visitor.text(path_of(site.scope, "partitions", "1"))
    assert f"<dd>{site.offset(4)}</dd>" in text
    assert "<dt>First retained event</dt><dd>10</dd>" in text
    assert "<dt>Lost</dt><dd>5</dd>" in text
    assert "none yet" in visitor.text(path_of(site.scope, "partitions", "3"))


def test_a_partition_shows_its_history_where_the_store_keeps_it(
    visitor: Visitor, site: Site
) -> None:
    visitor.wait_known("/", "LOST")
    text = visitor.text(path_of(site.scope, "partitions", "1"))
    [row] = site.store.list_history(*site.scope, partition_id="1")[:1]
    history = text.partition("<h2>History</h2>")[2]
    assert f'data-name="Kind">{row["kind"]}<' in history
    assert f'data-name="Offset">{site.offset(4)}<' in history


@pytest.mark.parametrize(
    "rest",
    ["/groups/a/b/c", "/groups/a/b/c/partitions/0", "/groups/a/b/c/rewind", "/nothing", "/static/"],
)
def test_what_does_not_exist_is_not_found(visitor: Visitor, rest: str) -> None:
    assert "This did not work" in visitor.text(rest, 404)


def test_a_partition_that_the_hub_does_not_have_is_not_found(visitor: Visitor, site: Site) -> None:
    visitor.wait_known("/", "LOST")
    assert "no such partition" in visitor.text(path_of(site.scope, "partitions", "9"), 404)


def test_a_hub_that_does_not_answer_makes_the_lag_unknown(site: Site) -> None:
    with opened() as pages:
        visitor = Visitor(pages)
        visitor.wait_known("/", "LOST")
        site.hub.stop()
        text = visitor.wait_known("/", "Unknown now")
        assert "UNKNOWN" in text
        assert "Unknown now" in visitor.text(path_of(site.scope))
    gc.collect()


def test_a_preview_changes_nothing(operator: Visitor, site: Site) -> None:
    before = site.rows()
    text = operator.text(f"{path_of(site.scope, 'rewind')}?to=earliest&partitions=0,1")
    assert "Nothing was changed" in text
    assert json.loads(hidden_fields(text)["numbers"]) == {"0": 0, "1": 10}
    assert "Change 2 partitions" in text
    assert site.rows() == before


def test_a_rewind_stores_what_was_previewed_and_can_be_undone(
    operator: Visitor, site: Site
) -> None:
    before = site.rows()
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?to=latest&partitions=0,1"))
    last = 19, site.offset(19)
    # An event that arrives after the preview is read.
    site.hub.publish("orders", "0", [b"event"])
    answer = operator.client.post(
        path, data=fields, headers={"Origin": str(operator.client.base_url)}
    )
    assert answer.status_code == 200
    assert "Changed 2 partitions" in answer.text
    assert site.rows() == {**before, "0": last, "1": last}
    assert next(records(site.scope)).command == "ui reset --to latest"
    assert ehcp("undo", "--execute").exit_code == 0
    assert site.rows() == before


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("to=sequence_number&value=7", 6),
        ("to=shift&value=-10", 5),
        ("to=datetime&value=2000-01-01", -1),
        ("to=duration&value=P1D", -1),
        ("to=earliest", -1),
    ],
)
def test_every_goal_works(operator: Visitor, site: Site, query: str, number: int) -> None:
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?{query}&partitions=0"))
    assert "Changed 1 partitions" in operator.client.post(path, data=fields).text
    offset = START_OF_STREAM if number < 0 else site.offset(number)
    assert site.rows()["0"] == (number, offset)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("to=nonsense", "the goal is"),
        ("to=sequence_number&value=x", "expected digits"),
        ("to=sequence_number&value=-1", "expected 0 or more"),
        ("to=shift&value=", "expected digits"),
        ("to=datetime&value=yesterday", "expected ISO 8601"),
        ("to=duration&value=2h", "expected ISO 8601"),
        ("to=earliest&partitions=9", "has no partition"),
        ("to=earliest&partitions=x", "partition"),
        ("to=shift&value=1&partitions=3", "has no checkpoint"),
    ],
)
def test_a_mistake_in_the_form_is_one_sentence(
    operator: Visitor, site: Site, query: str, message: str
) -> None:
    text = operator.text(f"{path_of(site.scope, 'rewind')}?{query}", 409)
    alert = text.partition('role="alert">')[2].partition("<")[0]
    assert message in alert
    assert "Preview</h2>" not in text


def test_an_active_group_is_previewed_but_not_changed(operator: Visitor, site: Site) -> None:
    before = site.rows()
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?to=earliest&partitions=0"))
    site.own("0")
    answer = operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "is active: " in answer.text
    text = operator.text(f"{path}?to=earliest")
    assert "ehcp reset --force" in text
    assert hidden_fields(text) == {}
    assert site.rows() == before


def test_a_position_that_moved_since_the_preview_is_not_overwritten(
    operator: Visitor, site: Site
) -> None:
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?to=earliest&partitions=0"))
    site.save("0", 16)
    answer = operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "have changed since the preview" in answer.text
    assert site.rows()["0"][0] == 16


@pytest.mark.parametrize("numbers", ["", "[]", "{}", '{"0": "1"}', '{"0": true}', '{"x": 1}'])
def test_a_form_of_another_shape_is_refused(operator: Visitor, site: Site, numbers: str) -> None:
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?to=earliest"))
    answer = operator.client.post(path, data={**fields, "numbers": numbers})
    assert answer.status_code == 409
    assert "not that of a preview" in answer.text


@pytest.fixture
def named_in_markup(site: Site) -> Iterator[Visitor]:
    rows = [{**site.scope.as_dict(), "partition_id": "0", "owner_id": "<script>alert(1)</script>"}]
    site.store.claim_ownership(rows)
    with opened() as pages:
        yield Visitor(pages)


def test_names_are_escaped(named_in_markup: Visitor, site: Site) -> None:
    text = named_in_markup.wait_known(path_of(site.scope), "alert(1)")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_viewers_do_not_cause_polls(site: Site) -> None:
    with opened(interval=600) as pages:
        visitor = Visitor(pages)
        first = visitor.wait_known("/", "LOST")
        site.save("0", 19)
        assert {visitor.text("/") for _ in range(20)} == {first}
