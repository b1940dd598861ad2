"""Stores that wrap another store, which is their attribute `store`, and what stores declare."""

from collections.abc import Iterator
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError


def layers(store: object) -> Iterator[Any]:
    """Yield a store, the store that it wraps, and so on.

    A store with hooks wraps none, whatever its author has in its attribute `store`.
    """
    while store is not None:
        yield store
        store = None if hasattr(store, "try_claim") else getattr(store, "store", None)


def innermost(store: object) -> Any:
    """Return the store below all wrappers."""
    *_, below = layers(store)
    return below


def declares(store: object, name: str) -> bool:
    """Return whether a store declares something, such as `forward_only`.

    If a wrapper does not declare it, the declaration of the wrapped store counts.
    """
    declared = (getattr(layer, name, None) for layer in layers(store))
    return next((value for value in declared if value is not None), False) is True


def require_wrappable(outer: object, store: object) -> None:
    """Refuse to wrap a store that has to be the outermost.

    Raises:
        ConfigurationError: it declares `is_outermost`.
    """
    if declares(store, "is_outermost"):
        outer, inner = type(outer).__name__, type(store).__name__
        raise ConfigurationError(
            f"a {inner} must be the outermost store: write {inner}({outer}(store)), not "
            f"{outer}({inner}(store))"
        )
