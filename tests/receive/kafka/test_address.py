import pickle
import time
from datetime import UTC, datetime

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from confluent_kafka import KafkaError

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import (
    HubAddress,
    HubUnavailableError,
    ReadSettings,
    list_partitions,
)
from eventhub_checkpoints.receive.kafka import address as queries
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.receive.kafka.client import ClientErrors, checked
from waiting import eventually

SECRET = "c2VjcmV0LWtleS10aGF0LW5vLWxvZy1tYXktc2hvdw=="
CONNECTION_STRING = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=reader;"
    f"SharedAccessKey={SECRET};EntityPath=Orders"
)
HUB = HubAddress.from_connection_string(CONNECTION_STRING, "processors")
SERVERS = {"bootstrap.servers": "SSL://broker:9092, other:9092"}


@pytest.fixture
def nobody(closed_port):
    """The address of a topic where nobody listens."""
    return KafkaAddress.of_topic("orders", {"bootstrap.servers": f"127.0.0.1:{closed_port}"})


def test_a_hub_has_the_names_that_it_has_over_amqp():
    assert KafkaAddress.of_hub(HUB).scope() == HUB.scope()


def test_kafka_has_no_owner_levels():
    with pytest.raises(ConfigurationError, match="no owner levels"):
        KafkaAddress.of_hub(HUB).open_stream("0", 0, 5, ReadSettings(owner_level=0))


def test_a_connection_string_becomes_the_settings_of_the_kafka_endpoint():
    assert KafkaAddress.of_hub(HUB).client_settings() == {
        "bootstrap.servers": "ns.servicebus.windows.net:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "$ConnectionString",
        "sasl.password": CONNECTION_STRING,
    }


def test_the_port_of_amqp_is_not_that_of_kafka():
    hub = HubAddress.from_connection_string(CONNECTION_STRING.replace(".net/", ".net:5671/"))
    servers = KafkaAddress.of_hub(hub).client_settings()["bootstrap.servers"]
    assert servers == "ns.servicebus.windows.net:9093"


def test_what_a_job_sets_wins():
    settings = KafkaAddress.of_hub(HUB, {"security.protocol": "SASL_PLAINTEXT"}).client_settings()
    assert settings["security.protocol"] == "SASL_PLAINTEXT"
    assert settings["sasl.username"] == "$ConnectionString"


@pytest.mark.parametrize(
    ("credential", "secret"),
    [
        (f"SharedAccessKeyName=n;SharedAccessKey={SECRET}", f"SharedAccessKey={SECRET}"),
        ("SharedAccessSignature sr=x&sig=y", "SharedAccessSignature=SharedAccessSignature sr=x&s"),
        (AzureNamedKeyCredential("n", SECRET), f"SharedAccessKeyName=n;SharedAccessKey={SECRET}"),
    ],
)
def test_a_key_or_a_signature_becomes_a_connection_string(credential, secret):
    hub = HubAddress.from_credential("ns.servicebus.windows.net", "Orders", credential)
    password = KafkaAddress.of_hub(hub).client_settings()["sasl.password"]
    assert password.startswith("Endpoint=sb://ns.servicebus.windows.net/;")
    assert secret in password
    assert password.endswith(";EntityPath=Orders")


def test_an_address_shows_no_secret_and_goes_to_an_executor():
    address = KafkaAddress.of_hub(HUB, {"ssl.key.password": SECRET})
    assert SECRET not in repr(address) + str(address)
    assert pickle.loads(pickle.dumps(address)) == address


def test_a_topic_is_named_by_its_first_server_unless_its_cluster_has_a_name():
    assert (
        KafkaAddress.of_topic("Orders", SERVERS).scope().fully_qualified_namespace == "broker:9092"
    )
    named = KafkaAddress.of_topic("Orders", SERVERS, "cg", namespace="cluster-a")
    assert str(named) == "cluster-a/Orders"
    assert named.scope().consumer_group == "cg"


def test_a_namespace_lasts_unless_it_is_only_a_server_of_the_cluster():
    assert KafkaAddress.of_topic("Orders", SERVERS).lasting_namespace == ""
    named = KafkaAddress.of_topic("Orders", SERVERS, namespace="cluster-a")
    assert named.lasting_namespace == "cluster-a"
    of_hub = KafkaAddress.of_hub(HUB)
    assert of_hub.lasting_namespace == HUB.fully_qualified_namespace != ""


@pytest.mark.parametrize(("topic", "settings"), [("Orders", {}), (" ", SERVERS)])
def test_a_topic_needs_a_name_and_a_server(topic, settings):
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers"):
        KafkaAddress.of_topic(topic, settings)


@pytest.mark.parametrize("name", ["group.id", "enable.auto.commit", "auto.offset.reset"])
def test_a_setting_that_exact_ranges_depend_on_cannot_be_set(name):
    with pytest.raises(ConfigurationError, match=name) as refused:
        KafkaAddress.of_hub(HUB, {name: SECRET})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["fetch.min.bites", "isolation.level", "fetch.min.bytes"])
def test_a_setting_that_librdkafka_refuses_is_named_without_its_value(name):
    address = KafkaAddress.of_topic("orders", {**SERVERS, name: SECRET})
    with pytest.raises(ConfigurationError, match=name) as refused:
        list_partitions(address)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_an_offset_cannot_be_looked_up():
    with pytest.raises(ConfigurationError, match="give a sequence number"):
        KafkaAddress.of_hub(HUB).ask_first("0", "8589934592", True, 1)


def test_a_silent_server_is_reported_with_the_reason(nobody, monkeypatch):
    monkeypatch.setattr(queries, "FIRST_WAIT", 0.2)
    with pytest.raises(HubUnavailableError, match="Connection refused"):
        nobody.ask_first("0", datetime.now(UTC), True, 1)


def test_a_stream_from_nobody_is_silent(nobody):
    with nobody.open_stream("0", 0, 10, ReadSettings()) as stream:
        assert stream.next(0.3) is None


class Tokens:
    """Stands for a credential of azure-identity."""

    def __init__(self, fails=False):
        self.asked = []
        self.fails = fails

    def get_token(self, *scopes, **_):
        self.asked.append(scopes)
        if self.fails:
            raise RuntimeError("no managed identity here")
        return AccessToken("token", time.time() + 3600)


def test_tokens_are_requested_for_the_namespace(nobody):
    hub = HubAddress.from_credential("ns.servicebus.windows.net:5671", "Orders", Tokens())
    address = KafkaAddress.of_hub(hub, nobody.settings)
    with address.open_stream("0", 0, 10, ReadSettings()) as stream:
        eventually(lambda: stream.next(0.1) is None and address.credential.asked)
    assert set(address.credential.asked) == {("https://ns.servicebus.windows.net/.default",)}


def test_the_reason_for_a_missing_token_is_reported():
    hub = HubAddress.from_credential("ns.servicebus.windows.net", "Orders", Tokens(fails=True))
    with pytest.raises(RuntimeError, match="no managed identity here"):
        list_partitions(KafkaAddress.of_hub(hub))


def test_few_clients_are_kept_and_a_refused_one_is_not():
    made = [
        queries.shared(queries.key_of("ns/orders", {"n": str(n)}, ""), lambda n=n: (n, n))
        for n in range(9)
    ]
    assert [number for number, _ in made] == [*range(9)]
    assert len(queries._kept) <= queries.CLIENTS_KEPT
    again = queries.key_of("ns/orders", {"n": "8"}, "")
    assert queries.shared(again, lambda: ("new", 0)) == (8, 8)
    queries.forget(again)
    assert queries.shared(again, lambda: ("new", 0)) == ("new", 0)
    queries._kept.clear()


class SlowConsumer:
    """Answers the second question only."""

    answers = (None, (3, 5))

    def get_watermark_offsets(self, where, timeout):
        found, *self.answers = self.answers
        return found

    def poll(self, timeout):
        return None


def test_no_answer_is_not_an_empty_partition():
    topic = queries.TopicQueries(SlowConsumer(), ClientErrors("ns/orders", ()), "orders")
    assert topic.ends("0") == (3, 5)


def test_a_server_of_another_protocol_is_named_as_such():
    errors = ClientErrors("ns/orders", ())
    said = (
        "ns:5671/bootstrap: Receive failed: Invalid response size 1095586128 (0..100000000): "
        "increase receive.message.max.bytes (after 6ms in state APIVERSION_QUERY)"
    )
    errors(KafkaError(KafkaError._TRANSPORT, said))
    assert errors.reason == (
        " (ns:5671/bootstrap: the server at this port does not speak Kafka's protocol)"
    )


@pytest.mark.parametrize(
    "server",
    [
        *("ns.servicebus.windows.net:9093", "ns.servicebus.chinacloudapi.cn:9093"),
        *("broker:443", "broker", ""),
    ],
)
def test_ports_that_a_broker_may_have_are_accepted(server):
    servers = {"bootstrap.servers": f"SASL_SSL://{server}" if server else server}
    assert checked(servers) == servers


@pytest.mark.parametrize(
    "server",
    [
        "ns.servicebus.windows.net:5671",
        "ns.servicebus.windows.net:443",
        "ns.servicebus.windows.net",
        "NS.servicebus.UsGovCloudAPI.net:443",
        "ns.servicebus.chinacloudapi.cn",
        "broker:5672",
    ],
)
def test_a_port_of_another_protocol_is_refused(server):
    with pytest.raises(ConfigurationError, match="the Kafka endpoint of Event Hubs has port 9093"):
        checked({"bootstrap.servers": f"broker:9092, SSL://{server}"})
