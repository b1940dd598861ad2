"""Who may see the pages, and who may change something."""

import re
from collections.abc import Callable

import pytest

from eventhub_checkpoints.cli.records import RecordFiles
from operators import Site, ehcp
from pages import BASE, Visitor, hidden_fields, opened, path_of

Form = tuple[str, dict[str, str]]
"""Path of a form, and its fields."""

PATHS = ["/", "/static/style.css", "/static/page.js", "/groups/a/b/c", "/no/such/page"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong"])
def test_nothing_is_shown_without_the_token(visitor: Visitor, path: str, query: str) -> None:
    stranger = Visitor(visitor.pages, is_admitted=False)
    answer = stranger.client.get(path + query)
    assert answer.status_code == 403
    assert answer.text.startswith("Open the URL that ehcp ui printed")


def test_the_token_becomes_a_cookie_and_leaves_the_address_bar(visitor: Visitor) -> None:
    stranger = Visitor(visitor.pages, is_admitted=False)
    token = visitor.pages.token
    answer = stranger.client.get(f"//evil.example/x?a=1&token={token}", follow_redirects=False)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert token not in cookie
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith("//")
    assert "token" not in answer.headers["location"]


def test_a_wrong_cookie_is_refused(visitor: Visitor) -> None:
    stranger = Visitor(visitor.pages, is_admitted=False)
    stranger.client.cookies.set("ehcp-ui-9879", "wrong")
    assert stranger.client.get("/").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:9879", "", "10.0.0.1"])
def test_another_host_name_is_refused(visitor: Visitor, host: str) -> None:
    assert visitor.client.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:9879", "127.0.0.1", "[::1]:9879", "LOCALHOST"])
def test_names_of_this_machine_are_accepted(visitor: Visitor, host: str) -> None:
    # The client sends its cookie by its own rule, which does not depend on this header.
    assert visitor.client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", [*PATHS, "/?token=wrong"])
def test_every_answer_has_the_headers(visitor: Visitor, path: str) -> None:
    headers = visitor.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


CHANGING = ["rewind", "undo", "dead-letters"]
"""Pages with a form that changes something."""


@pytest.fixture(params=CHANGING)
def form(request: pytest.FixtureRequest, operator: Visitor, site: Site) -> Form:
    """A form that changes something, as its page has it."""
    path = path_of(site.scope, request.param)
    query = {
        "rewind": "to=earliest",
        "undo": f"record={recorded(site)}",
        "dead-letters": "live=off",
    }[request.param]
    fields = hidden_fields(operator.text(f"{path}?{query}"))
    assert fields["form_token"]
    return path, {**fields, "which": "all"}


def recorded(site: Site) -> str:
    """Return the name of the record of a change that can be undone."""
    for record in RecordFiles().records(site.scope):
        return record.path.name
    assert ehcp("reset", "--to-earliest", "--partitions", "0", "--execute").exit_code == 0
    return recorded(site)


def present(site: Site) -> object:
    """Return everything that a form could change."""
    states = [record.state for record in RecordFiles().records(site.scope)]
    return site.rows(), states, site.hub.partition_properties("orders", "0")


def test_a_change_needs_the_token_of_the_form(operator: Visitor, site: Site, form: Form) -> None:
    before = present(site)
    path, fields = form
    for wrong in ({**fields, "form_token": "wrong"}, {**fields, "form_token": ""}, {}):
        assert operator.client.post(path, data=wrong).status_code == 403
    assert present(site) == before


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://[", f"{BASE}0"])
def test_a_change_from_another_origin_is_refused(
    operator: Visitor, site: Site, form: Form, origin: str
) -> None:
    before = present(site)
    path, fields = form
    answer = operator.client.post(path, data=fields, headers={"Origin": origin})
    assert answer.status_code == 403
    assert present(site) == before


def test_a_change_without_the_cookie_is_refused(operator: Visitor, site: Site, form: Form) -> None:
    before = present(site)
    path, fields = form
    stranger = Visitor(operator.pages, is_admitted=False)
    answer = stranger.client.post(f"{path}?token={operator.pages.token}", data=fields)
    assert answer.status_code == 403
    assert present(site) == before


def test_a_change_under_another_host_name_is_refused(
    operator: Visitor, site: Site, form: Form
) -> None:
    before = present(site)
    path, fields = form
    answer = operator.client.post(path, data=fields, headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert present(site) == before


def test_a_page_that_only_reads_has_no_way_to_write(
    visitor: Visitor, site: Site, form: Form
) -> None:
    before = present(site)
    path, fields = form
    query = "live=off&to=earliest" + (f"&record={fields['record']}" if "record" in fields else "")
    text = visitor.text(f"{path}?{query}")
    assert "This page only reads" in text
    assert "form_token" not in text
    assert visitor.client.post(path, data=fields).status_code == 405
    assert present(site) == before


@pytest.mark.parametrize(
    "record", ["", "absent.json", "../x.json", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "%00"]
)
def test_a_record_is_only_found_by_its_name(operator: Visitor, site: Site, record: str) -> None:
    assert recorded(site)
    path = path_of(site.scope, "undo")
    assert "no such record" in operator.text(f"{path}?record={record}", 404)


@pytest.mark.parametrize(
    "rest",
    [
        ("partitions", "0", "events", "text={}"),
        ("partitions", "0", "events", "search=on&text={}&key={}&property={}&first={}"),
        ("partitions", "0", "events", "by={}&at={}"),
        ("partitions", "0", "events", "tail=on&known={}"),
        ("events", "search=on&text={}&key={}&property={}"),
        ("events", "search=on&since={}&most={}"),
        ("rewind", "to={}&value={}&partitions={}"),
        ("dead-letters", "error={}&partition={}&show={}"),
        ("members", "x={}"),
        ("history", "x={}"),
    ],
)
def test_what_a_query_has_is_escaped(operator: Visitor, site: Site, rest: tuple[str, ...]) -> None:
    operator.wait_known("/", "LOST")
    *path, query = rest
    markup = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    for live in ("", "&live=off"):
        url = f"{path_of(site.scope, *path)}?{query.replace('{}', markup)}{live}"
        text = operator.client.get(url).text
        assert "<html" in text
        assert "<script>alert" not in text


def test_a_form_that_is_too_long_is_refused(operator: Visitor, form: Form) -> None:
    path, fields = form
    answer = operator.client.post(path, data={**fields, "numbers": "1" * 2_000_000})
    assert answer.status_code == 413


def test_no_page_shows_a_secret_or_has_inline_code(
    operator: Visitor, site: Site, searched: Callable[[str, int], None]
) -> None:
    key = site.connection_string.partition("SharedAccessKey=")[2].partition(";")[0]
    assert key
    operator.wait_known("/", "LOST")
    group = path_of(site.scope)
    paths = ["/", group, f"{group}/partitions/0", f"{group}/rewind?to=latest", "/groups/a/b/c"]
    paths += [f"{group}/partitions/0/events?live=off", f"{group}/findings?live=off"]
    paths += [f"{group}/partitions/0/events?live=off&search=on", f"{group}/members"]
    paths += [f"{group}/history", f"{group}/dead-letters?live=off"]
    for path in paths:
        text = operator.client.get(path).text
        assert key not in text
        assert operator.pages.token not in text
        searched("pages", 1)
        assert "<style" not in text
        assert " style=" not in text
        assert " on" not in "".join(part.partition(">")[0] for part in text.split("<a")[1:])
        scripts = re.findall("<script[^>]*>[^<]*", text)
        assert scripts == ['<script src="/static/page.js" defer>']


def test_an_unknown_error_is_not_quoted(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0")

    with opened() as pages:
        visitor = Visitor(pages)
        monkeypatch.setattr("eventhub_checkpoints.ui.change_pages.preview", fail)
        answer = visitor.client.get(f"{path_of(site.scope, 'rewind')}?to=earliest")
    assert answer.status_code == 500
    assert "c2VjcmV0" not in answer.text + caplog.text
    assert "content-security-policy" in answer.headers
