"""What happens where the fast path cannot be taken, or cannot go on."""

import logging

import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.amqp import address as amqp_address
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.sdk import fallback
from renamed_part import is_as_it_should_be, read_with_renamed
from waiting import LIMIT


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch):
    monkeypatch.setattr(fallback, "_said", set())


def rows(address, path="auto", begin=0, end=100):
    settings = ReadSettings(receive_path=path, receiver_timeout=LIMIT, rows_per_batch=10)
    batches = read_range(address, OffsetRange("0", begin, end), settings)
    return [row for batch in batches for row in batch.to_pylist()]


def warnings(caplog):
    records = [record for record in caplog.records if record.name == amqp_address.__name__]
    assert {record.levelno for record in records} <= {logging.WARNING}
    return [record.getMessage() for record in records]


@pytest.mark.parametrize(
    "name",
    # Each is used by another step; a process with a changed client takes seconds.
    [
        "flow",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("_create_consumer", "_incoming_endpoints", "_cbs_authenticator")
        ),
    ],
)
def test_a_client_with_a_renamed_part_is_used_by_its_public_api(name):
    found = read_with_renamed(name)
    assert is_as_it_should_be(name, found), found


def test_a_client_of_the_next_major_version_is_used_by_its_public_api(address, caplog):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fallback.check_version, "__defaults__", ("6.0.0b1",))
        found = rows(address)
        assert rows(address) == found
        with pytest.raises(ConfigurationError, match=r"azure-eventhub 6\.0\.0b1 is not supported"):
            rows(address, "fast")
    [sentence] = warnings(caplog)
    assert "azure-eventhub 6.0.0b1" in sentence
    assert found == rows(address, "fast")


@pytest.mark.parametrize("fed", [0, 1, 3])
def test_a_frame_that_cannot_be_read_is_left_to_the_client(hub, address, caplog, monkeypatch, fed):
    """After some reads: the rows before it come once, and those from there on once."""
    feed, feeds = Deliveries.feed, []

    def fails(self, data):
        found = feed(self, data)
        feeds.append(data)
        if len(feeds) > fed + 1:
            raise CodecError("no such constructor")
        return found

    hub.publish("orders", "0", [bytes(100_000)] * 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deliveries, "feed", fails)
        found = rows(address, end=130)
        with pytest.raises(ConfigurationError, match="a frame cannot be read: no such constr"):
            rows(address, "fast", end=130)
    assert found == rows(address, "public", end=130)
    assert len(warnings(caplog)) == 1


def test_a_part_that_works_otherwise_than_known_is_noticed(address, caplog, monkeypatch):
    from azure.eventhub._pyamqp.link import Link

    flow = Link.flow
    monkeypatch.setattr(Link, "flow", lambda self, credit: flow(self, link_credit=credit))
    with pytest.raises(ConfigurationError, match=r"has changed: .*link_credit"):
        rows(address, "fast")


def test_the_public_path_uses_no_private_part(address, monkeypatch, caplog):
    monkeypatch.setattr(fallback.check_version, "__defaults__", ("0",))
    assert len(rows(address, "public")) == 100
    assert warnings(caplog) == []
