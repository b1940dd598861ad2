"""Where tests of a consumer group keep its rows: in memory, or where a mark says more."""

import pytest

EVERY_STORE = pytest.mark.parametrize("kept", ["memory", "sqlite"], indirect=True)
