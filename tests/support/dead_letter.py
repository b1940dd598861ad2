"""A dead letter, a process that appends some to a file, and those of several groups."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from eventhub_checkpoints.dead_letters.dead_letter import DeadLetter
from eventhub_checkpoints.dead_letters.log_file import append_line
from eventhub_checkpoints.records import Scope

BEGAN = datetime(2026, 11, 23, 10, tzinfo=UTC)
DEAD_LETTER = DeadLetter(
    Scope("ns.servicebus.windows.net", "orders", "billing"),
    "0",
    16,
    "966",
    BEGAN,
    "customer-7",
    b'{"order": 16}',
    {"kind": "order", "count": 3},
    {"content_type": "application/json"},
    "ValueError",
    "no price",
    BEGAN + timedelta(minutes=1),
)
EACH = 50
"""Dead letters of a process."""


def append_dead_letters(path: Path, process: int) -> None:
    """Append dead letters that are longer than a page."""
    for number in range(EACH):
        dead_letter = replace(DEAD_LETTER, partition_id=str(process), sequence_number=number)
        append_line(path, replace(dead_letter, body=b"x" * 5000).as_dict())


def write_dead_letters(path: Path, scope: Scope) -> None:
    """Write to a file three dead letters of a group, one of another group, one of another hub."""
    bodies = {
        3: b'{"order": 3, "total": null}',
        4: b"<script>alert(1)</script>",
        5: b"\xff\xfe",
    }
    dead_letters = [
        replace(
            DEAD_LETTER,
            scope=scope,
            sequence_number=number,
            body=body,
            error_type="KeyError" if number == 3 else "ValueError",
            error_message=f"cannot read order {number}",
        )
        for number, body in bodies.items()
    ]
    dead_letters.append(replace(dead_letters[0], scope=scope._replace(consumer_group="audit")))
    path.write_text("".join(f"{each.to_json()}\n" for each in [*dead_letters, DEAD_LETTER]))
