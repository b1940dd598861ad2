"""The hub in place of Azure's emulator: its configuration file, its port, its container."""

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.localhub import LocalHub, read_emulator_config
from eventhub_checkpoints.localhub.__main__ import _parser, main
from running import Running

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-X", "dev", "-m", "eventhub_checkpoints.localhub"]
HUB = {"Name": "orders", "PartitionCount": "2", "ConsumerGroups": [{"Name": "cg1"}]}


def config(*hubs: Any, **changes: Any) -> dict[str, Any]:
    """A configuration as the emulator's documentation has it."""
    namespace = {"Type": "EventHub", "Name": "emulatorNs1", "Entities": list(hubs)}
    changed = {"NamespaceConfig": [namespace], "LoggingConfig": {"Type": "File"}} | changes
    return {"UserConfig": changed}


def written(folder: Path, value: Any) -> Path:
    file = folder / "Config.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return file


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_hubs_and_groups_are_read_as_others_write_them(tmp_path: Path, mark: str) -> None:
    others = [
        # Aspire writes numbers, and no group that is there anyway.
        {"Name": "audit", "PartitionCount": 1, "ConsumerGroups": []},
        {"Name": "raw", "PartitionCount": "32"},
        {"name": "named", "partitioncount": "4", "consumergroups": [{"name": "$Default"}]},
    ]
    file = written(tmp_path, mark + json.dumps({"Logging": {}} | config(HUB, *others)))
    assert read_emulator_config(file) == {
        "hubs": {"orders": 2, "audit": 1, "raw": 32, "named": 4},
        "consumer_groups": {"orders": ["cg1"], "audit": [], "raw": [], "named": ["$Default"]},
    }


NAMESPACE = "UserConfig.NamespaceConfig[0]"
ENTITY = f"{NAMESPACE}.Entities[0]"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"UserConfig": ', " is not JSON: Expecting value: line 1 column 16 (char 15)"),
        ([], " is []; expected an object"),
        ({}, " has no UserConfig"),
        ({"UserConfig": 3}, ": UserConfig is 3; expected an object"),
        ({"UserConfig": {}}, ": UserConfig has no NamespaceConfig"),
        (
            {"UserConfig": {"NameSpaceConfigs": []}},
            ": UserConfig has the key 'NameSpaceConfigs', which the emulator does not know; "
            "did you mean NamespaceConfig?",
        ),
        (config(HUB, LoggingConfig=[]), ": UserConfig.LoggingConfig is []; expected an object"),
        (
            config(NamespaceConfig={}),
            ": UserConfig.NamespaceConfig is {}; expected an array",
        ),
        (
            config(NamespaceConfig=[]),
            ": UserConfig.NamespaceConfig has 0 namespaces; expected one, as the emulator does",
        ),
        (
            config(NamespaceConfig=[{"Name": "sbemulatorns", "Queues": []}]),
            f": {NAMESPACE} has queues or topics: this is a file of the Service Bus emulator",
        ),
        (
            config(NamespaceConfig=[{"Type": "Kafka", "Entities": []}]),
            f": {NAMESPACE}.Type is 'Kafka'; expected EventHub",
        ),
        (config(NamespaceConfig=[{}]), f": {NAMESPACE} has no Entities"),
        (config(), f": {NAMESPACE}.Entities is empty; expected at least one event hub"),
        (config("orders"), f": {ENTITY} is 'orders'; expected an object"),
        (config({"PartitionCount": "1"}), f": {ENTITY} has no Name"),
        (config({"Name": "orders"}), f": {ENTITY} has no PartitionCount"),
        (
            config(HUB | {"PartitionCount": "two"}),
            f": {ENTITY} is not valid: orders='two': expected 1 to 2048 partitions",
        ),
        (
            config(HUB | {"PartitionCount": 0}),
            f": {ENTITY} is not valid: orders=0: expected 1 to 2048 partitions",
        ),
        (
            config(HUB | {"Name": "a/b"}),
            f": {ENTITY} is not valid: 'a/b' is not a valid name of an event hub",
        ),
        (
            config(HUB, HUB | {"Name": "Orders"}),
            f": {NAMESPACE}.Entities[1] has the name 'Orders' of an earlier one",
        ),
        (
            config({"PartitonCount": 2, "Name": "orders"}),
            f": {ENTITY} has the key 'PartitonCount', which the emulator does not know; "
            "did you mean PartitionCount?",
        ),
        (
            config(HUB | {"Keep": 2}),
            f": {ENTITY} has the key 'Keep', which the emulator does not know; it may have "
            "Name, PartitionCount, ConsumerGroups",
        ),
        (config(HUB | {"name": "x"}), f": {ENTITY} has 'name' twice, in different case"),
        (
            config(HUB | {"ConsumerGroups": ["cg1"]}),
            f": {ENTITY}.ConsumerGroups[0] is 'cg1'; expected an object",
        ),
        (
            config(HUB | {"ConsumerGroups": [{"Name": ""}]}),
            f": {ENTITY}.ConsumerGroups[0].Name is ''; expected the name of a consumer group",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(
    tmp_path: Path, value: Any, reason: str
) -> None:
    file = written(tmp_path, value)
    with pytest.raises(ValueError, match=re.escape(f"{file}{reason}") + "$"):
        read_emulator_config(file)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--config", "there-is-none.json"],
            "--config: [Errno 2] cannot read there-is-none.json: No such file or directory",
        ),
        (["--config", "Config.json", "--group", "x"], "--group cannot be combined with --config"),
        (["--config", "Config.json", "--hub", "a=1"], "not allowed with argument --config"),
        ([], "one of the arguments --hub --config is required"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, config(HUB))
    with pytest.raises(SystemExit):
        main(arguments)
    assert reason in capsys.readouterr().err


def test_the_groups_of_a_hub_are_its_own(connect: Callable[..., Any]) -> None:
    groups = {"Orders": ["cg1"]}
    with LocalHub({"orders": 1, "audit": 1}, consumer_groups=groups) as hub:
        admitted = []
        for name in ("orders", "audit"):
            for group in ("CG1", "$Default", "other"):
                peer = connect(hub)
                peer.begin()
                attached = peer.attach_reader(f"{name}/ConsumerGroups/{group}/Partitions/0")
                if attached.source is not None:
                    admitted.append((name, group))
    assert admitted == [("orders", "CG1"), ("orders", "$Default"), ("audit", "$Default")]


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ({"orders": "cg1"}, "consumer_groups is 'cg1': expected a list of names"),
        ({"orders": [3]}, "a consumer group's name is 3: expected a non-empty string"),
        ({3: ["cg1"]}, "consumer_groups has a hub whose name is 3: expected a non-empty string"),
    ],
)
def test_groups_of_hubs_that_are_no_names_are_refused(groups: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LocalHub({"orders": 1}, consumer_groups=groups)


def test_the_command_serves_a_file_of_the_emulator(tmp_path: Path) -> None:
    file = written(tmp_path, config(HUB, HUB | {"Name": "audit", "PartitionCount": 3}))
    with Running([*COMMAND, "--config", file, "--json"], ROOT, {}) as running:
        running.until(lambda printed: printed.count("\n") == 2)
        described = [json.loads(line) for line in running.printed.splitlines()]
        assert [(hub["hub"], hub["partitions"]) for hub in described] == [
            ("orders", 2),
            ("audit", 3),
        ]
        # As the emulator's own: without a hub, which the client is given beside it.
        port = described[0]["port"]
        text = (
            f"Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        )
        client = EventHubConsumerClient.from_connection_string(
            text, "cg1", eventhub_name="audit", retry_total=0
        )
        with client:
            assert client.get_partition_ids() == ["0", "1", "2"]
        assert running.stop(signal.SIGTERM) == 0, running.printed


def test_the_image_starts_the_command_on_the_emulators_port_with_its_file() -> None:
    lines = (ROOT / "deploy" / "localhub" / "Dockerfile").read_text().splitlines()
    by_word = dict(line.split(" ", 1) for line in lines if line and line[0] != "#")
    assert json.loads(by_word["ENTRYPOINT"])[-2:] == COMMAND[-2:]
    options = _parser().parse_args(json.loads(by_word["CMD"]))
    assert (options.host, options.port) == ("0.0.0.0", int(by_word["EXPOSE"]))
    assert options.port == 5672
    assert options.config == "/Eventhubs_Emulator/ConfigFiles/Config.json"
