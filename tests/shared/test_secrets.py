"""Quoting of values in messages: nothing of a secret, and everything else as it is."""

import string
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints._shared.secrets import holds_secret, masked, quoted

MARK = "S3CR3T"
KEY = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U="
"""256 bits in base64, as the service makes them."""
PLACES = [
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={}",
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessSignature={};EntityPath=hub",
    "endpoint=sb://ns/;sharedaccesskey={};EntityPath=hub",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
    "https://a.blob.core.windows.net/c?sv=2022-11-02&sig={}&se=2030-01-01",
    "sv=2022-11-02&ss=b&sig={}",
    "SharedAccessSignature sr=sb%3a%2f%2fns%2f&sig={}&se=1&skn=root",
    "SharedAccessKey%3D{}",
    "postgresql://app:{}@db.example.org:5432/checkpoints",
    "rediss://:{}@cache.example.org:6380/0?db=1",
    "app:{}@db.example.org:5432/checkpoints",
    "amqps://root:{}@ns.servicebus.windows.net/",
    "host=db user=app password={} dbname=checkpoints",
    "password: {}",
    "pwd={}",
    "cache.example.org:6380,password={},ssl=True",
    'username="$ConnectionString" password="{}";',
    '{{"password": "{}", "host": "db"}}',
    "client_secret={}",
    "access_token={}&expires_in=1",
    "Bearer {}",
    "Authorization: Basic {}",
    "x-functions-access-key={}",
]
HARMLESS = [
    "orders",
    "$Default",
    "0",
    "",
    None,
    5,
    2.5,
    True,
    [1, "2"],
    {"namespace": "ns"},
    b"bytes",
    "https://a.blob.core.windows.net/container",
    "abfss://container@account.dfs.core.windows.net/path",
    "postgresql://app@db.example.org/checkpoints",
    "http://127.0.0.1:10000/devstoreaccount1/c",
    "SharedAccessKeyName=root",
    "2026-11-21T10:00:00Z",
    'it\'s "quoted"\n',
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wrap", [str, str.encode, lambda text: [text]])
def test_a_secret_is_masked(place: str, wrap: Callable[[str], object]) -> None:
    text = quoted(wrap(place.format(MARK)), limit=1000)
    assert MARK not in text
    assert "***" in text


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        KEY.replace("=", "%3D"),
        KEY.replace("c", "%2b"),
        "A" * 86 + "==",
        "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln",
    ],
)
def test_a_secret_without_a_name_is_masked(secret: str) -> None:
    assert quoted(secret) == "'***'"
    assert quoted(f"orders {secret}") == "'orders ***'"


def test_a_secret_in_a_table_is_masked() -> None:
    assert quoted({"namespace": "ns", "password": MARK}) == "{'namespace': 'ns', 'password':***"


def test_what_is_around_a_secret_is_left() -> None:
    url = f"mysql://app:{MARK}@db/checkpoints"
    assert quoted(url) == "'mysql://app:***@db/checkpoints'"
    text = f"Endpoint=sb://ns/;SharedAccessKeyName=root;SharedAccessKey={MARK}"
    assert quoted(text) == "'Endpoint=sb://ns/;SharedAccessKeyName=root;SharedAccessKey=***'"


@pytest.mark.parametrize("value", HARMLESS)
def test_what_holds_no_secret_comes_back_as_repr(value: object) -> None:
    assert quoted(value) == repr(value)


@pytest.mark.parametrize("place", PLACES)
def test_a_text_that_holds_a_secret_is_known(place: str) -> None:
    assert holds_secret(place.format(MARK))
    assert holds_secret("x " * 500 + place.format(MARK))


@pytest.mark.parametrize("value", [one for one in HARMLESS if isinstance(one, str)])
def test_a_text_that_holds_no_secret_is_known(value: str) -> None:
    assert not holds_secret(value)
    assert not holds_secret("x" * 500)


def test_a_long_value_is_cut() -> None:
    assert quoted("x" * 98) == repr("x" * 98)
    assert quoted("x" * 99) == "'" + "x" * 96 + "..."
    assert len(quoted("x" * 500, limit=20)) == 20


def test_a_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    assert quoted(10**5000) == "<int>"


@pytest.mark.long  # the only sign of a pattern that backtracks is the time that it takes
@pytest.mark.parametrize(
    "piece", ["a", "=", "%2B", "://", "://a:", "@", "sig", "'", "eyJ", ".", "token", " "]
)
def test_a_long_value_takes_no_time(piece: str) -> None:
    started = time.process_time()
    quoted(piece * 30_000)
    masked(piece * 30_000)
    assert time.process_time() - started < 1


anything = st.text(max_size=30)


@given(place=st.sampled_from(PLACES), before=anything, after=anything, limit=st.integers(10, 400))
def test_no_delimiter_in_a_secret_ends_it(place: str, before: str, after: str, limit: int) -> None:
    text = quoted(place.format(f"{before}{MARK}{after}"), limit)
    assert MARK not in text
    assert len(text) <= limit


# Without a scheme, a user and a password are known only where a string begins with them.
KNOWN_ANYWHERE = [place for place in PLACES if not place.startswith("app:")]


@given(around=anything, place=st.sampled_from(KNOWN_ANYWHERE), rest=anything)
def test_a_secret_is_masked_wherever_it_stands(around: str, place: str, rest: str) -> None:
    assert MARK not in quoted(f"{around} {place.format(MARK)} {rest}", limit=10_000)


names = st.text(string.ascii_letters + string.digits + " .,;_-$/'\"\n", max_size=38)


@given(st.one_of(names, st.integers(), st.floats(), st.none(), st.lists(names, max_size=2)))
def test_any_value_without_a_secret_comes_back_as_repr(value: object) -> None:
    assert quoted(value, limit=1000) == repr(value)


TEXTS = [
    ("https://a.blob.core.windows.net/c?sv=2020&sig=abc%2Fdef%3D&se=1", "abc%2Fdef%3D"),
    ("https://a.blob.core.windows.net/c?sig=abc%2Fdef%3D", "abc%2Fdef%3D"),
    ("https://a.blob.core.windows.net/c?SIG=abc", "abc"),
    ("AccountName=a;AccountKey=q2Vj/cmV0+A==;EndpointSuffix=x", "q2Vj/cmV0+A=="),
    ("{'Authorization': 'SharedKey account:c2lnbmF0dXJl+/='}", "c2lnbmF0dXJl+/="),
    ("Authorization: Bearer eyJ0eXAi.OiJK.V1Qi", "eyJ0eXAi.OiJK.V1Qi"),
    ("cannot open postgresql://app:a:b@c@db/checkpoints", "a:b@c"),
    ("missing = in conninfo: host=db password=hunter2 user=app", "hunter2"),
    ("SharedAccessSignature sr=ns&sig=abc&se=1", "abc"),
]


@pytest.mark.parametrize(("text", "secret"), TEXTS)
def test_a_secret_in_a_text_is_masked(text: str, secret: str) -> None:
    assert secret not in masked(text)
    assert "***" in masked(text)


def test_a_text_stays_readable_around_a_secret() -> None:
    text = "https://a/c?sv=2020-01-01&sig=abc&se=2030"
    assert masked(text) == "https://a/c?sv=2020-01-01&sig=***&se=2030"


def test_a_text_without_a_secret_is_unchanged() -> None:
    text = "FATAL: password authentication failed for user app, host: db"
    assert masked(text) == text
    text = "HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded with url: /a/c"
    assert masked(text) == text
