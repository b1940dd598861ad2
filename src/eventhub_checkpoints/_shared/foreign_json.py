"""JSON that another program, or a person, has written."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: it is not JSON, it is nested deeper than Python can follow, or a number has more
            digits than Python converts.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
