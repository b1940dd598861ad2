"""A dead letter, and a process that appends some to a file."""

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
