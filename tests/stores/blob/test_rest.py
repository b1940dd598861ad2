"""Requests that the store builds itself: signatures, credentials, lists, and errors."""

from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import DecodeError, HttpResponseError
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.rest import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from azure.storage.blob._shared.base_client import parse_connection_str
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints._shared.times import EPOCH
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.blob import options, rest
from eventhub_checkpoints.stores.blob.protocol import EMULATOR_KEY

ACCOUNT = "https://orders.blob.core.windows.net"
EMULATOR = "http://127.0.0.1:10000/devstoreaccount1"
SAS = "sv=2019-07-07&sr=c&sp=rwl&sig=a%2Fb%2Bc%3D"

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
values = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)


def requests_of(container: rest.Container, name: str, value: str) -> list[rest.Request]:
    return [
        container.create(name, {"ownerid": value}, overwrite=False),
        container.create(name, {"offset": value, "sequencenumber": "7"}, overwrite=True),
        container.update(name, {"ownerid": value}, "0x8D"),
        container.update(name, {"ownerid": value}, None),
        container.read(name),
        container.delete(name),
        container.list(name, value, one_level=False),
        container.list(name, "", one_level=True),
    ]


@given(name=names, value=values, base=st.sampled_from([ACCOUNT, EMULATOR]))
def test_a_signature_is_that_of_the_driver(name: str, value: str, base: str) -> None:
    key = rest.SharedKey(lambda: ("orders", EMULATOR_KEY))
    policy = SharedKeyCredentialPolicy("orders", EMULATOR_KEY)
    for request in requests_of(rest.Container(base, "positions", key, "2019-07-07"), name, value):
        sent = HttpRequest(request.method, request.url, headers=dict(request.headers))
        policy.on_request(PipelineRequest(sent, PipelineContext(None)))
        assert rest.authorized(request, key) == request.url
        assert request.headers["Authorization"] == sent.headers["Authorization"]


@pytest.mark.parametrize(
    "text",
    [
        f"DefaultEndpointsProtocol=https;AccountName=orders;AccountKey={EMULATOR_KEY}",
        f"AccountName=orders;AccountKey={EMULATOR_KEY};EndpointSuffix=core.chinacloudapi.cn;",
        f"BlobEndpoint=http://127.0.0.1:1/orders;AccountName=orders;AccountKey={EMULATOR_KEY}",
        f"BlobEndpoint={ACCOUNT};SharedAccessSignature={SAS}",
        "accountname=orders;defaultendpointsprotocol=http;endpointsuffix=a.b",
    ],
)
def test_a_connection_string_is_read_as_the_driver_reads_it(text: str) -> None:
    url, credential = options.parse_connection_string(text)
    driver_url, _, driver_credential = parse_connection_str(text, None, "blob")
    assert url == (driver_url if "://" in driver_url else f"http://{driver_url}")
    assert credential == driver_credential


def test_the_short_connection_string_is_that_of_the_emulator() -> None:
    # Old versions of azure-storage-blob do not know it.
    assert options.parse_connection_string("UseDevelopmentStorage=true") == (EMULATOR, EMULATOR_KEY)


@pytest.mark.parametrize("text", ["AccountName=orders;AccountKey", "DefaultEndpointsProtocol=x"])
def test_a_connection_string_of_no_account_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        options.parse_connection_string(text)


class Tokens:
    """A credential that issues tokens."""

    def get_token(self, *scopes: str, **_: Any) -> Any:
        raise AssertionError("nothing is sent")


KNOWN: list[tuple[str, Any, type]] = [
    (ACCOUNT, None, type(None)),
    (ACCOUNT, EMULATOR_KEY, rest.SharedKey),
    ("orders.blob.core.windows.net", EMULATOR_KEY, rest.SharedKey),
    (EMULATOR, EMULATOR_KEY, rest.SharedKey),
    ("https://blobs.example.com", AzureNamedKeyCredential("a", EMULATOR_KEY), rest.SharedKey),
    (ACCOUNT, {"account_name": "a", "account_key": EMULATOR_KEY}, rest.SharedKey),
    (ACCOUNT, f"?{SAS}", rest.Sas),
    (f"{ACCOUNT}?{SAS}", None, rest.Sas),
    (ACCOUNT, AzureSasCredential(SAS), rest.Sas),
    (ACCOUNT, Tokens(), rest.Token),
]
UNKNOWN: list[tuple[str, Any]] = [
    ("https://blobs.example.com", EMULATOR_KEY),  # of which account?
    ("http://127.0.0.1:10000/devstoreaccount1", Tokens()),  # a token needs TLS
    (f"{ACCOUNT}?{SAS}", EMULATOR_KEY),
    (f"{ACCOUNT}?{SAS}", AzureSasCredential(SAS)),
    (f"{ACCOUNT}?snapshot=1", None),
    (f"{ACCOUNT}/path", EMULATOR_KEY),
    ("https://orders-ipv6.blob.core.windows.net", EMULATOR_KEY),
    (ACCOUNT, {"account_name": "a"}),
    (ACCOUNT, 5),
]


@pytest.mark.parametrize(("url", "credential", "kind"), KNOWN)
def test_a_credential_is_known(url: str, credential: Any, kind: type) -> None:
    container = options.ContainerLogin(url, "positions", credential).rest("2019-07-07")
    assert container is not None
    assert type(container.authorization) is kind


@pytest.mark.parametrize(("url", "credential"), UNKNOWN)
def test_what_only_the_driver_knows_or_refuses_is_left_to_it(url: str, credential: Any) -> None:
    assert options.ContainerLogin(url, "positions", credential).rest("2019-07-07") is None


def test_a_key_and_a_sas_that_are_replaced_are_used_at_once() -> None:
    key = AzureNamedKeyCredential("orders", EMULATOR_KEY)
    signature = AzureSasCredential(SAS)
    signed, shared = (
        options.ContainerLogin(ACCOUNT, "positions", each).rest("2019-07-07")
        for each in (key, signature)
    )
    assert signed is not None
    assert shared is not None
    request = signed.read("0")
    rest.authorized(request, signed.authorization)
    before = request.headers["Authorization"]
    key.update("orders", "b3RoZXI=")
    signature.update("sig=other")
    rest.authorized(request, signed.authorization)
    assert request.headers["Authorization"] != before
    assert rest.authorized(shared.read("0"), shared.authorization).endswith("?sig=other")


BLOB = (
    "<Blob><Name{encoded}>{name}</Name><Properties>"
    "<Last-Modified>Mon, 23 Nov 2026 08:00:00 GMT</Last-Modified><Etag>0x8D{number}</Etag>"
    "<Content-Length>0</Content-Length></Properties><Metadata>{pairs}</Metadata></Blob>"
)


def page(names: list[str], marker: str = "") -> bytes:
    blobs = "".join(
        BLOB.format(
            encoded="",
            name=escape(name),
            number=number,
            pairs=f"<ownerid>{escape(name)}</ownerid><Empty/>",
        )
        for number, name in enumerate(names)
    )
    text = (
        '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs>'
        f"{blobs}</Blobs><NextMarker>{escape(marker)}</NextMarker></EnumerationResults>"
    )
    return text.encode()


def parsed(data: bytes, size: int) -> tuple[rest.ListParser, str]:
    parser = rest.ListParser()
    parser.begin_page()
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
    return parser, parser.end_page()


xml_names = st.text(
    st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\x7f\ufffe\uffff\r"),
    min_size=1,
    max_size=20,
)


@given(names=st.lists(xml_names, max_size=12), size=st.integers(1, 400))
def test_a_list_is_the_same_in_slices_of_any_size(names: list[str], size: int) -> None:
    parser, marker = parsed(page(names, "next <&>"), size)
    assert [blob.name for blob in parser.blobs] == names
    assert [blob.metadata for blob in parser.blobs] == [
        {"ownerid": name, "Empty": ""} for name in names
    ]
    assert [blob.etag for blob in parser.blobs] == [f"0x8D{n}" for n in range(len(names))]
    assert all(blob.last_modified.timestamp() == 1795420800.0 for blob in parser.blobs)
    assert marker == "next <&>"


def test_a_name_that_xml_cannot_hold_is_decoded() -> None:
    text = BLOB.format(encoded=' Encoded="true"', name="a%01%25", number=1, pairs="")
    parser, marker = parsed(f"<EnumerationResults>{text}</EnumerationResults>".encode(), 1000)
    assert [blob.name for blob in parser.blobs] == ["a\x01%"]
    assert marker == ""


@pytest.mark.parametrize(
    "body",
    [
        b"<html><p>log in</html>",
        page(["a"])[:-30],
        b"",
        b'<?xml version="1.0" encoding="of nobody"?><EnumerationResults/>',
        b'<?xml version="1.0" encoding="shift_jis"?><EnumerationResults/>',
    ],
)
def test_what_is_not_a_list_is_an_error(body: bytes) -> None:
    with pytest.raises(DecodeError, match="not XML"):
        parsed(body, 16)


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"x-ms-error-code": "BlobNotFound"}, b"", "BlobNotFound"),
        ({}, b"<?xml version='1.0'?><Error><Code>ServerBusy</Code></Error>", "ServerBusy"),
        ({}, b"<html>please log in", ""),
        ({}, b'<?xml version="1.0" encoding="of nobody"?><Error/>', ""),
        ({}, b"", ""),
    ],
)
def test_an_error_has_the_code_of_the_service(
    headers: dict[str, str], body: bytes, code: str
) -> None:
    request = rest.Container(ACCOUNT, "positions", None, "2019-07-07").read("0")
    request.headers["Authorization"] = "SharedKey account:c2lnbmF0dXJl"
    response = rest.Response(request, 404, "Not Found", headers, body)
    assert "c2lnbmF0dXJl" not in repr(response)
    with pytest.raises(HttpResponseError) as raised:
        rest.checked(response, 200)
    assert "Authorization" not in request.headers
    assert raised.value.status_code == 404
    assert raised.value.error_code == code
    assert rest.checked(response, 404) is response


CHALLENGE = (
    "Bearer authorization_uri=https://login.microsoftonline.com/tenant-1/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)


@pytest.mark.parametrize(
    ("status", "challenge", "follows"),
    [
        (401, CHALLENGE, True),
        (403, CHALLENGE, False),
        (401, "", False),
        (401, "Bearer realm=somewhere", False),
        (401, "Bearer authorization_uri=nonsense resource_id=x", False),
        (401, "Bearer authorization_uri=https://[ resource_id=x", False),
    ],
)
def test_a_challenge_names_the_tenant(status: int, challenge: str, follows: bool) -> None:
    tokens = rest.TokenCache()
    tokens.keep(SimpleNamespace(token="first", expires_on=9e9))
    request = rest.Container(ACCOUNT, "positions", None, "2019-07-07").read("0")
    response = rest.Response(request, status, "", {"WWW-Authenticate": challenge}, b"")
    assert tokens.follow(response) is follows
    assert (tokens.current, tokens.options) == (
        ("", {"tenant_id": "tenant-1"}) if follows else ("first", {})
    )
    assert not tokens.follow(response)  # once only


def test_a_token_is_replaced_before_it_expires() -> None:
    tokens = rest.TokenCache()
    assert tokens.keep(SimpleNamespace(token="short", expires_on=0)) == "short"
    assert tokens.current == ""
    tokens.keep(SimpleNamespace(token="long", expires_on=9e9))
    assert tokens.current == "long"


@pytest.mark.parametrize(
    "date",
    ["", "yesterday", "Tue, 32 Nov 2026 10:00:00 GMT", f"Tue, 24 Nov {'9' * 30} 10:00:00 GMT"],
)
def test_a_time_that_cannot_be_read_is_the_epoch(date: str) -> None:
    assert rest.moment(date) == EPOCH


def test_a_time_without_a_known_zone_is_utc() -> None:
    assert rest.moment("Tue, 24 Nov 2026 10:00:00 -0000").isoformat() == "2026-11-24T10:00:00+00:00"


def test_a_blob_with_a_damaged_time_spoils_no_other() -> None:
    text = page(["a", "b"]).replace(b" GMT", b" o'clock", 1)
    parser, _ = parsed(text, 1000)
    assert [blob.name for blob in parser.blobs] == ["a", "b"]
