"""The store keeps the contract when all its requests go through the driver, too.

The tests of this folder run through the driver as well; this is every check that needs no processes
and no time limit, once more, with the variant that has a transport of its own.
"""

from functools import partial
from typing import Any

import pytest

from conformance_checks import not_kept, without
from eventhub_checkpoints.conformance import Certifier

pytestmark = pytest.mark.long


@pytest.mark.parametrize("variant", ["sync-driver"], indirect=True)
def test_through_the_driver_the_store_keeps_the_contract(variant: Any, blob_container: Any) -> None:
    text = blob_container.connection_string
    make = partial(variant.store.from_connection_string, text, blob_container.name)
    with Certifier(make) as certifier:
        broken = not_kept(certifier, without(["put_raw", "shift_clock"]))
    assert not broken, "\n".join(broken)
