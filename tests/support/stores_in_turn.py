"""Tests that run once a backend, with one of the two variants."""

from collections.abc import Iterable
from itertools import cycle

import pytest

from backends import BACKENDS, VARIANTS

DATABASES = {"sqlite": "sqlite", "postgres": "postgresql", "mysql": "mysql"}
"""The backends of the SQL store, and the dialect of each."""


def in_turn(names: Iterable[str] = BACKENDS, variant: str = "variant") -> pytest.MarkDecorator:
    """Parametrize `backend`, and the fixture `variant`, which is given `sync` and `aio` in turn.

    For what the backend decides, and the two variants do in the same way.
    """
    stores = [*zip(names, cycle(VARIANTS), strict=False)]
    return pytest.mark.parametrize(("backend", variant), stores, indirect=True)
