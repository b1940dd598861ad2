"""Death of a program at any of its calls of a store: before the call, or before its answer."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

CALLS = (
    "list_ownership",
    "claim_ownership",
    "list_checkpoints",
    "update_checkpoint",
    "replace_checkpoint",
    "delete_partition",
)
Store = TypeVar("Store")


class KilledError(BaseException):
    """The program ends here, as if it were killed: no handler of `Exception` runs."""


class Killer:
    """Counts the calls of stores, and ends the program at one of them.

    Args:
        last: number of the call, from 1.
        is_answered: whether the call is carried out, and only its answer is lost.
        watch: called after every call that was carried out.
        ending: what the program gets instead of the answer.
    """

    def __init__(
        self,
        last: int,
        *,
        is_answered: bool,
        watch: Callable[[], None] = lambda: None,
        ending: Callable[[], BaseException] = KilledError,
    ) -> None:
        self.calls = 0
        self._last = last
        self._is_answered = is_answered
        self._watch = watch
        self._ending = ending

    def guards(self, store: Store) -> Store:
        """Have the store's calls counted; return the store."""
        for name in CALLS:
            setattr(store, name, self._counted(getattr(store, name)))
        return store

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            is_last = self.calls >= self._last
            if is_last and not self._is_answered:
                raise self._ending()
            result = call(*args, **kwargs)
            self._watch()
            if is_last:
                raise self._ending()
            return result

        return counted
