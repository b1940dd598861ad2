"""Objects that work in one process only, and say what to pickle in their place."""

from typing import Any, NoReturn

OF_A_STORE = "pass its URL, and call open_store in the other process"
INSTEAD: dict[type, str] = {}
"""What to do instead, by class; not an attribute, as subclasses of a store are its users' own."""


class OfOneProcess:
    """Refuses to be pickled or copied: its connections, locks and tasks cannot be.

    A subclass that defines `__getstate__` or `__reduce__` decides itself.
    """

    __slots__ = ()

    def __init_subclass__(cls, pickle_instead: str = "", **kwargs: Any) -> None:
        """Set what to do instead, for the message; by default that of the base class."""
        super().__init_subclass__(**kwargs)
        if pickle_instead:
            INSTEAD[cls] = pickle_instead

    def __getstate__(self) -> NoReturn:
        kind = type(self)
        instead = next((INSTEAD[each] for each in kind.__mro__ if each in INSTEAD), OF_A_STORE)
        raise TypeError(
            f"a {kind.__name__} cannot be pickled or copied, because it holds connections and "
            f"locks: {instead}"
        )
