"""Queries to a hub over one kept connection: what it costs, and how it is replaced."""

import threading
from io import BytesIO

import pytest
from azure.eventhub import TransportType
from azure.eventhub._pyamqp._encode import encode_payload
from azure.eventhub._pyamqp.message import Message as OfficialMessage
from azure.eventhub._pyamqp.message import Properties as OfficialProperties

from eventhub_checkpoints import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.localhub import LocalHub, links
from eventhub_checkpoints.localhub.management import _reply, answer
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.amqp import management, queries
from eventhub_checkpoints.receive.amqp.management import Requests
from eventhub_checkpoints.sdk import fallback, private_names
from eventhub_checkpoints.sdk import management as sdk_management
from eventhub_checkpoints.sdk.private_names import PRIVATE_NAMES, QUERIES, PrivateName
from silent_connection import silence
from waiting import LIMIT, eventually
from websocket_gate import WebSocketGate

QUICK = {"retry_total": 2}
ONCE = {"retry_total": 0}


@pytest.fixture
def hub(hub):
    """A hub `orders` with 8 partitions, of which partition 0 holds 100 events."""
    hub.recreate("orders", 8)
    hub.publish("orders", "0", ["event"] * 100)
    return hub


@pytest.fixture
def asking(hub):
    """Opens queries to the hub, which end with the test."""
    made = []

    def ask(**settings):
        address = HubAddress.from_connection_string(hub.connection_string("orders"), **settings)
        made.append(address.open_queries())
        return made[-1]

    yield ask
    for each in made:
        each.close()


IDS = [str(number) for number in range(8)]


def ends(state):
    return {key: each.next_sequence_number for key, each in state.partitions.items()}


def test_the_questions_of_many_polls_share_one_connection(hub, asking, accepted_connections):
    one = asking(**ONCE)
    for number in range(100, 120):
        assert ends(one.state(IDS)) == {**dict.fromkeys(IDS, 0), "0": number}
        hub.publish("orders", "0", ["more"])
    assert len(accepted_connections) == 1
    one.close()
    eventually(lambda: hub.connections() == 0)
    # Closed is not over: the next query connects again.
    assert ends(one.state())["0"] == 120
    assert len(accepted_connections) == 2


def test_questions_that_are_used_once_close_their_connection(hub, accepted_connections):
    address = HubAddress.from_connection_string(hub.connection_string("orders"))
    with address.open_queries() as one:
        found, properties = one.ask(["3", "11"], LIMIT)
    assert found.partition_ids == IDS
    assert [*properties] == ["3"]
    eventually(lambda: hub.connections() == 0)
    assert len(accepted_connections) == 1


@pytest.mark.parametrize("break_", ["drop_connections", "expire"])
def test_a_connection_that_was_lost_between_queries_is_replaced_in_silence(
    hub, asking, accepted_connections, caplog, break_
):
    one = asking(**ONCE)
    before = one.state(IDS)
    if break_ == "expire":
        # The token has expired during a long pause.
        one._link.connection._authenticator._expires_on = 0
    else:
        assert hub.drop_connections() == 1
    assert one.state(IDS) == before
    assert len(accepted_connections) == 2
    assert not [each for each in caplog.records if each.name.startswith("eventhub_checkpoints")]


def test_a_connection_is_not_used_after_a_long_pause(asking, accepted_connections, monkeypatch):
    one = asking()
    one.state()
    monkeypatch.setattr(queries, "KEPT_FOR", -1.0)
    one.state()
    # The second time before each of the two queries.
    assert len(accepted_connections) == 3


def test_a_kept_connection_that_has_fallen_silent_is_replaced(
    hub, asking, accepted_connections, monkeypatch
):
    one = asking(**ONCE)
    before = one.state(IDS)
    monkeypatch.setattr(queries, "KEPT_TIMEOUT", 0.2)
    silence(hub, accepted_connections[0])
    assert one.state(IDS, LIMIT) == before
    assert len(accepted_connections) == 2


def test_a_hub_that_falls_silent_for_good_is_given_up(hub, asking):
    one = asking()
    one.state(IDS)
    hub.delay(600)
    with pytest.raises(HubUnavailableError, match=r"partition 0, 1, .*/orders gave no answer with"):
        one.state(IDS, 0.5)
    hub.delay(0)
    assert one.state(IDS).partitions.keys() == set(IDS)


def test_a_frame_that_ends_in_its_middle_is_given_up(hub, asking):
    one = asking(**ONCE)
    one.state(IDS)
    hub.delay(600)
    one._link.connection._transport._read_buffer = BytesIO(b"\0\0")
    with pytest.raises(HubUnavailableError, match="gave no answer within"):
        one.state(IDS, 0.5)
    hub.delay(0)


def test_partitions_and_hubs_that_are_new_are_noticed(hub, asking, accepted_connections):
    one = asking(**ONCE)
    first = one.state(IDS)
    hub.add_partitions("orders", 4)
    grown = one.state(IDS)
    assert [*grown.partitions] == [str(number) for number in range(12)]
    hub.recreate("orders", 2)
    again = one.state(grown.partitions)
    assert [*again.partitions] == ["0", "1"]
    assert first.created == grown.created < again.created
    assert len(accepted_connections) == 1


def test_a_hub_that_is_deleted_is_named(hub, asking):
    one = asking(**ONCE)
    one.state(IDS)
    hub.delete("orders")
    with pytest.raises(ConfigurationError, match="has no event hub 'orders'"):
        one.state(IDS)
    hub.create("orders", 2)
    assert [*one.state(IDS).partitions] == ["0", "1"]


def test_only_what_was_refused_is_asked_again(hub, asking, accepted_connections, monkeypatch):
    asked = []

    def busy(request, hubs):
        partition_id = request.application_properties.get("partition")
        asked.append(partition_id)
        if partition_id == "5" and asked.count("5") < 3:
            return _reply(request, 503, "the server is busy", "com.microsoft:server-busy")
        return answer(request, hubs)

    monkeypatch.setattr(links, "answer", busy)
    assert [*asking(**QUICK).state(IDS).partitions] == IDS
    assert asked == [None, *IDS, "5", "5"]
    assert len(accepted_connections) == 1
    asked.clear()
    with pytest.raises(HubUnavailableError, match="the server is busy"):
        asking(**ONCE).state(IDS)


def test_a_rejected_request_is_an_error_and_not_a_silence(
    asking, accepted_connections, monkeypatch
):
    encode, broken = Requests.encode, [True]

    def spoil(self, message_id, question):
        return b"not a message" if broken and broken.pop() else encode(self, message_id, question)

    monkeypatch.setattr(Requests, "encode", spoil)
    assert [*asking(**QUICK).state(IDS, LIMIT).partitions] == IDS
    assert len(accepted_connections) == 2
    broken.append(True)
    with pytest.raises(HubUnavailableError, match=r"a request was not accepted: .*decode-error"):
        asking(**ONCE).state(IDS, LIMIT)


def test_credit_for_replies_is_granted_again(asking, monkeypatch):
    monkeypatch.setattr(sdk_management, "REPLY_CREDIT", 24)
    one = asking(**ONCE)
    for _ in range(10):
        assert [*one.state(IDS, LIMIT).partitions] == IDS


def test_a_request_may_be_larger_than_a_frame(asking):
    one = asking(**ONCE)
    one.state(IDS)
    one._link.connection._connection._remote_max_frame_size = 200
    assert [*one.state(IDS, LIMIT).partitions] == IDS


@pytest.mark.parametrize("count", [1, 8, 256])
def test_many_partitions_are_asked_about_at_once(hub, count, accepted_connections):
    hub.create(f"hub-of-{count}", count)
    string = hub.connection_string(f"hub-of-{count}")
    with HubAddress.from_connection_string(string).open_queries() as one:
        state = one.state()
        assert one.state(state.partitions) == state
    hub.delete(f"hub-of-{count}")
    assert [*state.partitions] == [str(number) for number in range(count)]
    assert len(accepted_connections) == 1


def test_a_question_does_not_wait_for_the_answers_to_others(hub, asking, monkeypatch):
    hub.recreate("orders", 256)
    one = asking(**ONCE)
    one.state()
    asked = []

    def note(request, hubs):
        asked.append(request)
        return answer(request, hubs)

    monkeypatch.setattr(links, "answer", note)
    hub.delay(600)
    failures = []

    def ask():
        try:
            one.state([str(number) for number in range(256)], LIMIT)
        except HubUnavailableError as error:
            failures.append(error)

    asking_thread = threading.Thread(target=ask)
    asking_thread.start()
    eventually(lambda: len(asked) == 257)
    hub.refuse_connections()
    hub.drop_connections()
    asking_thread.join(LIMIT)
    hub.refuse_connections(False)
    hub.delay(0)
    assert len(failures) == 1


@pytest.mark.parametrize("message_size", [7, 70_000])
def test_questions_go_over_a_websocket(hub, message_size):
    string = hub.connection_string("orders").split(";", 1)[1]
    with WebSocketGate(hub.port, message_size=message_size) as gate:
        address = HubAddress.from_connection_string(
            f"Endpoint=sb://ns.servicebus.windows.net/;{string}",
            custom_endpoint_address=f"sb://127.0.0.1:{gate.port}",
            transport_type=TransportType.AmqpOverWebsocket,
            use_tls=False,
        )
        with address.open_queries() as one:
            for _ in range(2):
                assert ends(one.state(IDS)) == {**dict.fromkeys(IDS, 0), "0": 100}
        assert gate.clients == 1


def test_questions_go_over_tls():
    with LocalHub({"orders": 40}, tls=True) as hub:
        address = HubAddress.from_credential(
            hub.namespace,
            "orders",
            "SharedAccessKeyName=n;SharedAccessKey=a2V5",
            custom_endpoint_address=hub.endpoint,
            transport_type=TransportType.Amqp,
            connection_verify=hub.ca_file,
        )
        with address.open_queries() as one:
            assert len(one.state([str(number) for number in range(40)]).partitions) == 40


# Where the client is not as it is known


@pytest.fixture
def warnings(monkeypatch, caplog):
    monkeypatch.setattr(fallback, "_said", set())

    def found():
        return [each.getMessage() for each in caplog.records if each.name == queries.__name__]

    return found


@pytest.mark.parametrize("owner", ["EventHubConsumerClient", "Session", "ReceiverLink"])
def test_a_client_without_a_private_name_is_used_by_its_public_api(
    hub, asking, accepted_connections, monkeypatch, warnings, owner
):
    usual = asking().state(["0", "7"])
    names = (*PRIVATE_NAMES, PrivateName(owner, "_gone", "a test", (QUERIES,)))
    monkeypatch.setattr(private_names, "PRIVATE_NAMES", names)
    one = asking()
    accepted_connections.clear()
    assert one.state(["0", "7"]) == usual
    assert one.state(["0", "99"]) == usual
    [sentence] = warnings()
    assert "._gone; the hub is queried through the client's public API" in sentence
    assert len(accepted_connections) > 8
    eventually(lambda: hub.connections() <= 1)


def test_a_client_of_the_next_major_version_is_used_by_its_public_api(
    asking, monkeypatch, warnings
):
    monkeypatch.setattr(fallback.check_version, "__defaults__", ("6.0.0b1",))
    assert [*asking().ask([], LIMIT)[0].partition_ids] == IDS
    [sentence] = warnings()
    assert "azure-eventhub 6.0.0b1 is not supported" in sentence


@pytest.mark.parametrize(
    "fields", [{"partition_ids": 5, "created_at": 0}, {"partition_ids": ["0"], "created_at": "now"}]
)
def test_properties_of_an_unknown_form_are_left_to_the_client(
    asking, monkeypatch, warnings, fields
):
    one, add = asking(), queries.Answers.add

    def changed(self, answers):
        hub = answers[management.HUB]
        return add(self, {**answers, management.HUB: hub._replace(value=fields)})

    monkeypatch.setattr(queries.Answers, "add", changed)
    assert one.ask([], LIMIT)[0].partition_ids == IDS
    [sentence] = warnings()
    assert "the hub's properties cannot be read" in sentence


@pytest.mark.parametrize("reply", [b"", b"\x00", b"\x00\x53\x74\xc1\x01\x00", b"\x40"])
def test_what_is_no_reply_is_said(reply):
    with pytest.raises(fallback.UnreadableFrameError, match=r"reply of \$management cannot"):
        management.read_reply(reply)


@pytest.mark.parametrize("question", ["", "0", "17", "255"])
def test_a_request_has_the_bytes_of_the_client(question):
    token = "SharedAccessSignature sr=sb%3a%2f%2fns%2forders&sig=abc%3d&se=1764111111&skn=n" * 4
    requests = Requests("orders", token)
    for message_id in ("00000001", "7f7f7f7f", "0000001a"):
        fields = {
            "name": "orders",
            **({"partition": question} if question else {}),
            "security_token": token,
            "operation": "READ",
            "type": "com.microsoft:partition" if question else "com.microsoft:eventhub",
        }
        encoded = bytearray()
        properties = OfficialProperties(message_id=message_id)
        encode_payload(
            encoded, OfficialMessage(properties=properties, application_properties=fields)
        )
        assert requests.encode(message_id, question) == bytes(encoded)
