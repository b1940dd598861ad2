import pickle
import sys
import types

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import TransportType

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings, list_partitions
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.credentials import (
    CredentialClass,
    credential_of,
    named_credential,
)
from waiting import LIMIT

SECRET = "c2VjcmV0LWtleS10aGF0LW5vLWxvZy1tYXktc2hvdw=="
KEY = f"SharedAccessKeyName=reader;SharedAccessKey={SECRET}"
SIGNATURE = f"SharedAccessSignature sr=sb%3a%2f%2fns&sig={SECRET}&se=4102444800&skn=reader"


class WorkloadCredential:
    """Stands for a class of azure-identity, which is not installed here."""

    made = 0

    def __init__(self):
        WorkloadCredential.made += 1

    def get_token(self, *scopes, **_):
        assert scopes == ("https://eventhubs.azure.net//.default",)
        return AccessToken("token", 4102444800)


@pytest.fixture
def identity(monkeypatch):
    """A package azure-identity with one class."""
    package = types.ModuleType("azure.identity")
    package.WorkloadCredential = WorkloadCredential
    monkeypatch.setitem(sys.modules, "azure.identity", package)
    named_credential.cache_clear()
    yield package
    named_credential.cache_clear()


@pytest.fixture
def address(hub):
    def make(credential):
        return HubAddress.from_credential(
            "ns.servicebus.windows.net",
            "orders",
            credential,
            custom_endpoint_address=hub.endpoint,
            use_tls=False,
            transport_type=TransportType.Amqp,
        )

    return make


@pytest.mark.parametrize("credential", ["WorkloadCredential", KEY, SIGNATURE])
def test_a_hub_is_read_with_a_credential_that_is_a_text(identity, address, credential):
    sent = pickle.loads(pickle.dumps(address(credential)))
    assert list_partitions(sent) == ["0", "1"]
    [batch] = read_range(sent, OffsetRange("0", 90, 100), ReadSettings(receiver_timeout=LIMIT))
    assert batch.column("sequenceNumber").to_pylist() == [*range(90, 100)]
    assert SECRET not in repr(sent) + str(sent)


def test_a_process_makes_a_credential_once_and_keeps_its_tokens(identity):
    before = WorkloadCredential.made
    assert credential_of("WorkloadCredential") is credential_of("WorkloadCredential")
    assert WorkloadCredential.made == before + 1


def test_signatures_and_keys_are_taken_as_they_are():
    signature, key = credential_of(SIGNATURE), credential_of(KEY)
    assert isinstance(signature, AzureSasCredential)
    assert signature.signature == SIGNATURE
    assert isinstance(key, AzureNamedKeyCredential)
    assert key.named_key == ("reader", SECRET)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NoSuchCredential", "azure-identity has no class NoSuchCredential; expected"),
        (
            "WorkloadsCredential",
            "no class WorkloadsCredential; did you mean WorkloadCredential",
        ),
        (
            "clientsecret",
            "is not the name of a class of azure-identity; did you mean ClientSecretCre",
        ),
        ("os.system", "the credential is not a name; expected"),
        (SECRET, "the credential is not a name; expected"),
        (f"SharedAccessKey={SECRET}", "expected SharedAccessKeyName=...;SharedAccessKey=..."),
    ],
)
def test_an_invalid_credential_is_refused_without_showing_it(identity, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        HubAddress.from_credential("ns", "orders", text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_credential_that_needs_arguments_is_refused(identity):
    identity.ClientSecretCredential = AzureSasCredential
    with pytest.raises(ConfigurationError, match=r"cannot be created \(.*.signature"):
        credential_of("ClientSecretCredential")


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(ConfigurationError, match="python -m pip install azure-identity"):
        HubAddress.from_credential("ns", "orders", "DefaultAzureCredential")


class LoginCredential:
    """Stands for a class of azure-identity that takes any argument, and notes them."""

    def __init__(self, **options):
        self.options = options

    def get_token(self, *scopes, **_):
        raise AssertionError("it was asked")


LOGINS = {
    "ns.servicebus.windows.net": {},
    "ns.servicebus.usgovcloudapi.net": {"authority": "login.microsoftonline.us"},
    "ns.servicebus.chinacloudapi.cn:5671": {"authority": "login.chinacloudapi.cn"},
    "gateway.internal": {},
}


@pytest.mark.parametrize("namespace", LOGINS)
@pytest.mark.parametrize("name", ["DefaultAzureCredential", "ClientSecretCredential"])
def test_a_credential_by_name_logs_in_in_the_cloud_of_the_namespace(
    identity, monkeypatch, namespace, name
):
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)
    setattr(identity, name, LoginCredential)
    address = HubAddress.from_credential(namespace, "orders", name)
    assert credential_of(address.chosen_credential).options == LOGINS[namespace]
    named = CredentialClass(name, (("tenant_id", "tenant"),))
    address = HubAddress.from_credential(namespace, "orders", named)
    expected = {"tenant_id": "tenant", **LOGINS[namespace]}
    assert credential_of(address.chosen_credential).options == expected


def test_the_users_own_login_is_kept(identity, monkeypatch):
    namespace = "ns.servicebus.usgovcloudapi.net"
    identity.ClientSecretCredential = identity.ManagedIdentityCredential = LoginCredential
    own = CredentialClass("ClientSecretCredential", (("authority", "login.example"),))
    for named, options in (
        (own, {"authority": "login.example"}),
        ("ManagedIdentityCredential", {}),
    ):
        address = HubAddress.from_credential(namespace, "orders", named)
        assert credential_of(address.chosen_credential).options == options
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "login.example")
    address = HubAddress.from_credential(namespace, "orders", "ClientSecretCredential")
    assert credential_of(address.chosen_credential).options == {}


@pytest.mark.parametrize(("namespace", "name"), [("", "orders"), ("ns", " ")])
def test_a_hub_without_a_name_is_refused(namespace, name):
    with pytest.raises(ConfigurationError, match=r"is (.).*\1; expected the"):
        HubAddress.from_credential(namespace, name, KEY)


class AioCredential:
    async def get_token(self, *scopes, **_):
        raise AssertionError("it was asked")


@pytest.mark.parametrize(
    ("credential", "message"),
    [
        (None, "^credential is None; expected"),
        (object(), "^credential is of type object; expected the name of a class"),
        (AioCredential(), "AioCredential, which is asynchronous; expected one of azure.identity:"),
    ],
)
def test_an_object_that_is_not_a_credential_is_refused_where_it_is_passed(credential, message):
    with pytest.raises(ConfigurationError, match=message):
        HubAddress.from_credential("ns.servicebus.windows.net", "orders", credential)
