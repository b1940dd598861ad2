"""Configuration file of the Azure Event Hubs emulator: its hubs and their consumer groups.

Source: Azure/azure-event-hubs-emulator-installer, `Config.json`; MicrosoftDocs/azure-docs,
`test-locally-with-event-hub-emulator.md`. Names are found in any case, a count may be a string, and
`$Default` need not be listed, as for the emulator. Its quotas (10 hubs, 32 partitions, 20 groups)
are not applied, and the namespace's name and the settings of its log are not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypedDict

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.secrets import quoted, without_secret
from eventhub_checkpoints._shared.settings import nearest
from eventhub_checkpoints.localhub import arguments

if TYPE_CHECKING:
    import os

USER_CONFIG = ("NamespaceConfig", "LoggingConfig")
NAMESPACE = ("Type", "Name", "Entities")
HUB = ("Name", "PartitionCount", "ConsumerGroups")
GROUP = ("Name",)
OF_SERVICE_BUS = ("Queues", "Topics")
TYPE = "EventHub"


class EmulatorConfig(TypedDict):
    """Arguments of a `LocalHub`: `LocalHub(**read_emulator_config("Config.json"))`.

    Attributes:
        hubs: their names, each with its number of partitions.
        consumer_groups: of each hub, in addition to `$Default`.
    """

    hubs: dict[str, int]
    consumer_groups: dict[str, list[str]]


class Node(NamedTuple):
    """Part of the file, and the path of keys to it.

    Attributes:
        file: for messages.
        path: for instance "UserConfig.NamespaceConfig[0]"; "" for the whole.
        value: what stands there.
    """

    file: str
    path: str
    value: Any

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error that names the file and the path.

        Raises:
            ValueError: always.
        """
        where = f"{self.file}: {self.path}" if self.path else self.file
        raise ValueError(f"{where} {reason}")

    def fields(self, known: tuple[str, ...] | None = None) -> dict[str, Node]:
        """Return the members of an object by their names in lower case.

        Raises:
            ValueError: it is no object, or has a name twice, or one that is not known.
        """
        if not isinstance(self.value, dict):
            self.refuse(f"is {quoted(self.value)}; expected an object")
        members: dict[str, Node] = {}
        for name, value in self.value.items():
            if name.lower() in members:
                self.refuse(f"has {quoted(name)} twice, in different case")
            if known is not None and name.lower() not in map(str.lower, known):
                meant = nearest(name, known)
                hint = f"did you mean {meant}?" if meant else f"it may have {', '.join(known)}"
                self.refuse(f"has the key {quoted(name)}, which the emulator does not know; {hint}")
            path = f"{self.path}.{name}" if self.path else name
            members[name.lower()] = Node(self.file, path, value)
        return members

    def items(self) -> list[Node]:
        """Return the items of an array.

        Raises:
            ValueError: it is no array.
        """
        if not isinstance(self.value, list):
            self.refuse(f"is {quoted(self.value)}; expected an array")
        return [
            Node(self.file, f"{self.path}[{number}]", item)
            for number, item in enumerate(self.value)
        ]

    def member(self, fields: dict[str, Node], name: str) -> Node:
        """Return the member of an object's fields that has to be there.

        Raises:
            ValueError: it is missing.
        """
        if name.lower() not in fields:
            self.refuse(f"has no {name}")
        return fields[name.lower()]


def read_emulator_config(path: str | os.PathLike[str]) -> EmulatorConfig:
    """Read the configuration file of the Azure Event Hubs emulator.

    Args:
        path: of the file, often `Config.json`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a file; the message names the place in it.
    """
    shown = without_secret(str(path))
    try:
        # The emulator accepts a byte order mark, which editors on Windows write.
        parsed = parse_json(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise OSError(error.errno, f"cannot read {shown}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{shown} is not JSON: {error}") from None
    whole = Node(shown, "", parsed)
    # What stands beside it is for other programs.
    config = whole.member(whole.fields(), "UserConfig")
    fields = config.fields(USER_CONFIG)
    if "loggingconfig" in fields:
        fields["loggingconfig"].fields()
    return _read_namespace(config.member(fields, "NamespaceConfig"))


def _read_namespace(namespaces: Node) -> EmulatorConfig:
    items = namespaces.items()
    if len(items) != 1:
        namespaces.refuse(f"has {len(items)} namespaces; expected one, as the emulator does")
    namespace = items[0]
    if isinstance(namespace.value, dict) and not set(OF_SERVICE_BUS).isdisjoint(namespace.value):
        namespace.refuse("has queues or topics: this is a file of the Service Bus emulator")
    fields = namespace.fields(NAMESPACE)
    kind = fields.get("type")
    if kind is not None and str(kind.value).lower() != TYPE.lower():
        kind.refuse(f"is {quoted(kind.value)}; expected {TYPE}")
    entities = namespace.member(fields, "Entities")
    config = EmulatorConfig(hubs={}, consumer_groups={})
    for entity in entities.items():
        name, partitions, groups = _read_hub(entity)
        if name.lower() in map(str.lower, config["hubs"]):
            entity.refuse(f"has the name {quoted(name)} of an earlier one")
        config["hubs"][name] = partitions
        config["consumer_groups"][name] = groups
    if not config["hubs"]:
        entities.refuse("is empty; expected at least one event hub")
    return config


def _read_hub(entity: Node) -> tuple[str, int, list[str]]:
    fields = entity.fields(HUB)
    name = entity.member(fields, "Name")
    partitions = entity.member(fields, "PartitionCount")
    count = partitions.value
    if isinstance(count, str) and count.isascii() and count.isdecimal():
        count = int(count)
    try:
        arguments.check_hub(name.value, count)
    except ValueError as error:
        entity.refuse(f"is not valid: {error}")
    groups = fields["consumergroups"].items() if "consumergroups" in fields else []
    return name.value, count, [_read_group(group) for group in groups]


def _read_group(group: Node) -> str:
    name = group.member(group.fields(GROUP), "Name")
    if not isinstance(name.value, str) or not name.value:
        name.refuse(f"is {quoted(name.value)}; expected the name of a consumer group")
    return name.value
