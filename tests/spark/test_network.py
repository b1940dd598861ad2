"""Ways to a hub that are options: proxies, gateways, own certificates, and credentials."""

import pickle
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa
import pytest

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.credentials import (
    CredentialClass,
    credential_of,
    named_credential,
)
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.send.arrow import read_rows
from eventhub_checkpoints.spark.sink.options import SinkOptions
from eventhub_checkpoints.spark.sink.writer import new_sender
from eventhub_checkpoints.spark.source.batches import make_tasks, plan_batch, read_task
from eventhub_checkpoints.spark.source.options import SourceOptions
from forward_proxy import ForwardProxy
from websocket_gate import WebSocketGate

SECRET = "p@ss/aGlkZGVuIGtleQ=="
NAMESPACE = "ns.servicebus.windows.net"
NAMED = {"fullyQualifiedNamespace": NAMESPACE, "eventHubName": "orders"}
VAULT = {
    "credential": "own_credentials:Vault",
    "credential.tenant_id": "contoso",
    "credential.client_secret": "env:VAULT_SECRET",
}


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 1}) as running:
        yield running


@pytest.fixture(autouse=True)
def vault(own_module: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_SECRET", SECRET)
    named_credential.cache_clear()


def write(options: dict[str, str], *bodies: bytes) -> None:
    """Send rows as a task of the sink does, whose options were pickled."""
    parsed = pickle.loads(pickle.dumps(SinkOptions.parse(options)))
    assert SECRET not in repr(parsed)
    sender = new_sender(parsed)
    sender.send(read_rows(pa.RecordBatch.from_pydict({"body": list(bodies)})))
    sender.flush()
    sender.close()


def read(options: dict[str, str]) -> list[bytes]:
    """Read all bodies as the driver and the tasks of the source do."""
    parsed = SourceOptions.parse(options)
    tasks = pickle.loads(pickle.dumps(make_tasks(parsed, plan_batch(parsed))))
    assert SECRET not in repr(parsed) + repr(tasks)
    batches = [batch for task in tasks for batch in read_task(task)]
    return [body for batch in batches for body in batch.column("body").to_pylist()]


def assert_written_and_read(options: dict[str, str]) -> None:
    write(options, b"a", b"b")
    assert read(options) == [b"a", b"b"]


def emulated(hub: LocalHub) -> str:
    """Return a connection string of another namespace, whose hub has no TLS."""
    return f"Endpoint=sb://{NAMESPACE}/;{hub.connection_string('orders').split(';', 1)[1]}"


@pytest.mark.parametrize(
    ("form", "path"),
    [("url", "fast"), ("json", "fast"), ("environment", "fast"), ("url", "public")],
)
def test_a_hub_is_reached_through_a_proxy(
    hub: LocalHub, form: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WebSocketGate(hub.port) as gate, ForwardProxy(gate.port, f"user:{SECRET}") as proxy:
        url = f"http://user:{quote(SECRET, safe='')}@127.0.0.1:{proxy.port}"
        json = (
            f'{{"proxy_hostname": "127.0.0.1", "proxy_port": {proxy.port}, "username": "user", '
            f'"password": "{SECRET}"}}'
        )
        monkeypatch.setenv("PROXY", url)
        value = {"url": url, "json": json, "environment": "env:PROXY"}[form]
        options = {"connectionString": emulated(hub), "httpProxy": value}
        write({**options, "sendPath": path}, b"a", b"b")
        assert read({**options, "receivePath": path}) == [b"a", b"b"]
        assert (proxy.refused, gate.clients) == (0, proxy.served)
        assert gate.clients >= 3


def test_a_hub_is_reached_over_websockets_at_a_custom_endpoint(hub: LocalHub) -> None:
    with WebSocketGate(hub.port) as gate:
        assert_written_and_read(
            {
                "connectionString": emulated(hub),
                "transportType": "amqpoverwebsocket",
                "eventhubs.customEndpointAddress": f"sb://127.0.0.1:{gate.port}/",
            }
        )
        assert gate.clients >= 3


def test_a_custom_endpoint_without_a_transport_is_a_websocket_as_in_the_client(
    hub: LocalHub,
) -> None:
    with WebSocketGate(hub.port) as gate:
        endpoint = {"customEndpointAddress": f"127.0.0.1:{gate.port}"}
        assert_written_and_read({"connectionString": emulated(hub), **endpoint})
        assert gate.clients >= 3


@pytest.fixture(scope="module")
def tls_hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 1}, tls=True) as running:
        yield running


@pytest.fixture
def over_tls(tls_hub: LocalHub) -> dict[str, str]:
    """Options of a hub whose certificate is signed by an authority of its own."""
    tls_hub.recreate("orders", 1)
    return {
        **NAMED,
        "transportType": "Amqp",
        "customEndpointAddress": tls_hub.endpoint,
        "connectionVerify": tls_hub.ca_file,
    }


CREDENTIALS = {
    "class with arguments": VAULT,
    "function": {"credential": "own_credentials:token"},
    "connector": {
        "useAadAuth": "true",
        "aadAuthCallback": "own_credentials:Vault",
        "AadAuthCallbackParams": '{"tenant_id": "contoso", "client_secret": "env:VAULT_SECRET"}',
    },
    "key": {"credential": "SharedAccessKeyName=n;SharedAccessKey=a2V5"},
}


@pytest.mark.parametrize("credential", CREDENTIALS.values(), ids=CREDENTIALS)
def test_an_own_certificate_and_a_credential_are_enough(
    over_tls: dict[str, str], credential: dict[str, str]
) -> None:
    assert_written_and_read({**over_tls, **credential})


def test_the_connectors_string_without_a_key_names_the_hub(over_tls: dict[str, str]) -> None:
    network = {name: value for name, value in over_tls.items() if name not in NAMED}
    string = f"Endpoint=sb://{NAMESPACE};EntityPath=orders;"
    assert_written_and_read({"connectionString": string, **network, **VAULT})


def test_a_function_is_called_again_only_when_its_token_expires() -> None:
    lasting = credential_of("own_credentials:token")
    assert lasting.get_token("scope") == lasting.get_token("scope")
    brief = credential_of(CredentialClass("own_credentials:token", (("expires_on", "1"),)))
    assert brief.get_token("scope") != brief.get_token("scope")


STRING = f"Endpoint=sb://{NAMESPACE}/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"


@pytest.mark.parametrize(
    "options",
    [
        {"connectionString": STRING},
        {"eventHubName": "orders", "kafka.bootstrap.servers": "broker:9092"},
    ],
)
def test_over_kafka_the_certificates_are_those_of_librdkafka(
    options: dict[str, str], tls_hub: LocalHub
) -> None:
    verified = {**options, "transport": "kafka", "connectionVerify": tls_hub.ca_file}
    for parsed in (SourceOptions.parse(verified), SinkOptions.parse(verified)):
        assert isinstance(parsed.address, KafkaAddress)
        assert parsed.address.client_settings()["ssl.ca.location"] == tls_hub.ca_file


def test_over_kafka_a_credential_has_its_arguments() -> None:
    address = SourceOptions.parse({**NAMED, **VAULT, "transport": "kafka"}).address
    assert isinstance(address, KafkaAddress)
    tokens = address.tokens()
    assert tokens is not None
    assert tokens("")[0] == "token"
    assert SECRET not in repr(address)


def test_a_websocket_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websocket", None)
    with pytest.raises(ConfigurationError, match="pip install websocket-client"):
        SourceOptions.parse({"connectionString": STRING, "transportType": "AmqpOverWebsocket"})
