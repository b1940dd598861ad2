"""What a member makes of a hub that drops, refuses, forgets or begins anew, and of its memory."""

import logging
import threading
from dataclasses import replace

import pytest
from azure.eventhub import EventHubConsumerClient

from arrow_rows import numbers, take
from arrow_variants import ALL, PATHS
from eventhub_checkpoints import ConfigurationError, DataLossError, HubUnavailableError
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.receive.amqp.fast import FastStream
from eventhub_checkpoints.sdk.receiver import READ_SIZE
from waiting import LIMIT, eventually

LOSS = pytest.mark.parametrize("fails", [True, False])
OURS = "eventhub_checkpoints"


# Retention


@LOSS
@PATHS
def test_a_checkpoint_whose_next_event_has_expired_is_data_loss(
    member, hub, kept, caplog, fails, receive_path
):
    kept.save("0", 9)
    hub.trim("orders", "0", before=60)
    reader = member(fail_on_data_loss=fails, receive_path=receive_path).start()
    if fails:
        eventually(lambda: reader.error)
        assert isinstance(reader.error, DataLossError)
        assert "sequence number 10 has expired; the first retained is 60" in str(reader.error)
        eventually(lambda: kept.owners() == {})
    else:
        eventually(lambda: reader.count == 150)
        assert reader.numbers("0") == [*range(60, 100)]
        assert "sequence number 10 has expired" in caplog.text


@LOSS
@PATHS
def test_events_that_expire_before_a_slow_loop_has_read_them_are_data_loss(
    member, hub, caplog, fails, receive_path
):
    hub.recreate("orders", 1)
    settings = {"fail_on_data_loss": fails, "receive_path": receive_path, "max_rows": 10}
    reader = member(**settings).start()
    eventually(lambda: reader.held)
    reader.gate.clear()
    hub.publish("orders", "0", [bytes(1000)] * 20_000)
    eventually(lambda: reader.count)
    hub.trim("orders", "0", before=19_990)
    hub.drop_connections()
    reader.gate.set()
    if fails:
        eventually(lambda: reader.error)
        assert isinstance(reader.error, DataLossError)
        assert "the first retained is 19990" in str(reader.error)
        # What it had received counts as read, and nothing behind the gap.
        found = reader.numbers("0")
        assert found == [*range(len(found))]
        assert len(found) < 19_990
    else:
        eventually(lambda: reader.numbers("0")[-10:] == [*range(19_990, 20_000)])
        assert "the first retained is 19990" in caplog.text


def test_on_lost_can_commit_when_an_error_ends_all(member, hub, kept):
    """A writer of files that rotates them there has to save what the others have returned."""
    reader = member(commits=False, at_loss=True).start()
    eventually(lambda: reader.count == 210)
    hub.recreate("orders", 3)
    eventually(lambda: reader.error)
    assert isinstance(reader.error, ConfigurationError)
    assert "or the hub was deleted" in str(reader.error)
    assert sorted(reader.of("lost")) == [("0",), ("1",), ("2",)]
    assert kept.numbers() == {"0": 99, "1": 99, "2": 9}


def test_what_was_returned_can_be_committed_after_an_error(variant, address, hub, kept):
    with variant.consume_batches(address, store=kept.url, max_wait=0.0) as batches:
        take(batches, 210)
        hub.recreate("orders", 3)
        with pytest.raises(ConfigurationError, match="or the hub was deleted"):
            next(batches)
        assert [*batches] == []
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
        assert batches.lost == {}


# A hub that was created again


@LOSS
def test_a_checkpoint_of_a_hub_that_was_created_again_is_data_loss(
    member, hub, kept, caplog, fails
):
    kept.save("0", 99)
    hub.recreate("orders", 1)
    hub.publish("orders", "0", ["new"] * 20)
    reader = member(fail_on_data_loss=fails).start()
    if fails:
        eventually(lambda: reader.error)
        assert isinstance(reader.error, DataLossError)
        assert "Was the hub deleted and created again?" in str(reader.error)
    else:
        eventually(lambda: reader.numbers("0") == [*range(20)])
        assert "Was the hub deleted and created again?" in caplog.text


@pytest.mark.parametrize(
    ("variant", "kept", "receive_path"),
    [("sync", "sqlite", "fast"), ("aio", "memory", "public")],
    indirect=["variant", "kept"],
)
def test_the_positions_of_a_hub_that_was_created_again_are_saved_though_they_are_lower(
    member, hub, kept, monkeypatch, receive_path
):
    """If the old ones stayed, the next member would pass over events that nobody has read."""
    hub.recreate("orders", 1)
    hub.publish("orders", "0", ["old"] * 100)
    settings = {"fail_on_data_loss": False, "receive_path": receive_path}
    # Silence is believed soon; who waits longer for an event only opens its link again.
    read = replace(ConsumeSettings(**settings).read, receiver_timeout=0.5)
    monkeypatch.setattr(ConsumeSettings, "read", read)
    reader = member(**settings).start()
    eventually(lambda: kept.numbers() == {"0": 99})
    hub.refuse_connections()
    hub.drop_connections()
    hub.recreate("orders", 1)
    hub.publish("orders", "0", ["new"] * 20)
    hub.refuse_connections(False)
    eventually(lambda: reader.numbers("0")[-20:] == [*range(20)])
    eventually(lambda: kept.numbers() == {"0": 19})
    reader.stop()
    hub.publish("orders", "0", ["new"] * 100)
    after = member(**settings).start()
    eventually(lambda: after.numbers("0") == [*range(20, 120)])


# Connections and links


@PATHS
def test_nothing_is_lost_or_repeated_when_connections_drop(member, hub, receive_path):
    reader = member(receive_path=receive_path, max_rows=20).start()
    published = 0
    for _ in range(5):
        for each in ALL:
            hub.publish("orders", each, ["event"] * 40)
        published += 120
        eventually(lambda published=published: reader.count > published // 2)
        hub.drop_connections()
    eventually(lambda: reader.count == 210 + published)
    for each, before in ALL.items():
        assert reader.numbers(each) == [*range(len(before) + 200)]


@PATHS
def test_a_hub_that_is_busy_is_waited_for(member, hub, receive_path):
    reader = member(receive_path=receive_path).start()
    for expected in range(210, 230, 5):
        eventually(lambda expected=expected: reader.count == expected)
        eventually(lambda: len(hub.receivers("orders")) == 3)
        assert hub.detach_receivers("orders", condition="com.microsoft:server-busy") == 3
        hub.publish("orders", "0", ["event"] * 5)
    eventually(lambda: reader.count == 230)
    assert reader.numbers("0") == [*range(120)]
    assert reader.error is None


def test_a_hub_that_is_away_for_a_while_is_waited_for(member, hub):
    reader = member().start()
    eventually(lambda: reader.count == 210)
    hub.refuse_connections()
    hub.drop_connections()
    for each in ALL:
        hub.publish("orders", each, ["event"] * 5)
    eventually(lambda: not hub.connections())
    hub.refuse_connections(False)
    eventually(lambda: reader.count == 225)
    assert reader.held == {*ALL}


def test_a_partition_that_the_hub_does_not_deliver_is_closed_and_opened_again(
    member, address, hub, caplog
):
    failures = [HubUnavailableError("it is away"), HubUnavailableError("still")]
    opens = type(address).open_stream

    def open_stream(self, partition_id, *args):
        if partition_id == "1" and failures:
            raise failures.pop()
        return opens(self, partition_id, *args)

    type(address).open_stream = open_stream
    reader = member().start()
    eventually(lambda: reader.count == 210)
    assert {each: reader.numbers(each) for each in ALL} == ALL
    assert [*reader.of("assigned")].count(("1",)) == 3
    assert reader.of("lost") == [("1",), ("1",)]
    assert "partition 1 is closed: HubUnavailableError: it is away" in caplog.text


def test_a_link_that_is_taken_by_a_higher_owner_level_is_lost_and_won_back(
    member, text, hub, caplog
):
    caplog.set_level(logging.INFO, OURS)
    reader = member(commits=False).start()
    eventually(lambda: reader.count == 210)
    taken = threading.Event()
    # The client waits so long for its end, too.
    interval = {"load_balancing_interval": 0.1}
    thief = EventHubConsumerClient.from_connection_string(text, "$Default", **interval)
    thread = threading.Thread(
        target=thief.receive,
        args=(lambda *_: taken.set(),),
        kwargs={"partition_id": "0", "owner_level": 5, "starting_position": "-1"},
        name="receive-thief",
        daemon=True,
    )
    thread.start()
    assert taken.wait(LIMIT)
    hub.publish("orders", "0", ["event"] * 5)
    eventually(lambda: ("0",) in reader.of("lost"))
    assert "partition 0 was taken by another consumer" in caplog.text
    reader.commit()
    assert reader.of("saved")[0] == ({"1": 99, "2": 9}, {"0": 99})

    def has_ended():
        thief.close()
        return not thread.is_alive()

    eventually(has_ended)
    eventually(lambda: reader.numbers("0")[-1] == 104)
    assert reader.error is None


@pytest.mark.parametrize("settings", [{}, {"owner_level": 3}])
@PATHS
def test_a_link_has_the_owner_level_of_its_member(member, hub, settings, receive_path):
    reader = member(receive_path=receive_path, **settings).start()
    eventually(lambda: reader.count == 210)
    assert {each.epoch for each in hub.receivers("orders")} == {settings.get("owner_level", 0)}


# The store


def test_a_store_that_fails_for_a_while_ends_nothing(variant, member, hub, opened, caplog):
    store = variant.memory_store()
    opened.callback(variant.close, store)
    failing = threading.Event()
    failed = []
    listing = store.list_ownership

    def list_ownership(*scope, **kwargs):
        if failing.is_set():
            failed.append(scope)
            raise OSError("the store is away")
        return listing(*scope, **kwargs)

    store.list_ownership = list_ownership
    reader = member(store=store).start()
    eventually(lambda: reader.count == 210)
    failing.set()
    eventually(lambda: len(failed) > 2)
    hub.publish("orders", "0", ["event"] * 5)
    eventually(lambda: reader.count == 215)
    failing.clear()
    assert reader.held == {*ALL}
    assert "a round of load balancing failed: OSError: the store is away" in caplog.text


# Memory


@PATHS
def test_what_is_received_and_not_returned_is_bounded(
    variant, address, hub, kept, monkeypatch, receive_path
):
    size, count, partitions = 1_000_000, 40, 4
    limit = 8 * 2**20
    hub.recreate("orders", partitions)
    for each in range(partitions):
        hub.publish("orders", str(each), [bytes(size)] * count)
    received, lock = [], threading.Lock()
    taking = FastStream.next

    def noted(self, timeout):
        columns = taking(self, timeout)
        with lock:
            received.append(columns.size if columns else 0)
        return columns

    monkeypatch.setattr(FastStream, "next", noted)
    settings = {"store": kept.url, "buffer_bytes": limit, "max_wait": 3600.0}
    found = []
    with variant.consume_batches(address, receive_path=receive_path, **settings) as batches:
        inbox = variant.inner(batches)._inbox
        while sum(map(len, numbers(found).values())) < partitions * count // 2:
            found.append(next(batches))
            # Each partition has a batch that waits, so that none receives anything more.
            eventually(lambda: len(inbox._items) == partitions)
            waiting = sum(item.batch.arrow["body"].nbytes for item in inbox._items)
            # On the public path, a list of the client's is cut if it has more than twice as much.
            most = limit * (1 if receive_path == "fast" else 2) + partitions * (READ_SIZE + size)
            assert waiting <= most
            if receive_path == "fast":
                returned = sum(batch["body"].nbytes for batch in found)
                assert sum(received) - returned <= most
