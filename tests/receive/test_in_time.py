"""What takes no longer than it may, on the real clock: with real clients and real sockets."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from eventhub_checkpoints import HubUnavailableError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, ReadSettings, list_partitions
from eventhub_checkpoints.receive.kafka import address as kafka_queries
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from waiting import takes

pytestmark = pytest.mark.long
FAST = ReadSettings(receive_path="fast")


def test_an_idle_hub_is_waited_for_as_long_as_asked(hub: LocalHub, address: HubAddress) -> None:
    with address.open_stream("1", 0, 1, FAST) as stream, takes(0.3, 1.7):
        assert stream.next(0.3) is None


def test_a_silent_server_is_waited_for_as_long_as_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = HubAddress.from_connection_string(
            f"Endpoint=sb://127.0.0.1:{silent.getsockname()[1]};SharedAccessKeyName=n;"
            "SharedAccessKey=k;UseDevelopmentEmulator=true;EntityPath=orders"
        )
        with takes(0.3, 1.7), address.open_stream("0", 0, 1, FAST) as stream:
            assert stream.next(0.3) is None
        with (
            takes(0.5, more=1.5),
            pytest.raises(HubUnavailableError, match="gave no answer within"),
        ):
            list_partitions(address, timeout=0.5)


def test_queries_to_a_hub_that_falls_silent_end_in_time(hub: LocalHub, address: HubAddress) -> None:
    with address.open_queries() as queries:
        queries.state(["0", "1"])
        hub.delay(600)
        with (
            takes(0.5, more=1.5),
            pytest.raises(HubUnavailableError, match="gave no answer within"),
        ):
            queries.state(["0", "1"], 0.5)
        hub.delay(0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda nobody: nobody.ask_first("0", datetime.now(UTC), True, 1),
        lambda nobody: list_partitions(nobody, timeout=1),
    ],
    ids=["first", "partitions"],
)
def test_a_broker_that_is_not_there_is_given_up_in_time(
    closed_port: int, monkeypatch: pytest.MonkeyPatch, ask: Callable[[KafkaAddress], object]
) -> None:
    monkeypatch.setattr(kafka_queries, "FIRST_WAIT", 0.2)
    servers = {"bootstrap.servers": f"127.0.0.1:{closed_port}"}
    nobody = KafkaAddress.of_topic("orders", servers)
    with takes(0, 3), pytest.raises(HubUnavailableError):
        ask(nobody)
    with nobody.open_stream("0", 0, 10, ReadSettings()) as stream, takes(0.3, 1.7):
        assert stream.next(0.3) is None
