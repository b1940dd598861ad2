"""The store keeps the contract when all its requests go through the driver, too."""

from functools import partial
from typing import Any

import pytest

from eventhub_checkpoints.conformance import certify

# The tests of this folder run through the driver as well; this is every check, once more, with the
# variant that has a transport of its own.
pytestmark = pytest.mark.long


@pytest.mark.parametrize("variant", ["sync-driver"], indirect=True)
def test_through_the_driver_the_store_is_certified(variant: Any, blob_container: Any) -> None:
    text = blob_container.connection_string
    make = partial(variant.store.from_connection_string, text, blob_container.name)
    report = certify(make, name=f"blob, {variant.name}, through the driver")
    assert not report.failed, report.text()
