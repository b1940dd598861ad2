"""Answers that come from somebody other than the storage service."""

from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest

from eventhub_checkpoints.errors import StoreAccessError, StoreError, StoreUnavailableError
from http_messages import Message
from refusals import says
from waiting import LIMIT

SHORT = 0.5


def answer(proxy: Any, status: str, *headers: str) -> Any:
    """Let the proxy answer every request by itself, as a gateway with a page of its own does."""
    page = b"<html>please log in</html>"
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html", f"Content-Length: {len(page)}"]
    head = "\r\n".join([*lines, *headers, "", ""]).encode()
    fault = proxy.on()

    async def act(exchange: Any) -> Message:
        return Message(head, page)

    fault.act = act
    return fault


def test_a_write_that_is_answered_without_an_etag_is_not_confirmed(watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    watched.save("0", 1)
    answer(proxy, "200 OK")
    watched.set(operation_timeout=SHORT, write_timeout=SHORT, keep_unconfirmed=LIMIT)
    assert watched.claim_ownership([row]) == [row]  # kept, and not won
    assert watched.store.counters["unconfirmed_claims"] == 1
    says(lambda: watched.save("0", 2), StoreUnavailableError, "without an etag")
    assert watched.release(row) == []


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
def test_a_redirection_is_not_followed(variant, proxied, proxy, rival, status) -> None:
    store = variant.open(proxied)
    row = store.take("0", "owner-1")
    proxy.forget()
    fault = answer(proxy, status, f"Location: {proxied.endpoint}/elsewhere")
    for call in (
        store.list_ownership,
        lambda: store.claim_ownership([row]),
        lambda: store.save("0", 1),
    ):
        with pytest.raises(StoreError, match=status[:3]):
            call()
    assert fault.hits == 3, "it was tried again"


@pytest.mark.parametrize("status", [400, 401])
def test_who_gives_no_token_is_quoted(variant, client, proxied, proxy, status) -> None:
    answer(proxy, f"{status} Refused")
    with RequestsTransport() as transport:
        response = transport.send(HttpRequest("POST", proxied.url))
    refusal = ClientAuthenticationError("the client's secret has expired", response)
    error = client.store.map_error(refusal)
    assert isinstance(error, StoreAccessError)
    assert "the client's secret has expired" in str(error)


def test_an_error_that_holds_a_signature_is_not_even_the_context(
    variant, proxied, proxy, sas
) -> None:
    signature = sas("racwl")
    store = variant.store.from_container_url(f"{proxied.url}?{signature}", operation_timeout=SHORT)
    client = variant.client(store)
    proxy.down()
    with pytest.raises(StoreUnavailableError) as failure:
        client.list_ownership()
    for error in chained(failure.value):
        assert "sig=" not in str(error).replace("sig=(hidden)", "")


def chained(error: BaseException | None) -> list[BaseException]:
    """The error, and all that led to it."""
    if error is None:
        return []
    return [error, *chained(error.__cause__), *chained(error.__context__)]
