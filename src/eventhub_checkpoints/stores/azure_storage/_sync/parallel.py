# Derived from _async/parallel.py by tools/unasync.py; edit that file.
"""Several requests at the same time, all of which have to be carried out."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from eventhub_checkpoints._shared._sync.compat import for_each

T = TypeVar("T")
Item = TypeVar("Item")


def ask_each(function: Callable[[Item], T], items: Sequence[Item], limit: int) -> list[T]:
    """Return the answer for each item; the first error is raised after all were asked."""

    def attempted(item: Item) -> T | Exception:
        # Raised inside the task group, it would become an ExceptionGroup, which is not mapped.
        try:
            return function(item)
        except Exception as error:
            return error

    answers = for_each(attempted, items, limit)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if not isinstance(answer, Exception)]
