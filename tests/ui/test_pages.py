"""What the pages show, and what a rewind changes."""

import gc
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints.cli.records import RecordFiles
from eventhub_checkpoints.operations.reset import START_OF_STREAM
from operators import Site, ehcp
from pages import Visitor, hidden_fields, opened, path_of, target

# The client leaves sockets to the garbage collector when a hub refuses its connections.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def test_groups_have_state_lag_and_trend(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.save("0", 3, "audit")
    text = fresh_visitor.wait_known("/", "LOST")
    assert "orders / $Default" in text
    assert 'aria-label="lag 14, between 14 and 14"' in text
    assert ">14<" in text
    assert 'aria-label="Partitions by owner: nobody 4"' in text


def test_a_group_that_appears_later_is_shown(fresh_visitor: Visitor, fresh_site: Site) -> None:
    assert "audit" not in fresh_visitor.wait_known("/", "LOST")
    fresh_site.save("0", 3, "audit")
    fresh_visitor.wait_known("/", "orders / audit")
    path = path_of(fresh_site.scope._replace(consumer_group="audit"))
    fresh_visitor.wait_known(path, 'data-name="Checkpoint" class="number">3 ')


def test_the_worst_group_comes_first_and_says_what_its_states_mean(fresh_site: Site) -> None:
    for id_ in "012":
        fresh_site.save(id_, 19, "$first")
    with opened() as pages:
        visitor = Visitor(pages)
        text = visitor.wait_known("/", "orders / $first")
        assert text.index("orders / $Default") < text.index("orders / $first")
        assert ", at most 14<" in text
        text = visitor.text(path_of(fresh_site.scope))
    assert re.search(">LOST</span></dt><dd>Events expired before they were processed.<", text)
    assert f'href="{path_of(fresh_site.scope, "findings")}">Find what is wrong<' in text


def test_all_groups_of_the_hub_are_shown_and_others_by_name(fresh_site: Site) -> None:
    fresh_site.save("0", 3, "audit")
    elsewhere = fresh_site.scope._replace(eventhub_name="payments")
    row = {"partition_id": "0", "sequence_number": 1, "offset": "1"}
    fresh_site.store.update_checkpoint({**elsewhere.as_dict(), **row})
    with opened() as pages:
        text = Visitor(pages).wait_known("/", "LOST")
    assert "orders / audit" in text
    assert "Groups of other hubs" in text
    assert "payments / $Default" in text
    assert "orders / payments" not in text


def test_a_named_group_is_the_only_one(site: Site) -> None:
    with opened(replace(target(), group="audit")) as pages:
        text = Visitor(pages).wait_known("/", ">50<")
    assert "orders / audit" in text
    assert "$default" not in text.lower()


def test_a_group_has_a_lane_for_each_partition(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.own("0", "2")
    path = path_of(fresh_site.scope)
    text = fresh_visitor.wait_known(path, "consumer-7")
    assert text.count('<td role="cell" class="lane">') == 4
    assert [text.count(f'/partitions/{id_}"') for id_ in "0123"] == [1, 1, 1, 1]
    assert text.count('<tr role="row" class="c0">') == 2
    assert text.count('<tr role="row" class="nobody">') == 2
    assert "LOST" in text
    assert "UNOWNED" in text
    assert text.index('/partitions/0"') < text.index('/partitions/1"')


def test_members_are_listed_with_what_they_hold(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.own("0", "1", "2")
    text = fresh_visitor.wait_known(path_of(fresh_site.scope, "members"), "consumer-7")
    member, nobody = re.findall('<tr role="row">(.*?)</tr>', text, re.DOTALL)[1:]
    for words in (
        'aria-hidden="true">A</span>',
        ">3 <small>75.0 %<",
        ">0-2<",
        ">14 <small>100.0 %<",
    ):
        assert words in member
    assert 'href="' + path_of(fresh_site.scope) + '?owner=consumer-7"' in member
    for words in (">nobody<", ">1 <small>25.0 %<", ">3</span>", ">0 <small>0.0 %<"):
        assert words in nobody


def test_lanes_can_be_ordered_and_filtered(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.own("0", "1", "2", "3")
    fresh_site.save("0", 18)
    path = path_of(fresh_site.scope)
    text = fresh_visitor.wait_known(f"{path}?sort=lag", '"state ok"')
    assert (
        text.index('/partitions/1"') < text.index('/partitions/0"') < text.index('/partitions/2"')
    )
    fresh_site.save("0", 19)
    fresh_visitor.wait_known(f"{path}?sort=state", "<dt>Lag</dt><dd>10</dd>")
    text = fresh_visitor.text(f"{path}?sort=state")
    assert text.index('/partitions/1"') < text.index('/partitions/0"')
    text = fresh_visitor.text(f"{path}?show=attention")
    assert '/partitions/1"' in text
    assert '/partitions/2"' not in text
    assert fresh_visitor.text(f"{path}?sort=nonsense&show=nonsense").count("/partitions/") == 4


def test_the_owner_whose_lanes_are_shown_has_its_badge(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    fresh_site.own("2")
    path = path_of(fresh_site.scope)
    fresh_visitor.wait_known(path, '"state ok"')

    def chosen(query: str) -> str:
        text = fresh_visitor.text(f"{path}?{query}")
        return text.partition('<p class="choice">Of ')[2].partition("<a ")[0]

    badge = '<span class="badge c0" aria-hidden="true">A</span>'
    name = '<span class="id" title="consumer-7">consumer-7</span>'
    assert chosen("owner=consumer-7") == badge + name
    # Also where none of its lanes is left to show.
    query = "owner=consumer-7&show=attention"
    assert "/partitions/" not in fresh_visitor.text(f"{path}?{query}")
    assert chosen(query) == badge + name
    assert chosen("owner=gone") == name.replace("consumer-7", "gone")
    nobody = '<span class="badge nobody" aria-hidden="true">-</span>'
    assert chosen("owner=") == nobody + '<span class="quiet">nobody</span>'


def test_the_script_gets_only_the_part_that_changes(visitor: Visitor, site: Site) -> None:
    for path in ("/", path_of(site.scope), path_of(site.scope, "partitions", "0")):
        visitor.wait_known("/", "LOST")
        part = visitor.client.get(path, headers={"X-Part": "live"}).text
        assert part.startswith('<div id="live" data-get=')
        assert "<html" not in part
        assert "</div>" in part


def test_refreshing_can_be_paused(visitor: Visitor) -> None:
    assert "data-every" in visitor.text("/")
    text = visitor.text("/?live=off")
    assert "data-every" not in text
    assert "Refresh again" in text


def test_a_partition_shows_what_is_stored(visitor: Visitor, site: Site) -> None:
    visitor.wait_known("/", "LOST")
    text = visitor.text(path_of(site.scope, "partitions", "1"))
    assert f"<dd>{site.offset(4)}</dd>" in text
    assert "<dt>First retained event</dt><dd>10</dd>" in text
    assert "<dt>Lost</dt><dd>5</dd>" in text
    assert "none yet" in visitor.text(path_of(site.scope, "partitions", "3"))


def test_events_around_the_checkpoint_are_shown(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.hub.publish("orders", "2", [b"<b>late</b>", b"\xff\xfe"])
    fresh_visitor.wait_known("/", "LOST")
    path = path_of(fresh_site.scope, "partitions", "2", "events")
    text = fresh_visitor.text(f"{path}?live=off")
    assert numbers_in(text) == [15, 16, 17, 18, 19, 20, 21]
    assert re.search('"sequence">19 <span [^>]*>CHECKPOINT<', text)
    assert re.search('"sequence">20 <span [^>]*>READ NEXT<', text)
    assert "&lt;b&gt;late&lt;/b&gt;" in text
    assert "fffe" in text
    assert f'href="{path}?first=0&live=off">Previous<' in html.unescape(text)
    assert ">Next<" not in text


def numbers_in(text: str) -> list[int]:
    """Return the numbers of the events on a page."""
    return [int(number) for number in re.findall(r'<details id="event-(\d+)"', text)]


@pytest.mark.parametrize(
    ("partition_id", "query", "numbers", "words"),
    [
        # A partition whose events after the checkpoint have expired.
        ("1", "", [*range(10, 20)], "5 events after the checkpoint, 4, have expired"),
        ("1", "at=16", [*range(11, 20)], "Previous"),
        ("1", "at=9", [], "event 9 of partition 1"),
        ("0", "at=2", [*range(17)], "Next"),
        ("0", "at=20", [*range(15, 20)], "Previous"),
        ("0", "at=21", [], "its newest one is 19"),
        ("0", "at=-1", [], "expected digits"),
        ("0", "at=" + "9" * 30, [], "expected digits"),
        ("0", "first=7", [*range(7, 20)], "7 to 19 of 0 to 19"),
        ("0", "first=x", [], "expected digits"),
        ("0", "by=time&at=2000-01-01", [*range(15)], "Next"),
        ("0", "by=ago&at=P1D", [*range(15)], "Next"),
        ("0", "by=time&at=yesterday", [], "expected a time in ISO 8601"),
        ("0", "by=nonsense&at=1", [], "expected number, offset, time, ago"),
        ("3", "", [], "is empty: no event was ever sent to it"),
    ],
)
def test_events_at_a_position(
    visitor: Visitor, site: Site, partition_id: str, query: str, numbers: list[int], words: str
) -> None:
    visitor.wait_known("/", "LOST")
    path = path_of(site.scope, "partitions", partition_id, "events")
    text = visitor.text(f"{path}?live=off&{query}")
    assert numbers_in(text) == numbers
    assert words in text


def test_the_event_at_an_offset_is_found(visitor: Visitor, site: Site) -> None:
    visitor.wait_known("/", "LOST")
    path = path_of(site.scope, "partitions", "0", "events")
    text = visitor.text(f"{path}?live=off&by=offset&at={site.offset(9)}")
    assert numbers_in(text) == [*range(4, 20)]


def test_a_search_says_what_it_has_read_and_goes_on(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    bodies = [b'{"order": %d}' % number for number in range(60)]
    fresh_site.hub.publish("orders", "3", bodies)
    fresh_visitor.wait_known(path_of(fresh_site.scope), ">60<")
    path = path_of(fresh_site.scope, "partitions", "3", "events")
    text = fresh_visitor.text(f"{path}?live=off&search=on&text=ORDER")
    assert numbers_in(text) == [*range(50)]
    assert "50 events match. Read 50 events, 0 to 49, " in text
    [rest] = re.findall(r'href="([^"]+)">Search on from 50<', html.unescape(text))
    text = fresh_visitor.text(rest)
    assert numbers_in(text) == [*range(50, 60)]
    assert "up to the newest event" in text
    text = fresh_visitor.text(f"{path}?live=off&search=on&text=absent&first=10&most=1000")
    assert "no events match. Read 50 events, 10 to 59, " in text
    assert "Nothing matched in what was read" in text
    assert "expected digits" in fresh_visitor.text(f"{path}?live=off&search=on&first=x")


def test_what_was_searched_for_is_marked(
    fresh_visitor: Visitor, fresh_site: Site, marked_event: str
) -> None:
    fresh_visitor.wait_known("/", "LOST")
    for rest in (("partitions", marked_event, "events"), ("events",)):
        path = path_of(fresh_site.scope, *rest)
        text = fresh_visitor.text(f"{path}?live=off&search=on&text=<B>acme")
        # In the line, in the tree and in the text of the body.
        assert text.count("<mark>&lt;b&gt;ACME</mark>&lt;/b&gt;") == 3
        assert "<b>ACME" not in text
        assert re.search('<details class="json" id="[^"]+-3" open><summary>', text)
        text = fresh_visitor.text(f"{path}?live=off&search=on&key=MER&property=kind=ORD")
        assert text.count("custo<mark>mer</mark>-7") == 2
        assert "<dt><mark>Kind</mark></dt><dd><mark>ord</mark>er</dd>" in text
        assert "<dt>other</dt><dd>order</dd>" in text
        text = fresh_visitor.text(f"{path}?live=off&search=on&property==ord")
        assert text.count("<mark>ord</mark>er</dd>") == 2
        text = fresh_visitor.text(f'{path}?live=off&search=on&text="order": 7')
        assert re.search('<details class="raw" id="[^"]+" open>', text)
        assert "<mark>&#34;order&#34;: 7</mark>" in text
    path = path_of(fresh_site.scope, "partitions", marked_event, "events")
    assert "<mark>" not in fresh_visitor.text(f"{path}?live=off")


def test_hexadecimal_digits_are_found_as_text_and_not_marked(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    fresh_site.hub.publish("orders", "3", [b"\xff7", b"\xffx"])
    fresh_visitor.wait_known(path_of(fresh_site.scope), ">2<")
    for rest in (("partitions", "3", "events"), ("events",)):
        path = path_of(fresh_site.scope, *rest)
        text = fresh_visitor.text(f"{path}?live=off&search=on&text=7&since=1h")
        assert ">ff37<" in text
        assert ">ff78<" not in text
        assert "<mark>" not in text
        text = fresh_visitor.text(f"{path}?live=off&search=on&text=absent&since=1h")
        assert "a body that is not UTF-8 is searched where it is readable" in text


@pytest.fixture
def marked_event(fresh_site: Site) -> str:
    """Partition of an event whose key, properties and body can be searched for."""

    def newest() -> dict[str, int]:
        ends = {id_: fresh_site.hub.partition_properties("orders", id_) for id_ in "0123"}
        return {id_: each.last_sequence_number for id_, each in ends.items()}

    before = newest()
    body = '{"order": 7, "lines": [{"customer": "<b>ACME</b>"}]}'
    with EventHubProducerClient.from_connection_string(fresh_site.connection_string) as producer:
        batch = producer.create_batch(partition_key="customer-7")
        event = EventData(body)
        event.properties = {"Kind": "order", "other": "order"}
        batch.add(event)
        producer.send_batch(batch)
    [partition_id] = [id_ for id_, number in newest().items() if number != before[id_]]
    return partition_id


def test_all_partitions_are_searched(fresh_visitor: Visitor, fresh_site: Site) -> None:
    fresh_site.hub.publish("orders", "3", [b'{"order": 7}', b"<script>alert(7)</script>"])
    fresh_site.hub.publish("orders", "0", [b'{"order": 8}'])
    fresh_visitor.wait_known(path_of(fresh_site.scope), ">2<")
    path = path_of(fresh_site.scope, "events")
    text = fresh_visitor.text(path)
    assert f'<a href="{path_of(fresh_site.scope, "partitions", "3", "events")}">' in text
    text = fresh_visitor.text(f"{path}?live=off&search=on&text=ORDER")
    assert re.findall('<details id="event-([0-9-]+)"', text) == ["0-20", "3-0"]
    assert "2 events match. Read 53 events of 4 partitions, " in text
    around = path_of(fresh_site.scope, "partitions", "0", "events")
    assert f'href="{around}?by=number&at=20"' in html.unescape(text)
    text = fresh_visitor.text(f"{path}?live=off&search=on&text=alert&since=1h")
    assert "<script>alert" not in text
    assert "1 event matches" in text
    wrong = fresh_visitor.text(f"{path}?live=off&search=on&since=yesterday")
    assert "expected a time" in wrong
    assert "or a duration with its unit, such as 30s, 0.5m or PT30S" in wrong
    part = fresh_visitor.client.get(f"{path}?search=on&key=absent", headers={"X-Part": "later"})
    assert "Nothing matched in what was read" in part.text


def test_a_search_of_all_partitions_names_those_it_has_not_finished(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    fresh_site.hub.publish("orders", "3", [b'{"order": 7}'] * 300)
    fresh_visitor.wait_known(path_of(fresh_site.scope), ">300<")
    query = "live=off&search=on&text=order&property=&most=1000&since=P1D"
    text = fresh_visitor.text(f"{path_of(fresh_site.scope, 'events')}?{query}")
    assert "50 events match" in text
    [link] = re.findall('<a href="([^"]+)">Partition 3 from 50<', html.unescape(text))
    assert link.endswith("/partitions/3/events?search=on&text=order&first=50")
    assert numbers_in(fresh_visitor.text(f"{link}&live=off")) == [*range(50, 100)]


def test_the_live_tail_shows_the_newest_event_first_and_answers_once(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    fresh_visitor.wait_known("/", "LOST")
    path = path_of(fresh_site.scope, "partitions", "0", "events")
    assert numbers_in(fresh_visitor.text(f"{path}?tail=on&live=off")) == [*range(19, -1, -1)]
    part = fresh_visitor.client.get(f"{path}?tail=on", headers={"X-Part": "later"})
    [again] = re.findall('data-get="([^"]+)"', html.unescape(part.text))
    assert again == f"{path}?tail=on&known=19"
    same = fresh_visitor.client.get(again, headers={"X-Part": "later"})
    assert (same.status_code, same.text) == (204, "")
    fresh_site.hub.publish("orders", "0", [b"new"])
    assert numbers_in(fresh_visitor.client.get(again, headers={"X-Part": "later"}).text)[0] == 20
    path = path_of(fresh_site.scope, "partitions", "3", "events")
    assert "Events appear here" in fresh_visitor.text(f"{path}?tail=on&live=off")


def test_findings_name_what_mends_them_and_nothing_is_written(visitor: Visitor, site: Site) -> None:
    before = site.rows(), site.owners()
    text = visitor.text(f"{path_of(site.scope, 'findings')}?live=off")
    assert "checkpoint_expired" in text
    command = "ehcp reset --to-earliest --partitions 1"
    assert re.search(f'<code id="(command-[0-9]+)">{command}</code><button [^>]*data-copy="', text)
    assert "nothing was written" in text
    assert (site.rows(), site.owners()) == before


@pytest.mark.parametrize("rest", [("partitions", "0", "events"), ("findings",)])
def test_what_takes_long_is_requested_by_the_page(
    visitor: Visitor, site: Site, rest: tuple[str, ...]
) -> None:
    visitor.wait_known("/", "LOST")
    path = path_of(site.scope, *rest)
    text = visitor.text(path)
    assert f'data-get="{path}" aria-busy="true"' in text
    assert f'<a href="{path}?live=off">' in text
    assert "<article" not in text
    assert "<details" not in text
    part = visitor.client.get(path, headers={"X-Part": "later"}).text
    assert part.startswith('<div id="later">')
    shown = "<details" if rest[-1] == "events" else "<article"
    assert shown in part
    assert shown in visitor.text(f"{path}?live=off")


def test_a_partition_shows_its_history_where_the_store_keeps_it(
    visitor: Visitor, site: Site
) -> None:
    visitor.wait_known("/", "LOST")
    text = visitor.text(path_of(site.scope, "partitions", "1"))
    [row] = site.store.list_history(*site.scope, partition_id="1")[:1]
    history = text.partition("<h2>Earlier checkpoints</h2>")[2]
    assert f'data-name="Kind">{row["kind"]}<' in history
    assert "is what a rewind has overwritten" in history
    assert f'data-name="Offset" class="number">{site.offset(4)}<' in history


@pytest.mark.parametrize(
    "rest",
    [
        "/groups/a/b/c",
        "/groups/a/b/c/partitions/0",
        "/groups/a/b/c/partitions/0/events",
        "/groups/a/b/c/findings",
        "/groups/a/b/c/rewind",
        "/groups/a/b/c/members",
        "/groups/a/b/c/events",
        "/groups/a/b/c/history",
        "/groups/a/b/c/undo",
        "/groups/a/b/c/dead-letters",
        "/nothing",
        "/static/",
    ],
)
def test_what_does_not_exist_is_not_found(visitor: Visitor, rest: str) -> None:
    assert "This did not work" in visitor.text(rest, 404)


def test_a_partition_that_the_hub_does_not_have_is_not_found(visitor: Visitor, site: Site) -> None:
    visitor.wait_known("/", "LOST")
    for rest in ((), ("events",)):
        path = path_of(site.scope, "partitions", "9", *rest)
        assert "no such partition" in visitor.text(path, 404)


def test_a_hub_that_does_not_answer_makes_the_lag_unknown(fresh_site: Site) -> None:
    with opened(replace(target(), timeout=1.0)) as pages:
        visitor = Visitor(pages)
        visitor.wait_known("/", "LOST")
        fresh_site.hub.stop()
        text = visitor.wait_known("/", "Unknown now")
        assert "UNKNOWN" in text
        group = path_of(fresh_site.scope)
        assert "Unknown now" in visitor.text(group)
        assert "cannot be reached" in visitor.text(f"{group}/partitions/0/events?live=off")
        assert "hub_unreachable" in visitor.text(f"{group}/findings?live=off")
    gc.collect()


def test_a_preview_changes_nothing(operator: Visitor, site: Site) -> None:
    before = site.rows()
    text = operator.text(f"{path_of(site.scope, 'rewind')}?to=earliest&partitions=0,1")
    assert "Nothing was changed" in text
    assert json.loads(hidden_fields(text)["numbers"]) == {"0": 0, "1": 10}
    assert "Change 2 partitions" in text
    assert site.rows() == before


def test_a_rewind_stores_what_was_previewed_and_can_be_undone(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    before = fresh_site.rows()
    path = path_of(fresh_site.scope, "rewind")
    fields = hidden_fields(fresh_operator.text(f"{path}?to=latest&partitions=0,1"))
    last = 19, fresh_site.offset(19)
    # An event that arrives after the preview is read.
    fresh_site.hub.publish("orders", "0", [b"event"])
    answer = fresh_operator.client.post(
        path, data=fields, headers={"Origin": str(fresh_operator.client.base_url)}
    )
    assert answer.status_code == 200
    assert "Changed 2 partitions" in answer.text
    assert fresh_site.rows() == {**before, "0": last, "1": last}
    assert next(RecordFiles().records(fresh_site.scope)).command == "ui reset --to latest"
    assert ehcp("undo", "--execute").exit_code == 0
    assert fresh_site.rows() == before


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("to=sequence_number&value=7", 7),
        ("to=shift&value=-10", 6),
        ("to=datetime&value=2000-01-01", 0),
        ("to=duration&value=P1D", 0),
        ("to=earliest", 0),
        ("to=latest", 20),
    ],
)
def test_every_goal_is_previewed(operator: Visitor, site: Site, query: str, number: int) -> None:
    text = operator.text(f"{path_of(site.scope, 'rewind')}?{query}&partitions=0")
    assert json.loads(hidden_fields(text)["numbers"]) == {"0": number}


def test_the_first_retained_event_is_stored_as_the_start_of_the_stream(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    path = path_of(fresh_site.scope, "rewind")
    fields = hidden_fields(fresh_operator.text(f"{path}?to=earliest&partitions=0"))
    assert "Changed 1 partition of" in fresh_operator.client.post(path, data=fields).text
    assert fresh_site.rows()["0"] == (-1, START_OF_STREAM)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("to=nonsense", "the goal is"),
        ("to=sequence_number&value=x", "expected digits"),
        ("to=sequence_number&value=-1", "expected 0 or more"),
        ("to=shift&value=", "expected digits"),
        ("to=datetime&value=yesterday", "expected a time in ISO 8601"),
        ("to=duration&value=2", "expected a duration"),
        ("to=earliest&partitions=9", "has no partition"),
        ("to=earliest&partitions=x", "partition"),
        ("to=earliest&partitions=0+1", "expected decimal numbers"),
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


def test_an_active_group_is_previewed_but_not_changed(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    before = fresh_site.rows()
    path = path_of(fresh_site.scope, "rewind")
    fields = hidden_fields(fresh_operator.text(f"{path}?to=earliest&partitions=0"))
    fresh_site.own("0")
    answer = fresh_operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "is active: " in answer.text
    text = fresh_operator.text(f"{path}?to=earliest")
    assert "ehcp reset --force" in text
    assert hidden_fields(text) == {}
    assert fresh_site.rows() == before


def test_a_position_that_moved_since_the_preview_is_not_overwritten(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    path = path_of(fresh_site.scope, "rewind")
    fields = hidden_fields(fresh_operator.text(f"{path}?to=earliest&partitions=0"))
    fresh_site.save("0", 16)
    answer = fresh_operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "have changed since the preview" in answer.text
    assert fresh_site.rows()["0"][0] == 16


@pytest.mark.parametrize("numbers", ["", "[]", "{}", '{"0": "1"}', '{"0": true}', '{"x": 1}'])
def test_a_form_of_another_shape_is_refused(operator: Visitor, site: Site, numbers: str) -> None:
    path = path_of(site.scope, "rewind")
    fields = hidden_fields(operator.text(f"{path}?to=earliest"))
    answer = operator.client.post(path, data={**fields, "numbers": numbers})
    assert answer.status_code == 409
    assert "must have the positions of a preview" in answer.text


@pytest.fixture
def named_in_markup(fresh_site: Site) -> Iterator[Visitor]:
    rows = [
        {**fresh_site.scope.as_dict(), "partition_id": "0", "owner_id": "<script>alert(1)</script>"}
    ]
    fresh_site.store.claim_ownership(rows)
    with opened() as pages:
        yield Visitor(pages)


def test_names_are_escaped(named_in_markup: Visitor, fresh_site: Site) -> None:
    text = named_in_markup.wait_known(path_of(fresh_site.scope), "alert(1)")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_viewers_do_not_cause_polls(fresh_site: Site) -> None:
    with opened(interval=600) as pages:
        visitor = Visitor(pages)
        first = visitor.wait_known("/", "LOST")
        fresh_site.save("0", 19)
        assert {visitor.text("/") for _ in range(20)} == {first}
