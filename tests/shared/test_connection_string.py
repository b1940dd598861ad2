"""Connection strings, and everything that is not one: the same sentence in every entry."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioClient

import eventhub_checkpoints as sync
from eventhub_checkpoints import aio, arrow, dead_letters
from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.aio import dead_letters as aio_dead_letters
from eventhub_checkpoints.cli.target import Target, read_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.credentials import named_credential
from eventhub_checkpoints.spark.hub import scope_of
from eventhub_checkpoints.spark.options import parse_hub

SECRET = "c2VjcmV0"
POLICY = f"SharedAccessKeyName=listen;SharedAccessKey={SECRET}"
ENDPOINT = "Endpoint=sb://ns.servicebus.windows.net/"
WHOLE = f"{ENDPOINT};{POLICY};EntityPath=orders"
IOT_HUB = f"HostName=factory.azure-devices.net;{POLICY}"
WRONG = {
    WHOLE.replace("sb://", ""): "has an Endpoint that does not begin with sb:// and a host",
    WHOLE.replace("sb://", "sb:/"): "has an Endpoint that does not begin with sb:// and a host",
    WHOLE.replace("sb://", "sb://[::1"): "has an Endpoint that does not begin with sb://",
    IOT_HUB: "is that of an IoT Hub itself, .* Built-in endpoints",
    f"HostName=factory.azure-devices.net;DeviceId=d;SharedAccessKey={SECRET}": "is that of an IoT",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}": "is that of a storage",
    WHOLE.replace(";", "; "): "has a blank or a line break beside a ; or a =",
    WHOLE.replace(";", "\n;"): "has a blank or a line break beside a ; or a =",
    WHOLE.replace("=listen", "= listen"): "has a blank or a line break beside a ; or a =",
    WHOLE.replace(";Ent", "; Ent"): "has a blank or a line break beside a ; or a =",
    f'"{WHOLE}"': "is in quotation marks",
    WHOLE.replace(";Sh", ";;Sh", 1): "is malformed: it has a part that is not NAME=VALUE",
    WHOLE.replace(SECRET, ""): "is malformed: it has no value for SharedAccessKey",
    f"{WHOLE};entitypath=b": "is malformed: it has EntityPath twice",
    f"{ENDPOINT};EntityPath=orders": "has no SharedAccessKeyName and no SharedAccessKey",
    f"{POLICY};EntityPath=orders": "has no Endpoint",
    " ": "is empty",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_without_the_secret(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^the connection string {WRONG[text]}") as wrong:
        ConnectionString.with_secret(text)
    assert SECRET not in str(wrong.value)


@pytest.mark.parametrize("value", [None, 5, b"Endpoint", EventHubConsumerClient])
def test_a_value_that_is_no_string_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"connection string is .* expected a string"):
        ConnectionString.with_secret(value)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f" {WHOLE};\n",
        WHOLE.lower().replace(SECRET.lower(), SECRET),
        f"{ENDPOINT}orders;{POLICY};EntityPath=orders",
        f"{ENDPOINT};SharedAccessSignature=SharedAccessSignature sr=a&sig=b&se=1;EntityPath=orders",
        f"Endpoint=https://ns.servicebus.windows.net:443/;{POLICY};EntityPath=orders;A=B",
        f"Endpoint=sb://emulator;{POLICY};EntityPath=orders;UseDevelopmentEmulator=true",
    ],
)
def test_what_the_client_takes_is_taken(text: str) -> None:
    client = EventHubConsumerClient.from_connection_string(text, "$Default")
    address = HubAddress.from_connection_string(text)
    assert address.eventhub_name == client.eventhub_name == "orders"
    assert address.fully_qualified_namespace == client._address.hostname


def in_environment(text: str) -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HUB_OF_TEST", text)
        return parse_hub({"connectionString": "env:HUB_OF_TEST"})


def processor(module: Any, client: Any, text: str) -> object:
    made = partial(client.from_connection_string, text, "$Default")
    return module.EventProcessor(made, lambda *_: None, store=module.MemoryCheckpointStore())


ENTRIES: dict[str, Any] = {
    "HubAddress": HubAddress.from_connection_string,
    "EventProcessor": partial(processor, sync, EventHubConsumerClient),
    "EventProcessor of aio": partial(processor, aio, AioClient),
    "read_batches": arrow.read_batches,
    "read_batches of aio": aio_arrow.read_batches,
    "DeadLetterHub": dead_letters.DeadLetterHub.from_connection_string,
    "DeadLetterHub of aio": aio_dead_letters.DeadLetterHub.from_connection_string,
    "options of ehcp": lambda text: Target(hub=text).address,
    "environment of ehcp": lambda text: read_target(profile=None, hub=text).scope,
    "option of Spark": lambda text: parse_hub({"connectionString": text}),
    "environment of a Spark job": in_environment,
    "starting_positions": scope_of,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_says_the_same(entry: str) -> None:
    for text in (IOT_HUB, WHOLE.replace("sb://", ""), WHOLE.replace(";", "; ")):
        with pytest.raises(ConfigurationError, match=WRONG[text]) as wrong:
            ENTRIES[entry](text)
        assert SECRET not in str(wrong.value)


def test_a_credential_that_is_a_key_says_the_same() -> None:
    with pytest.raises(ConfigurationError, match="the credential is that of an IoT Hub itself"):
        named_credential(IOT_HUB)
    with pytest.raises(ConfigurationError, match="the credential has a blank"):
        named_credential(POLICY.replace(";", "; "))


def test_a_profile_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[profiles.prod]\nhub = {json.dumps(IOT_HUB)}")
    monkeypatch.setenv("EHCP_CONFIG", str(path))
    with pytest.raises(ConfigurationError, match="is that of an IoT Hub itself"):
        assert read_target(profile="prod").address


@pytest.mark.parametrize("entry", ENTRIES.keys() - {"environment of ehcp"})
def test_a_string_without_a_hub_is_told_how_to_name_it(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="names no hub; add ;EntityPath=HUB to it"):
        ENTRIES[entry](f"{ENDPOINT};{POLICY}")
