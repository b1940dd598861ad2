"""Settings are refused where they are given, by name and value."""

import math
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints._shared.settings import Settings

GOOD: dict[str, Any] = {
    "operation_timeout": 30.0,
    "write_timeout": 10,
    "keep_unconfirmed": 0,
    "max_concurrency": 1,
    "on_stale": "raise",
}


def test_the_smallest_useful_settings_are_taken() -> None:
    assert Settings(**GOOD).max_concurrency == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operation_timeout", 0),
        ("operation_timeout", -1.0),
        ("operation_timeout", math.inf),
        ("operation_timeout", math.nan),
        ("operation_timeout", 1e12),
        ("write_timeout", 10**15),
        ("keep_unconfirmed", 1e300),
        ("operation_timeout", "30"),
        ("operation_timeout", None),
        ("write_timeout", 0.0),
        ("write_timeout", True),
        ("keep_unconfirmed", -0.1),
        ("keep_unconfirmed", math.nan),
        ("keep_unconfirmed", None),
        ("max_concurrency", 0),
        ("max_concurrency", 2.5),
        ("max_concurrency", True),
        ("max_concurrency", "8"),
        ("max_concurrency", 1001),
        ("max_concurrency", 10**38),
        ("on_stale", "ignore"),
        ("on_stale", None),
    ],
)
def test_a_bad_setting_is_named_with_its_value(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError) as failure:
        Settings(**GOOD | {name: value})
    assert str(failure.value).startswith(f"{name} is {value!r}; expected ")
