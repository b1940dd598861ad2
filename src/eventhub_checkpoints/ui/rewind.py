"""Form of a rewind: its goals in words, and what it sends back."""

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import is_partition_id

GOALS = {
    "earliest": "the first retained event",
    "latest": "the next new event",
    "sequence_number": "an event, by its sequence number",
    "shift": "a number of events forward, or back if negative",
    "datetime": "a time (such as 2026-11-23T10:00; UTC without an offset)",
    "duration": "a duration before now (such as 2h or P1DT2H)",
}
"""Goals of the form, and their descriptions."""


def numbers_of(text: str) -> dict[str, int]:
    """Return the events of `Preview.numbers`, which the form has as JSON.

    Raises:
        ConfigurationError: it is not what a preview contains.
    """
    try:
        numbers = parse_json(text)
    except ValueError:
        numbers = None
    if (
        not isinstance(numbers, dict)
        or not numbers
        or not all(is_partition_id(id_) and type(each) is int for id_, each in numbers.items())
    ):
        raise ConfigurationError(
            "the form must have the positions of a preview; preview the rewind again"
        )
    return numbers
