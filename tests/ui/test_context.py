"""Numbers, times and addresses as pages show them."""

from typing import Any

import pytest
from starlette.requests import Request

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.ui.context import number_in, query_changer, rate, recorded


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (None, "-"),
        (0.0, "0/s"),
        (0.04, "0.04/s"),
        (2.34, "2.3/s"),
        (17.6, "18/s"),
        (12_345.6, "12,346/s"),
    ],
)
def test_rates_have_two_digits(per_second: float | None, text: str) -> None:
    assert rate(per_second) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "no events"), (1, "1 event"), (2, "2 events"), (1_000, "1,000 events")]
)
def test_amounts_have_their_noun(number: int, text: str) -> None:
    assert counted(number, "event", grouped=True) == text


def request(query: str) -> Request:
    scope: dict[str, Any] = {"type": "http", "path": "/a b", "query_string": query.encode()}
    return Request({**scope, "headers": [], "server": ("127.0.0.1", 1), "scheme": "http"})


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("", 1),
        ("page=3", 3),
        ("page=0", 1),
        ("page=-1", 1),
        ("page=21", 20),
        ("page=9999999999999999999999", 1),
        ("page=x", 1),
        ("page=٣", 1),
    ],
)
def test_a_number_of_the_query_is_within_its_limits(query: str, number: int) -> None:
    assert number_in(request(query), "page", least=1, most=20) == number


def test_an_address_keeps_the_rest_of_its_query() -> None:
    changed = query_changer(request("sort=lag&page=2&show=attention"))
    assert changed() == "/a%20b?sort=lag&page=2&show=attention"
    assert changed(page=None, show="all") == "/a%20b?sort=lag&show=all"
    assert changed(sort=None, page=None, show=None) == "/a%20b"
    assert changed(page='"><script>') == ("/a%20b?sort=lag&page=%22%3E%3Cscript%3E&show=attention")


def test_the_time_of_a_record_is_shown_as_other_times() -> None:
    assert recorded("2026-11-23T12:00:07+02:00") == "2026-11-23 10:00:07 UTC"
    assert recorded("yesterday\u202e") == r"yesterday\u202e"
