"""Signatures, and keys, SAS and tokens that are replaced."""

from types import SimpleNamespace

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.rest import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY
from eventhub_checkpoints.stores.azure_storage.authorization import (
    SharedKey,
    TokenCache,
    authorization_of,
    authorized,
    text_to_sign,
)
from eventhub_checkpoints.stores.azure_storage.messages import Request, Response
from eventhub_checkpoints.stores.blob.rest import Container

ACCOUNT = "https://orders.blob.core.windows.net"
EMULATOR = "http://127.0.0.1:10000/devstoreaccount1"
SAS = "sv=2019-07-07&sr=c&sp=rwl&sig=a%2Fb%2Bc%3D"
CONTAINER = Container(ACCOUNT, "positions", "2019-07-07")

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
values = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)


def requests_of(container: Container, name: str, value: str) -> list[Request]:
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
    key = SharedKey(lambda: ("orders", EMULATOR_KEY), text_to_sign)
    policy = SharedKeyCredentialPolicy("orders", EMULATOR_KEY)
    for request in requests_of(Container(base, "positions", "2019-07-07"), name, value):
        sent = HttpRequest(request.method, request.url, headers=dict(request.headers))
        policy.on_request(PipelineRequest(sent, PipelineContext(None)))
        assert authorized(request, key) == request.url
        assert request.headers["Authorization"] == sent.headers["Authorization"]


def test_a_signature_of_a_request_with_a_body_is_that_of_the_driver() -> None:
    key = SharedKey(lambda: ("orders", EMULATOR_KEY), text_to_sign)
    request = CONTAINER.create("0", {}, overwrite=True)
    request.body = b"content"
    headers = {**request.headers, "Content-Length": "7"}
    sent = HttpRequest(request.method, request.url, headers=headers, content=request.body)
    policy = SharedKeyCredentialPolicy("orders", EMULATOR_KEY)
    policy.on_request(PipelineRequest(sent, PipelineContext(None)))
    authorized(request, key)
    assert request.headers["Authorization"] == sent.headers["Authorization"]


def test_a_key_and_a_sas_that_are_replaced_are_used_at_once() -> None:
    key = AzureNamedKeyCredential("orders", EMULATOR_KEY)
    signature = AzureSasCredential(SAS)
    signed, shared = (
        authorization_of(each, "", "orders", "https", text_to_sign) for each in (key, signature)
    )
    request = CONTAINER.read("0")
    authorized(request, signed)
    before = request.headers["Authorization"]
    key.update("orders", "b3RoZXI=")
    signature.update("sig=other")
    authorized(request, signed)
    assert request.headers["Authorization"] != before
    assert authorized(CONTAINER.read("0"), shared).endswith("?sig=other")


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
    tokens = TokenCache()
    tokens.keep(SimpleNamespace(token="first", expires_on=9e9))
    response = Response(status, "", {"WWW-Authenticate": challenge}, b"")
    assert tokens.follow(response) is follows
    assert (tokens.current, tokens.options) == (
        ("", {"tenant_id": "tenant-1"}) if follows else ("first", {})
    )
    assert not tokens.follow(response)  # once only


def test_a_token_is_replaced_before_it_expires() -> None:
    tokens = TokenCache()
    assert tokens.keep(SimpleNamespace(token="short", expires_on=0)) == "short"
    assert tokens.current == ""
    tokens.keep(SimpleNamespace(token="long", expires_on=9e9))
    assert tokens.current == "long"
