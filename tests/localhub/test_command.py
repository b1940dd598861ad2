"""The hub as a process of its own."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.eventhub import (
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    TransportType,
)

from eventhub_checkpoints.localhub.__main__ import main
from waiting import LIMIT

COMMAND = [sys.executable, "-X", "dev", "-m", "eventhub_checkpoints.localhub"]


def start(*arguments):
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stop(process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, out, err


def test_it_prints_connection_strings_that_work_and_stops_on_sigterm():
    process = start(
        "--hub", "orders=3", "--hub", "other=1", "--json", "--group", "audit", "--events", "7"
    )
    try:
        described = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [(hub["hub"], hub["partitions"]) for hub in described] == [
            ("orders", 3),
            ("other", 1),
        ]
        client = EventHubProducerClient.from_connection_string(
            described[0]["connection_string"], retry_total=0
        )
        with client:
            client.send_event(EventData("x"), partition_id="2")
            found = client.get_partition_properties("2")
        assert found["last_enqueued_sequence_number"] == 7
    finally:
        status, rest, err = stop(process, signal.SIGTERM)
    assert (status, rest, err) == (0, "", "")


def test_with_tls_it_prints_what_a_client_needs():
    process = start("--hub", "orders=1", "--tls", "--json", "--namespace", "mine.example.com")
    try:
        described = json.loads(process.stdout.readline())
        assert described["connection_string"] is None
        assert Path(described["connection_verify"]).is_file()
        client = EventHubConsumerClient(
            described["fully_qualified_namespace"],
            described["hub"],
            "$Default",
            AzureNamedKeyCredential("any", "key"),
            custom_endpoint_address=described["custom_endpoint_address"],
            connection_verify=described["connection_verify"],
            transport_type=TransportType.Amqp,
            retry_total=0,
        )
        with client:
            assert client.get_partition_ids() == ["0"]
    finally:
        status, _, _ = stop(process, signal.SIGTERM)
    assert status == 0
    assert not Path(described["connection_verify"]).exists()


def test_it_tells_people_what_it_is_and_stops_on_ctrl_c():
    process = start("--hub", "orders=8")
    first, second, third = (process.stdout.readline() for _ in range(3))
    assert stop(process, signal.SIGINT)[0] == 0
    assert "never for production" in first
    assert second == "hub orders, 8 partitions\n"
    assert third.strip().startswith("Endpoint=sb://127.0.0.1:")
    assert third.strip().endswith("UseDevelopmentEmulator=true;EntityPath=orders")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "--hub"),
        (["--hub", "orders"], "'orders' is not NAME=PARTITIONS"),
        (["--hub", "orders=x"], "'orders=x' is not NAME=PARTITIONS"),
        (["--hub", "orders=0"], "orders=0: expected 1 to 2048 partitions"),
        (["--hub", "orders=2", "--hub", "Orders=3"], "--hub names 'Orders' twice"),
        (["--hub", "a/b=1"], "not a valid name of an event hub"),
        (["--hub", "orders=1", "--port", "99999"], "port is 99999: expected 1 to 65535"),
        (["--hub", "orders=1", "--host", "192.0.2.1"], "192.0.2.1"),
    ],
)
def test_a_bad_argument_is_named(arguments, reason, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err
