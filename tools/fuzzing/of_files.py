"""Targets: files that commands read, dead letters, and the requests of autoscalers and the page."""

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from azure.eventhub import EventData
from google.protobuf.message import DecodeError

from eventhub_checkpoints._shared.times import parse_time
from eventhub_checkpoints.cli.records import RecordFiles, read_record
from eventhub_checkpoints.cli.serve.external_scaler import CLASSES
from eventhub_checkpoints.cli.undo import record_for_json
from eventhub_checkpoints.dead_letters.dead_letter import (
    MALFORMED,
    DeadLetter,
    Mark,
    current_dead_letters,
)
from eventhub_checkpoints.dead_letters.log_file import read_lines
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations import positions, states
from eventhub_checkpoints.operations.groups import in_order as in_numeric_order
from eventhub_checkpoints.operations.lag import PartitionLag
from eventhub_checkpoints.operations.reset import goal_of
from eventhub_checkpoints.operations.samples import read_samples, write_samples
from eventhub_checkpoints.operations.scale import number_in
from eventhub_checkpoints.processing.start_position import beyond
from eventhub_checkpoints.receive.position import EventPosition, after
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.rewind import GOALS, numbers_of
from fuzzing.target import Target, json_of, require_equal, samples, text_of

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def in_file(read: Callable[[Path], object], data: bytes) -> None:
    """Read the input as a file."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        read(Path(file.name))


def dead_letter_lines(data: bytes) -> None:
    """Read lines of dead letters and marks; dead letters come back, and can be sent."""
    entries: list[DeadLetter | Mark] = []
    in_file(lambda path: entries.extend(read_lines(path)[0]), data)
    for entry in entries:
        if isinstance(entry, DeadLetter):
            require_equal(DeadLetter.from_json(entry.to_json()), entry)
        else:
            require_equal(Mark.from_dict(entry.as_dict()), entry)
        entry.to_event()
    for stored in current_dead_letters(entries):
        json.dumps(stored.as_dict())


def dead_letter_event(data: bytes) -> None:
    """Read the application properties of an event as a dead letter and as a mark."""
    properties = json_of(data)
    if not isinstance(properties, dict):
        return
    event = EventData(b"body")
    event.properties = properties
    entries: list[DeadLetter | Mark] = []
    for kind in (DeadLetter, Mark):
        with suppress(*MALFORMED):
            entries.append(kind.from_event(event))
    for entry in entries:
        json.dumps(entry.as_dict())
    current_dead_letters(entries)


def positions_file(data: bytes) -> None:
    """Read an export, as JSON, as CSV and as Kafka's; what was read comes back."""
    text = text_of(data)
    with suppress(ConfigurationError):
        positions.read_kafka(text, "file", SCOPE)
    if positions.is_kafka(text):
        return
    found = positions.read_groups(text, "file")
    again = positions.groups_of(json.loads(positions.to_json(found)), "again", "an export")
    require_equal(again, [in_order(each) for each in found])


def in_order(group: positions.GroupPositions) -> positions.GroupPositions:
    """Return a group with its positions in the order of an export."""
    ids = in_numeric_order(group.positions)
    return positions.GroupPositions(group.scope, {id_: group.positions[id_] for id_ in ids})


def change_record(data: bytes) -> None:
    """Read the record of a change, for `ehcp undo`; it comes back."""

    def read(path: Path) -> None:
        found = read_record(path)
        json.dumps(record_for_json(found))
        RecordFiles().save(found)
        again = read_record(path)
        require_equal(dict(again.former) == dict(found.former), True)
        require_equal(dict(again.written) == dict(found.written), True)

    in_file(read, data)


def state_file(data: bytes) -> None:
    """Read the samples of `ehcp check`, judge them and write them."""

    def read(path: Path) -> None:
        found = read_samples(path, "file", SCOPE)
        if found:
            states.states(found)
            write_samples(path, "file", found)
            require_equal(read_samples(path, "file", SCOPE), found)

    in_file(read, data)


def scaler_request(data: bytes) -> None:
    """Read a request of KEDA, and the numbers in it."""
    with suppress(DecodeError):
        numbers(CLASSES["GetMetricsRequest"].FromString(data).scaledObjectRef.scalerMetadata)
    numbers(CLASSES["ScaledObjectRef"].FromString(data).scalerMetadata)


def numbers(metadata: Mapping[str, str]) -> None:
    """Read both numbers of a trigger, and those of all its keys."""
    for name in (*metadata, "unprocessedEventThreshold"):
        with suppress(ConfigurationError):
            CLASSES["MetricSpec"](targetSize=number_in(metadata, name, 64, 1))


def page_form(data: bytes) -> None:
    """Read the form of the page's rewind."""
    text = text_of(data)
    for kind in GOALS:
        with suppress(ConfigurationError):
            goal_of(kind, text)
    with suppress(ConfigurationError):
        numbers_of(text)
    with suppress(ConfigurationError):
        EventPosition.from_enqueued_time(parse_time(text))


def stored_position(data: bytes) -> None:
    """Start behind a stored position, and compare it with a hub's."""
    row = json_of(data)
    if not isinstance(row, dict):
        return
    number, offset = row.get("sequence_number"), row.get("offset")
    number = number if type(number) is int else None
    offset = offset if isinstance(offset, str) else None
    for end in ("4711", "-1", str(offset)):
        hub = {"last_enqueued_sequence_number": 7, "last_enqueued_offset": end}
        beyond((number, offset), hub)
    after("0", {"sequence_number": number, "offset": offset})


DEAD_LETTER = {
    **SCOPE.as_dict(),
    "partition_id": "0",
    "sequence_number": 16,
    "offset": "966",
    "enqueued_time": "2026-11-23T10:00:00+00:00",
    "partition_key": "customer-7",
    "body": "{}",
    "body_encoding": "utf-8",
    "properties": {"kind": "order", "count": 3, "raw": {"bytes": "/w=="}, "f": {"float": "nan"}},
    "amqp_properties": {"content_type": "application/json"},
    "error_type": "ValueError",
    "error_message": "no price",
    "time": "2026-11-23T10:01:00+00:00",
    "redrives": 0,
}
MARK = {"redriven": "0123456789ab", "to": "orders", "time": "2026-11-23T10:02:00+00:00"}
ROW = {"partition_id": "0", "sequence_number": 7, "offset": "4711"}
EXPORT = {
    "format": positions.FORMAT,
    "version": positions.VERSION,
    "groups": [{**SCOPE.as_dict(), "checkpoints": [ROW, {**ROW, "partition_id": "1"}]}],
}
SAMPLE = [
    {
        "scope": list(SCOPE),
        "time": 1795514400.5,
        "foreign": [],
        "partitions": [asdict(PartitionLag("0", 0, 16, 7, "4711", 9, 0, 5.5, "a", 1.5))],
    }
]
REQUEST = CLASSES["GetMetricsRequest"](
    scaledObjectRef=CLASSES["ScaledObjectRef"](
        name="orders",
        namespace="default",
        scalerMetadata={"eventHubName": "orders", "unprocessedEventThreshold": "64"},
    ),
    metricName="unprocessed-events",
)
TARGETS = [
    Target(
        "dead-letter-lines",
        dead_letter_lines,
        [b"\n".join(samples(DEAD_LETTER, MARK, {**MARK, "discarded": "0123456789ab"}))],
    ),
    Target(
        "dead-letter-event",
        dead_letter_event,
        samples(
            {f"dead-letter-{name.replace('_', '-')}": value for name, value in DEAD_LETTER.items()},
            {f"dead-letter-{name}": value for name, value in MARK.items()},
        ),
    ),
    Target(
        "positions-file",
        positions_file,
        samples(
            EXPORT,
            f"{','.join(positions.COLUMNS)}\n{','.join(SCOPE)},0,7,4711\n",
            "orders,0,124\n$Default,orders,1,9\n",
        ),
    ),
    Target(
        "change-record",
        change_record,
        samples(
            {
                **EXPORT,
                "time": "2026-11-23T10:01:00+00:00",
                "command": "reset --to-earliest",
                "store": "memory:",
                "state": "done",
                "owner": "ehcp-1",
                "written": [ROW],
            }
        ),
    ),
    Target("state-file", state_file, samples(SAMPLE)),
    Target(
        "scaler-request",
        scaler_request,
        [REQUEST.SerializeToString(), REQUEST.scaledObjectRef.SerializeToString()],
        (DecodeError,),
    ),
    Target(
        "page-form",
        page_form,
        samples("124", "-5", "2026-11-24T10:00:00Z", "P1DT2H", {"0": 124, "1": 9}),
    ),
    Target("stored-position", stored_position, samples(ROW, {"offset": "966"})),
]
