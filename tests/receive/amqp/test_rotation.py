"""The hub's keys are rotated and its signatures expire while a stream is read: nothing is lost."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, ReadSettings
from hub_load import LIFETIME, LONG, load, signature
from waiting import eventually

FAST = ReadSettings(receive_path="fast")
MANY = 1_000_000
"""More than there will be, so that the stream waits for the next event."""


@pytest.fixture
def hub(hub: LocalHub) -> Any:
    yield hub
    hub.accept_keys(None)


def address_of(hub: LocalHub, credential: Any) -> HubAddress:
    arguments = hub.client_arguments("orders")
    names = arguments.pop("fully_qualified_namespace"), arguments.pop("eventhub_name")
    del arguments["credential"]
    return HubAddress.from_credential(*names, credential, **arguments)


class Reading:
    """A stream, and the numbers that came; it may repeat some after a reconnect."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.numbers: list[int] = []

    def until(self, holds: Callable[[], bool]) -> None:
        """Read until a condition holds."""

        def read() -> bool:
            columns = self._stream.next(0.2)
            self.numbers += columns.numbers if columns else []
            return holds()

        eventually(read)

    def until_number(self, number: int) -> None:
        """Read up to an event."""
        self.until(lambda: bool(self.numbers) and self.numbers[-1] >= number)


def test_a_stream_survives_the_rotation_of_a_key(hub: LocalHub) -> None:
    hub.accept_keys({"first"})
    credential = AzureNamedKeyCredential("policy", "first")
    with (
        load(hub, 100) as count,
        address_of(hub, credential).open_stream("0", 0, MANY, FAST) as stream,
    ):
        reading = Reading(stream)
        for old, new in (("first", "second"), ("second", "third")):
            reading.until_number(count() - 1)
            hub.accept_keys({old, new})
            credential.update("policy", new)
            hub.accept_keys({new})
            assert hub.drop_connections()
            reading.until_number(count() + 5)
        last = count() + 20
        reading.until_number(last)
    assert [*dict.fromkeys(reading.numbers)][: last + 1] == [*range(last + 1)]


@pytest.mark.long
def test_a_stream_survives_the_expiry_of_signatures(hub: LocalHub) -> None:
    hub.accept_keys({"key"})
    sas = AzureSasCredential(signature(hub, "key"))
    with (
        load(hub, 100) as count,
        address_of(hub, sas).open_stream("0", 0, MANY, FAST) as stream,
    ):
        reading, ends = Reading(stream), time.monotonic() + 2 * LIFETIME

        def renewed() -> bool:
            sas.update(signature(hub, "key"))
            return time.monotonic() >= ends

        reading.until(renewed)
        # A busy machine may take longer to connect than the others are valid.
        sas.update(signature(hub, "key", LONG))
        last = count() + 20
        reading.until_number(last)
    assert [*dict.fromkeys(reading.numbers)][: last + 1] == [*range(last + 1)]
