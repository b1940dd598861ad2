"""An error that cannot be shown, as a user's, a driver's or a credential's may be."""


class UnspeakableError(Exception):
    """An error whose `__str__` and `__repr__` raise."""

    def __str__(self) -> str:
        raise LookupError("no message")

    __repr__ = __str__


SHOWN = "<its __str__ raised LookupError>"
"""Its message, as this package shows it."""
