"""Keys that the hub accepts, and tokens that expire, with real clients."""

import base64
import json
import time
from urllib.parse import quote_plus

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub._pyamqp.utils import generate_sas_token
from azure.eventhub.exceptions import AuthenticationError

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.tokens import TokenError, expiry_of

ADDRESS = "sb://ns.servicebus.windows.net/orders"
NOW = 1_800_000_000


def jwt(expiry: float) -> str:
    parts = [{"alg": "RS256"}, {"aud": "https://eventhubs.azure.net", "exp": expiry}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*coded, "c2ln"]).replace("=", "")


def test_a_signature_of_an_accepted_key_is_valid_until_it_expires() -> None:
    token = generate_sas_token(ADDRESS, "policy", "second", NOW + 60)
    assert expiry_of(token, {"first", "second"}, NOW) == NOW + 60
    with pytest.raises(TokenError, match=r"ExpiredToken: .*2027-01-15T08:01:00.000Z"):
        expiry_of(token, {"second"}, NOW + 60)
    with pytest.raises(TokenError, match="InvalidSignature"):
        expiry_of(token, {"first"}, NOW)


@pytest.mark.parametrize("changed", [("se=1", "se=2"), (quote_plus("/orders"), quote_plus("/x"))])
def test_a_changed_signature_is_refused(changed: tuple[str, str]) -> None:
    token = generate_sas_token(ADDRESS, "policy", "key", NOW + 60)
    assert changed[0] in token
    with pytest.raises(TokenError, match="InvalidSignature"):
        expiry_of(token.replace(*changed, 1), {"key"}, NOW)


def test_a_token_of_entra_is_valid_until_it_expires() -> None:
    assert expiry_of(jwt(NOW + 5), set(), NOW) == NOW + 5
    with pytest.raises(TokenError, match="ExpiredToken"):
        expiry_of(jwt(NOW), set(), NOW)


def claims(text: str) -> str:
    return f"e30.{base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    "token",
    [
        *(None, 5, "", "a.b", "a.!!.c"),
        *("SharedAccessSignature ", "SharedAccessSignature sr=x"),
        "SharedAccessSignature sr=x&se=1&sig=\u00e9",
        *(claims("[]"), claims('{"exp": null}'), claims("[" * 100_000)),
        *(jwt(float("nan")), jwt(float("inf")), jwt(float("-inf")), jwt(1e18)),
    ],
)
def test_anything_else_is_malformed(token: object) -> None:
    with pytest.raises(TokenError, match="MalformedToken"):
        expiry_of(token, {"key"}, NOW)


@pytest.mark.parametrize("keys", ["key", [""], [5], 5])
def test_keys_that_are_no_set_of_strings_are_refused_and_not_shown(keys: object) -> None:
    with pytest.raises(ValueError, match="accept_keys must be a set of non-empty strings"):
        LocalHub({"orders": 1}, accept_keys=keys)  # type: ignore[arg-type]


def test_the_keys_change_while_the_hub_runs(hub: LocalHub) -> None:
    hub.accept_keys({"old"})
    credential = AzureNamedKeyCredential("policy", "old")
    arguments = {**hub.client_arguments("orders"), "credential": credential, "retry_total": 0}
    with EventHubProducerClient(**arguments) as client:
        assert client.get_partition_ids() == ["0", "1"]
        hub.accept_keys({"new"})
        with pytest.raises(AuthenticationError, match="CBS Token authentication failed"):
            client.get_partition_ids()
        credential.update("policy", "new")
        assert client.get_partition_ids() == ["0", "1"]
        hub.accept_keys(None)
        credential.update("policy", "whatever")
        assert client.get_partition_ids() == ["0", "1"]


def test_a_connection_keeps_its_token_when_the_key_is_removed(hub: LocalHub) -> None:
    hub.accept_keys({"old"})
    credential = AzureNamedKeyCredential("policy", "old")
    arguments = {**hub.client_arguments("orders"), "credential": credential}
    with EventHubProducerClient(**arguments) as client:
        client.send_event(EventData("one"), partition_id="0")
        hub.accept_keys({"new"})
        client.send_event(EventData("two"), partition_id="0")
    assert hub.partition_properties("orders", "0").last_sequence_number == 1


def test_a_link_needs_a_token(hub: LocalHub, connect) -> None:  # type: ignore[no-untyped-def]
    hub.accept_keys({"key"})
    peer = connect()
    peer.begin()
    peer.attach_reader()
    refused = peer.receive()[1].performative
    assert refused.error.condition == "amqp:unauthorized-access"
    assert "Partitions/0" in refused.error.description


@pytest.mark.long
@pytest.mark.parametrize("kind", ["SAS", "Entra"])
def test_a_receiver_whose_token_expires_is_detached(hub: LocalHub, kind: str) -> None:
    hub.accept_keys({"key"})
    expiry = int(time.time()) + (4 if kind == "Entra" else 2)

    class Fixed:
        def get_token(self, *_: str, **__: object) -> AccessToken:
            return AccessToken(jwt(expiry), expiry + 3600)  # so that the client does not renew it

    uri = f"sb://{hub.namespace}/orders"
    sas = generate_sas_token(uri, "policy", "key", expiry)
    credential = Fixed() if kind == "Entra" else AzureSasCredential(sas)
    errors: list[Exception] = []
    client = EventHubConsumerClient(
        **{**hub.client_arguments("orders"), "credential": credential},
        consumer_group="$Default",
        retry_total=0,
    )

    def on_error(context: object, error: Exception) -> None:
        errors.append(error)
        client.close()

    with client:
        client.receive(lambda *_: None, partition_id="0", on_error=on_error)
    assert errors
    if kind == "Entra":  # the client knows when a signature expires, and asks for another before
        assert "RenewToken" in str(errors[0])
    assert time.time() >= expiry - 1
    assert not hub.receivers("orders")
