"""Stored positions of a group, and the file formats in which they are exported and imported.

A position names the last processed event. Files of `kafka-consumer-groups` name the event that is
read next instead, which is one higher.

Source: Apache Kafka, `tools/consumer/group/ConsumerGroupCommand.java`, `--export` and
`--from-file`: lines of topic, partition, offset, preceded by the group if there are several.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER, Group, Row, in_order
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.records import (
    MOST_INT64,
    Scope,
    checked_name,
    checked_offset,
    checked_sequence_number,
    listed_offset,
    stored_offset,
)

FORMAT = "eventhub-checkpoints/positions"
VERSION = 1
COLUMNS = [*Scope._fields, "partition_id", "sequence_number", "offset"]

WAITING = "waiting"
MOVED_PREFIX = "moved:"
MOVED = "MOVED"
"""Shown in place of a position that another store has; also the state of such a partition."""


def expected_file() -> str:
    """Return the kinds of files that are read, for errors."""
    return (
        f"a file of {as_typed('export')}, or lines of topic,partition,offset as "
        "kafka-consumer-groups exports"
    )


@dataclass(frozen=True, slots=True)
class Position:
    """Stored position in a partition.

    Attributes:
        sequence_number: of the last processed event; None if only an offset is stored.
        offset: of the same event, opaque; `""` if unknown.
    """

    sequence_number: int | None
    offset: str = ""

    @classmethod
    def of(cls, row: Row) -> "Position":
        """Return the position in a row of `list_checkpoints`."""
        return cls(row.get("sequence_number"), stored_offset(row.get("offset")))

    @property
    def next(self) -> int | None:
        """Return the sequence number of the event that is read next; None if unknown or closed."""
        if self.sequence_number is None or self.is_closed:
            return None
        return self.sequence_number + 1

    def as_dict(self, scope: Scope, partition_id: str) -> dict[str, str | int | None]:
        """Return the argument of `update_checkpoint`."""
        return {
            **scope.as_dict(),
            "partition_id": partition_id,
            "sequence_number": self.sequence_number,
            "offset": self.offset,
        }

    def as_row(self) -> Row:
        """Return the position as `list_checkpoints` shows it, for `replace_checkpoint`."""
        number = self.sequence_number
        return {"sequence_number": number, "offset": listed_offset(self.offset, number)}

    @property
    def is_closed(self) -> bool:
        """Return whether it stands for no position, because another store has it."""
        return self.sequence_number == CLOSED_NUMBER

    @property
    def is_waiting(self) -> bool:
        """Return whether it is closed until a position arrives from another store."""
        return self.is_closed and not self.offset.startswith(MOVED_PREFIX)

    def __str__(self) -> str:
        if self.is_closed:
            return MOVED
        if self.sequence_number is None:
            return f"offset {self.offset}"
        return str(self.sequence_number)


Positions = Mapping[str, Position]
"""Positions by partition id."""


@dataclass(frozen=True, slots=True)
class GroupPositions:
    """Positions of a consumer group.

    Attributes:
        positions: by partition id.
    """

    scope: Scope
    positions: Positions = field(default_factory=dict)


def positions_of(group: Group) -> dict[str, Position]:
    """Return the positions of a group by partition id, in numeric order."""
    return {id_: Position.of(group.checkpoints[id_]) for id_ in in_order(group.checkpoints)}


def read_positions(store: CheckpointStore, scope: Scope) -> dict[str, Position]:
    """Read the positions of a group from a store, by partition id."""
    return {row["partition_id"]: Position.of(row) for row in store.list_checkpoints(*scope)}


def to_json(groups: Iterable[GroupPositions], **more: object) -> str:
    """Return positions as JSON, with further keys of the outermost object."""
    value = {
        "format": FORMAT,
        "version": VERSION,
        **more,
        "groups": [
            {**group.scope.as_dict(), "checkpoints": json_rows(group.positions)} for group in groups
        ],
    }
    return json.dumps(value, indent=2) + "\n"


def json_rows(positions: Positions) -> list[dict[str, object]]:
    """Return positions as the objects of a JSON array, in numeric order."""
    return [
        {
            "partition_id": partition_id,
            "sequence_number": positions[partition_id].sequence_number,
            "offset": positions[partition_id].offset,
        }
        for partition_id in in_order(positions)
    ]


def to_csv(groups: Iterable[GroupPositions]) -> str:
    """Return positions as CSV with a header; an unknown sequence number is empty."""
    return csv_text(
        [
            COLUMNS,
            *(
                (*group.scope, partition_id, position.sequence_number, position.offset)
                for group in groups
                for partition_id in in_order(group.positions)
                for position in [group.positions[partition_id]]
            ),
        ]
    )


def following(positions: Positions) -> dict[str, int]:
    """Return the event read next of each partition.

    Raises:
        ConfigurationError: a position is closed, or has no sequence number.
    """
    numbers: dict[str, int] = {}
    for id_, position in positions.items():
        if position.next is None:
            reason = "is closed" if position.is_closed else "has no sequence number"
            raise ConfigurationError(
                f"the checkpoint of partition {id_} {reason}, so the format kafka cannot name the "
                "event that is read next; use json"
            )
        numbers[id_] = position.next
    return numbers


def to_kafka(eventhub_name: str, following: Mapping[str, int]) -> str:
    """Return the numbers of the events read next, in the CSV of `kafka-consumer-groups`."""
    return csv_text((eventhub_name, id_, following[id_]) for id_ in in_order(following))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_json_object(text: str, name: str, expected: str) -> dict[str, object]:
    """Parse the outermost object of a JSON file of positions.

    Args:
        text: of the file.
        name: name of the file, for errors.
        expected: which files are read, likewise.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{name} is not JSON ({error}); expected {expected}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ConfigurationError(f"{name} is not a file of positions; expected {expected}")
    if value.get("version") != VERSION:
        raise ConfigurationError(
            f"{name} has version {quoted(value.get('version'))}; this release reads {VERSION}"
        )
    return value


def groups_of(value: Mapping[str, object], name: str, expected: str) -> list[GroupPositions]:
    """Return the groups of a JSON file of positions.

    Args:
        value: the outermost object.
        name: name of the file, for errors.
        expected: which files are read, likewise.

    Raises:
        ConfigurationError: a group or a position is malformed.
    """
    groups = value.get("groups")
    if not isinstance(groups, list) or not all(isinstance(each, dict) for each in groups):
        raise ConfigurationError(f"{name} has no list of groups; expected {expected}")
    positions = []
    for group in groups:
        rows = group.get("checkpoints")
        if not isinstance(rows, list):
            raise ConfigurationError(f"a group of {name} has no checkpoints; expected {expected}")
        try:
            scope = Scope.from_dict(group)
            positions.append(GroupPositions(scope, unique([position_row(row) for row in rows])))
        except InvalidRecordError as error:
            raise ConfigurationError(f"{name}: {error}") from None
    return positions


def unique(rows: Iterable[tuple[str, Position]]) -> dict[str, Position]:
    """Return rows by partition id.

    Raises:
        InvalidRecordError: two rows are of the same partition.
    """
    by_partition: dict[str, Position] = {}
    for partition_id, position in rows:
        if partition_id in by_partition:
            raise InvalidRecordError("partition_id", partition_id, "each partition once")
        by_partition[partition_id] = position
    return by_partition


def position_row(row: object) -> tuple[str, Position]:
    """Return partition id and position of a row of a file.

    Raises:
        InvalidRecordError: a field is missing or invalid.
    """
    if not isinstance(row, Mapping):
        raise InvalidRecordError("a checkpoint", row, "an object")
    partition_id = checked_name("partition_id", row.get("partition_id"))
    number, offset = row.get("sequence_number"), row.get("offset") or ""
    if number in (None, "") and offset:
        if not isinstance(offset, str):
            raise InvalidRecordError("offset", offset, "a string")
        return partition_id, Position(None, offset)
    number = checked_sequence_number(number)
    return partition_id, Position(number, checked_offset(offset, number))


def read_csv(text: str, name: str) -> list[GroupPositions]:
    """Parse the CSV with a header that `to_csv` writes.

    Raises:
        ConfigurationError: a line is malformed.
    """
    rows: dict[Scope, list[tuple[str, Position]]] = {}
    reader = csv.DictReader(io.StringIO(text))
    try:
        for row in reader:
            rows.setdefault(Scope.from_dict(row), []).append(position_row(row))
    except (InvalidRecordError, csv.Error) as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: {error}") from None
    try:
        return [GroupPositions(scope, unique(positions)) for scope, positions in rows.items()]
    except InvalidRecordError as error:
        raise ConfigurationError(f"{name}: {error}") from None


def is_kafka(text: str) -> bool:
    """Return whether a file is the CSV of `kafka-consumer-groups`, which has no header."""
    first = text.lstrip().partition("\n")[0].strip()
    return not first.startswith("{") and first != ",".join(COLUMNS)


def read_groups(text: str, name: str) -> list[GroupPositions]:
    """Parse a file that `ehcp export` wrote, JSON or CSV.

    Raises:
        ConfigurationError: it is malformed.
    """
    if text.lstrip().startswith("{"):
        expected = expected_file()
        return groups_of(read_json_object(text, name, expected), name, expected)
    return read_csv(text, name)


def csv_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line of a CSV.

    Raises:
        ConfigurationError: a line is malformed.
    """
    reader = csv.reader(io.StringIO(text))
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: {error}") from None


def read_kafka(text: str, name: str, scope: Scope) -> dict[str, int]:
    """Parse the CSV of `kafka-consumer-groups`.

    Args:
        text: lines of topic, partition, offset; or of group, topic, partition, offset.
        name: name of the file, for errors.
        scope: the hub is the topic. Lines of another group are left out.

    Returns:
        Sequence number of the event read next, by partition id.

    Raises:
        ConfigurationError: a line is malformed, or of another topic.
    """
    numbers: dict[str, int] = {}
    for line, fields in csv_rows(text, name):
        values = [value.strip() for value in fields]
        if not any(values):
            continue
        where = f"{name}, line {line}"
        if len(values) == 4:
            if values[0].lower() != scope.consumer_group.lower():
                continue
            values = values[1:]
        if len(values) != 3 or not is_partition_id(values[1]) or not is_partition_id(values[2]):
            raise ConfigurationError(
                f"{where} is {quoted(','.join(fields))}; expected {expected_file()}"
            )
        topic, partition_id, number = values[0], values[1], int(values[2])
        if topic.lower() != scope.eventhub_name.lower():
            raise ConfigurationError(
                f"{where} is of topic {quoted(topic)}; the hub is {quoted(scope.eventhub_name)}"
            )
        if number > MOST_INT64:
            raise ConfigurationError(f"{where} has offset {number}; expected at most 2**63 - 1")
        if partition_id in numbers:
            raise ConfigurationError(f"{where} is the second line for partition {partition_id}")
        numbers[partition_id] = number
    if not numbers:
        raise ConfigurationError(f"{name} has no line for {scope}; expected {expected_file()}")
    return numbers
