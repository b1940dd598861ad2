"""The page in a real Chromium: keyboard, colour schemes, a phone's width, refreshing, a rewind.

The tests share one browser, and one group unless they change it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from browser import PHONE, WIDE, Window, served
from eventhub_checkpoints.ui.pages import Pages
from fleet import Fleet
from operators import Site
from pages import Visitor, opened, path_of

pytestmark = [pytest.mark.long, pytest.mark.server]

LONG_NAME = "consumer-with-a-long-name-" + "0123456789abcdef" * 6
FIRST_BODY = 20
BODIES: list[str | bytes] = [
    '{"order": 1042, "customer": "ACME", "lines": [{"sku": "A-7", "count": 2}]}',
    '{"order": 1043, "customer": "ACME", "lines": [{"sku": "B-1", "count": 1}]}',
    '{"order": 1044, "customer": "<script>window.x = 1</script>"}',
    b"\x80\x81" * 2_000,
    "long " * 2_000,
    "\u202e\x00",
]
"""Bodies of the events of partition 0 from `FIRST_BODY` on."""


@contextmanager
def window(chromium: Any, site: Site, pages: Pages, **options: Any) -> Iterator[Window]:
    """Open a window on pages that the first poll has reached."""
    with served(pages) as home:
        context = chromium.new_context(**{"viewport": WIDE, **options})
        try:
            made = Window(context.new_page(), site, home)
            made.page.locator("[data-name=Lost]", has_text="5").wait_for()
            yield made
            assert made.problems == []
        finally:
            context.close()


@pytest.fixture(scope="module")
def pages(site: Site, letters: str) -> Iterator[Pages]:
    """Pages of a group with members, a trend, and bodies of all kinds, which no test changes."""
    site.own("0", "1", "2")
    with EventHubProducerClient.from_connection_string(site.connection_string) as producer:
        batch = producer.create_batch(partition_id="0")
        for number, body in enumerate(BODIES):
            event = EventData(body)
            event.properties = {"kind": "order", "trace": f"{number + 1:016x}"}
            batch.add(event)
        producer.send_batch(batch)
    rounds, interval = 3, 0.1
    with opened(allow_writes=True, interval=interval, dead_letters=letters) as polled:
        visitor = Visitor(polled)
        lag = 0
        for number in range(1, rounds + 1):
            size = 7 + number % 5
            lag += size
            site.hub.publish("orders", "2", [b"event"] * size)
            site.save("0", (FIRST_BODY + 1) * number // rounds)
            visitor.wait_known(path_of(site.scope), f">{lag}<")
        yield polled


@pytest.fixture
def shared(chromium: Any, site: Site, pages: Pages) -> Iterator[Window]:
    with window(chromium, site, pages) as made:
        yield made


PAGES: list[tuple[str, tuple[str, ...], str]] = [
    ("group", (), ""),
    ("members", ("members",), ""),
    ("group events", ("events",), "?search=on&text=acme&most=1000"),
    ("no search", ("events",), ""),
    ("partition", ("partitions", "0"), ""),
    ("events", ("partitions", "0", "events"), f"?by=number&at={FIRST_BODY}"),
    ("checkpoint", ("partitions", "0", "events"), ""),
    ("search", ("partitions", "0", "events"), "?search=on&text=acme"),
    ("tail", ("partitions", "0", "events"), "?tail=on"),
    ("expired", ("partitions", "1", "events"), ""),
    ("empty", ("partitions", "3", "events"), "?at=99"),
    ("findings", ("findings",), ""),
    ("refused", ("rewind",), "?to=earliest"),
    ("history", ("history",), ""),
    ("dead-letters", ("dead-letters",), ""),
    ("failure", ("partitions", "99"), ""),
]
"""Names, paths and queries."""


def test_every_page_is_readable_in_both_colour_schemes_and_on_a_phone(
    shared: Window,
) -> None:
    shared.check("overview")
    for name, rest, query in PAGES:
        shared.go(*rest, query=query)
        shared.ready()
        shared.check(name)
        if name == "group":
            for word in ("consumer-7", "LOST"):
                assert shared.page.locator("td", has_text=word).first.is_visible()
    assert len(shared.problems) == 1  # the page that does not exist
    shared.problems.clear()


def test_the_token_leaves_the_address_bar(shared: Window) -> None:
    assert shared.page.url == f"{shared.base}/"
    assert shared.page.evaluate("document.cookie") == ""
    assert shared.page.get_by_role("link", name="orders / $Default").count() == 1


def test_the_page_refreshes_itself_and_keeps_the_focus(shared: Window, site: Site) -> None:
    shared.go()
    shared.page.locator('a[href$="/partitions/3"]').focus()
    row = shared.page.locator("tr", has=shared.page.locator('a[href$="/partitions/3"]'))
    assert row.locator("[data-name=Lag]").inner_text() == "0"
    site.hub.publish("orders", "3", [b"event"])
    row.locator("[data-name=Lag]", has_text="1").wait_for()
    assert shared.focused() == "3"


@pytest.mark.parametrize("failure", ["is refused", "gets no answer"])
def test_a_page_whose_refresh_fails_says_so(shared: Window, failure: str) -> None:
    shared.go()
    notice = shared.page.get_by_text("could not be refreshed")
    assert not notice.is_visible()
    if failure == "is refused":
        shared.page.route("**/groups/**", lambda route: route.fulfill(status=403))
    else:
        shared.page.route("**/groups/**", lambda route: route.abort())
    notice.wait_for()
    assert shared.page.get_by_role("row").count() == 5
    shared.page.unroute_all()
    notice.wait_for(state="hidden")
    assert shared.problems
    shared.problems.clear()


def test_everything_is_reached_by_keyboard_with_a_visible_focus(shared: Window) -> None:
    shared.go(query="?live=off")
    reached = []
    while not reached or reached[-1] != "Refresh again":
        shared.page.keyboard.press("Tab")
        reached.append(shared.focused())
        outline = shared.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", reached
        assert len(reached) < 25, reached
    assert reached[:3] == ["Skip to the content", "Groups", "orders / $Default"]
    tabs = ["Partitions", "Members", "Events", "Dead letters", "Findings", "Rewind", "History"]
    assert reached[3:10] == tabs
    assert reached[10:15] == ["number", "lag", "state", "all", "not OK (4)"]
    assert reached[15:] == ["Find what is wrong", "0", "1", "2", "3", "Refresh again"]
    shared.page.locator('a[href$="/partitions/1"]').focus()
    shared.page.keyboard.press("Enter")
    shared.page.get_by_role("heading", name="Partition 1").wait_for()
    shared.page.get_by_role("link", name="Events around the checkpoint").press("Enter")
    shared.page.locator("summary", has_text="READ NEXT").wait_for()
    shared.page.locator("summary", has_text="READ NEXT").press("Enter")
    assert shared.page.get_by_label("Body of event 10").is_visible()
    shared.page.get_by_label("Value").fill("19")
    shared.page.get_by_label("Value").press("Enter")
    shared.page.locator("#event-19[open]").wait_for()
    assert shared.ready() == 6
    shared.page.get_by_role("link", name="Previous").press("Enter")
    shared.page.locator("#event-10").wait_for()


def test_landmarks_and_labels_name_every_part(shared: Window) -> None:
    shared.go("rewind")
    for role in ("banner", "main", "contentinfo"):
        assert shared.page.get_by_role(role).count() == 1
    for name in ("Breadcrumb", "Group"):
        assert shared.page.get_by_role("navigation", name=name).count() == 1
    for label in ("Read next", "Number, time or duration", "Partitions, such as"):
        assert shared.page.get_by_label(label).count() == 1
    shared.go()
    assert shared.page.get_by_role("table", name="Partitions").count() == 1
    assert shared.page.get_by_role("row").count() == 5
    assert shared.page.get_by_role("img", name="lag").count() == 1
    assert shared.page.get_by_role("img", name="Partitions by owner").count() == 1
    shared.go("findings")
    shared.page.get_by_role("article", name="ERROR checkpoint_expired").wait_for()


def test_long_names_and_numbers_stay_within_the_window(chromium: Any, fresh_site: Site) -> None:
    row = {**fresh_site.scope.as_dict(), "partition_id": "2"}
    assert fresh_site.store.claim_ownership([{**row, "owner_id": LONG_NAME}])
    fresh_site.store.update_checkpoint(
        {**row, "sequence_number": 2**63 - 1, "offset": str(2**63)}, force=True
    )
    with opened(interval=0.1) as pages, window(chromium, fresh_site, pages) as it:
        for rest, query in [
            ((), ""),
            (("partitions", "2"), ""),
            (("partitions", "2", "events"), ""),
            (("findings",), ""),
            (("rewind",), "?to=earliest"),
        ]:
            it.go(*rest, query=query)
            it.ready()
            for size in (WIDE, PHONE):
                it.page.set_viewport_size(size)
                assert it.overflow == 0, (rest, size)


def test_a_rewind_by_keyboard_changes_what_was_previewed(chromium: Any, fresh_site: Site) -> None:
    with (
        opened(allow_writes=True, interval=0.1) as pages,
        window(chromium, fresh_site, pages) as it,
    ):
        it.go("rewind")
        it.page.get_by_label("Read next").focus()
        it.page.keyboard.press("Tab")
        it.page.keyboard.press("Tab")
        it.page.keyboard.type("0,1")
        it.page.keyboard.press("Enter")
        it.page.get_by_role("heading", name="Preview").wait_for()
        assert fresh_site.rows()["0"][0] == 15
        it.check("rewind")
        it.page.get_by_role("button", name="Change 2 partitions").focus()
        it.page.keyboard.press("Enter")
        it.page.get_by_role("status").wait_for()
        rows = fresh_site.rows()
        assert {id_: row[0] for id_, row in rows.items()} == {"0": -1, "1": 9, "2": 19}


def test_a_page_of_another_origin_cannot_change_anything(shared: Window, site: Site) -> None:
    before = site.rows()
    target = f"{shared.base}{path_of(site.scope, 'rewind')}"
    shared.page.route(
        "http://evil.example/",
        lambda route: route.fulfill(
            content_type="text/html",
            body=f'<form method="post" action="{target}"><button>x</button></form>',
        ),
    )
    shared.page.goto("http://evil.example/")
    shared.page.get_by_role("button").click()
    shared.page.get_by_text("it has the token of this page").wait_for()
    assert site.rows() == before
    # The browser reports the status of the refused request.
    assert all("403" in problem for problem in shared.problems)
    shared.problems.clear()


def test_scripts_in_events_and_in_the_page_do_not_run(shared: Window) -> None:
    shared.go("partitions", "0", "events", query=f"?at={FIRST_BODY + 2}")
    shared.page.get_by_text("<script>window.x = 1</script>", exact=True).wait_for()
    assert shared.page.evaluate("window.x") is None
    assert shared.problems == []
    shared.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.x = 1\">')"
    )
    shared.page.evaluate("document.images[0].decode().catch(() => null)")
    assert shared.page.evaluate("window.x") is None
    assert any("Content Security Policy" in problem for problem in shared.problems)
    shared.problems.clear()


def test_events_and_findings_are_shown_without_scripts(
    chromium: Any, site: Site, pages: Pages
) -> None:
    with window(chromium, site, pages, java_script_enabled=False) as it:
        for rest, shown in ((("partitions", "0", "events"), "details"), (("findings",), "article")):
            it.go(*rest)
            it.page.get_by_role("link", name="Show it without scripts").click()
            it.page.locator(shown).first.wait_for()


def test_the_live_tail_shows_new_events_and_keeps_what_is_unfolded(
    chromium: Any, fresh_site: Site
) -> None:
    fresh_site.hub.publish("orders", "3", [b'{"order": {"lines": [1, 2]}}'])
    with opened(interval=0.1) as pages, window(chromium, fresh_site, pages) as it:
        it.go("partitions", "3", "events", query="?tail=on")
        it.page.locator("#event-0 > summary").click()
        lines = it.page.locator("#event-0-2 > summary")
        lines.click()
        assert it.page.locator("#event-0-2").evaluate("e => e.open")
        fresh_site.hub.publish("orders", "3", [b"new"])
        it.page.locator("#event-1").wait_for()
        assert it.page.locator("#event-0").evaluate("e => e.open")
        assert it.page.locator("#event-0-2").evaluate("e => e.open")
        assert it.focused().startswith("lines")


def test_a_refresh_waits_while_something_is_selected(shared: Window, site: Site) -> None:
    shared.go()
    shared.page.evaluate(
        "getSelection().selectAllChildren(document.querySelector('tbody th'));"
        "document.getElementById('live').dataset.mark = 'kept'"
    )
    seconds = float(shared.page.locator("#live").get_attribute("data-every"))
    shared.page.wait_for_timeout(3_000 * seconds)
    assert shared.page.locator("#live").get_attribute("data-mark") == "kept"
    shared.page.evaluate("getSelection().removeAllRanges()")
    shared.page.locator("#live:not([data-mark])").wait_for()


def test_the_command_of_a_finding_is_copied(chromium: Any, site: Site, pages: Pages) -> None:
    rights = {"permissions": ["clipboard-read", "clipboard-write"]}
    with window(chromium, site, pages, **rights) as it:
        it.go("findings")
        it.ready()
        it.page.get_by_role("button", name="Copy").first.click()
        it.page.get_by_role("button", name="Copied").wait_for()
        copied = it.page.evaluate("navigator.clipboard.readText()")
        assert copied == it.page.locator("#command-1").inner_text()
        assert copied.startswith("ehcp ")


def test_a_full_owner_id_is_a_tooltip(chromium: Any, fresh_site: Site) -> None:
    row = {**fresh_site.scope.as_dict(), "partition_id": "0", "owner_id": LONG_NAME}
    assert fresh_site.store.claim_ownership([row])
    with opened(interval=0.1) as pages, window(chromium, fresh_site, pages) as it:
        it.go()
        owner = it.page.locator("[data-name=Owner] .id").first
        assert owner.get_attribute("title") == LONG_NAME
        assert owner.inner_text() == "consumer-with-…cdef"
        it.go("members")
        it.page.locator("p", has_text=LONG_NAME).wait_for()


def test_many_owners_are_told_apart_by_letters_and_textures(chromium: Any, tmp_path: Path) -> None:
    with (
        pytest.MonkeyPatch.context() as environment,
        Fleet.opened(tmp_path, environment, 40, 24) as fleet,
        opened(interval=1.0) as pages,
        served(pages) as home,
    ):
        Visitor(pages).wait_known("/", "24 members")
        context = chromium.new_context(viewport=WIDE)
        it = Window(context.new_page(), fleet, home)
        it.go()
        tags = it.page.locator(".lanes .badge").all_inner_texts()
        assert len({*tags} - {"-"}) == 24
        assert it.page.locator(".shares text").count() == 24
        for texture, owners in (("stripes", 10), ("checks", 4)):
            drawn = it.page.locator(f'.shares rect[fill="url(#{texture})"]')
            assert drawn.count() == owners
            assert it.page.locator(f"pattern#{texture}").count() == 1
        it.check("many owners")
        it.go("members")
        it.check("many members")
        assert it.problems == []
        context.close()
