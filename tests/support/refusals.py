"""What a store says of a server that it cannot use."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from waiting import eventually


def says(call: Callable[[], Any], kind: type[Exception], pattern: str) -> Exception:
    """Repeat a call, which always raises an error of this kind, until the text has the pattern.

    The calls have short limits, because they are repeated inside until the time is over. On a busy
    machine there may not be the time for an attempt to learn more than that it was too late.
    """
    found: list[Exception] = []

    def said() -> bool:
        with pytest.raises(kind) as raised:
            call()
        found.append(raised.value)
        return re.search(pattern, str(raised.value)) is not None

    try:
        eventually(said)
    except AssertionError:
        raise AssertionError(f"{pattern!r} is not in {found[-1]}") from None
    return found[-1]
