"""Settings of a read that cannot work are refused where they are made."""

from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.arrow import ReadSettings, read_batches


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"prefetch": 0}, "prefetch is 0; expected a whole number, 1 or more"),
        ({"prefetch": "5"}, "prefetch is '5'; expected a whole number"),
        ({"rows_per_batch": 0}, "rows_per_batch is 0; expected a whole number"),
        ({"receiver_timeout": "5s"}, "receiver_timeout is '5s'; expected a number of seconds"),
        ({"operation_timeout": 10**400}, "operation_timeout is .*; expected a number of seconds"),
        ({"fail_on_data_loss": "no"}, "fail_on_data_loss is 'no'; expected True or False"),
        ({"owner_level": -1}, "owner_level is -1; expected a whole number, 0 or more"),
        ({"owner_level": True}, "owner_level is True; expected a whole number, 0 or more"),
        ({"receive_path": "quick"}, "receive_path is 'quick'; expected one of auto, fast, public"),
    ],
)
def test_a_setting_that_cannot_work_is_named_with_its_value(setting: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{expected}"):
        ReadSettings(**setting)


@pytest.mark.parametrize("settings", [None, {"prefetch": 5}])
def test_settings_of_another_type_are_refused(settings: Any) -> None:
    hub = "Endpoint=sb://localhost;SharedAccessKeyName=a;SharedAccessKey=b;EntityPath=orders"
    with pytest.raises(ConfigurationError, match=r"^settings is .*; expected ReadSettings"):
        read_batches(hub, settings=settings)
