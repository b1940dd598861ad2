"""Which events batches have, how reading ends, and which arguments are refused."""

import gc
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from azure.eventhub import EventHubConsumerClient

from arrow_rows import last_of, numbers
from eventhub_checkpoints import ConfigurationError, Scope
from eventhub_checkpoints.arrow import EventPosition, HubAddress, ReadSettings, read_batches
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.batches import SCHEMA
from waiting import LIMIT, eventually

TENS = ReadSettings(rows_per_batch=10)
ALL = {"0": [*range(100)], "1": [*range(100)], "2": [*range(10)]}
TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)


# What is read


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_every_partition_is_read_whole_and_in_its_order(variant, address, at_once):
    with variant.read_batches(address, partitions_at_once=at_once, settings=TENS) as batches:
        assert numbers(batches) == ALL


def test_a_batch_has_the_nine_columns_and_so_has_no_batch(variant, hub, address):
    with variant.read_batches(address) as batches:
        assert batches.schema == SCHEMA
        table = batches.to_table()
    assert table.schema == SCHEMA
    rows = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["sequenceNumber"]))
    assert [row["body"] for row in rows[:2]] == [b"event 0", b"event 1"]
    hub.recreate("orders")
    with variant.read_batches(address) as batches:
        table = batches.to_table()
    assert (table.num_rows, table.schema) == (0, SCHEMA)


def test_batches_have_the_rows_that_settings_ask_for(variant, address):
    with variant.read_batches(address, partition_ids=["0"], settings=TENS) as batches:
        assert [batch.num_rows for batch in batches] == [10] * 10


def test_what_comes_while_it_reads_is_left_for_the_next_time(variant, hub, address):
    with variant.read_batches(address, partition_ids=["2"], settings=TENS) as batches:
        first = next(batches)
        hub.publish("orders", "2", ["late"] * 5)
        assert numbers([first, *batches]) == {"2": ALL["2"]}


def test_some_partitions_are_read_and_no_others(variant, text):
    with variant.read_batches(text, partition_ids=[2, "0"]) as batches:
        assert numbers(batches) == {"0": ALL["0"], "2": ALL["2"]}


@pytest.mark.parametrize(
    ("start", "until", "found"),
    [
        (95, "latest", {"0": range(95, 100), "1": range(95, 100)}),
        ("earliest", 3, {"0": range(3), "1": range(3)}),
        (EventPosition.from_sequence_number(97), 99, {"0": [98], "1": [98]}),
        ({"0": 98, "1": "latest"}, {"0": 99, "1": "latest"}, {"0": [98]}),
        ({0: "earliest", 1: 7}, {0: 1, 1: 8}, {"0": [0], "1": [7]}),
    ],
)
def test_positions_say_from_where_and_until_where(variant, address, start, until, found):
    wanted = {"partition_ids": ["0", "1"], "start": start, "until": until}
    with variant.read_batches(address, **wanted) as batches:
        assert numbers(batches) == {one: [*rows] for one, rows in found.items()}


def test_times_say_from_where_and_until_where(variant, hub, address):
    hub.recreate("orders")
    for hour in range(3):
        hub.publish("orders", "1", ["event"] * 4, enqueued_time=TEN + timedelta(hours=hour))
    hour = {"start": TEN + timedelta(minutes=30), "until": TEN + timedelta(hours=2)}
    with variant.read_batches(address, **hour) as batches:
        assert numbers(batches) == {"1": [4, 5, 6, 7]}
    with variant.read_batches(address, start=TEN + timedelta(hours=9)) as batches:
        assert numbers(batches) == {}
    with variant.read_batches(address, until=TEN) as batches:
        assert numbers(batches) == {}


def test_a_ready_credential_and_settings_of_the_client_are_taken(variant, hub):
    arguments = hub.client_arguments("orders", namespace="ns.servicebus.windows.net")
    address = HubAddress.from_credential(**arguments, retry_total=1)
    assert address.scope().fully_qualified_namespace == "ns.servicebus.windows.net"
    with variant.read_batches(address, partition_ids=["2"]) as batches:
        assert numbers(batches) == {"2": ALL["2"]}


def test_a_scope_names_the_hub_that_the_connection_string_does_not(variant, text, scope):
    of_namespace = text.partition(";EntityPath=")[0]
    with variant.read_batches(of_namespace, scope, partition_ids=["2"]) as batches:
        assert numbers(batches) == {"2": ALL["2"]}


# How it ends


def reading_threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("read-batches-")]


def test_who_stops_early_leaves_no_thread_and_no_receiver(variant, hub, address):
    with variant.read_batches(address, settings=TENS) as batches:
        next(batches)
        assert reading_threads()
    assert not reading_threads()
    assert [*batches] == []
    eventually(lambda: not hub.receivers("orders"))


def test_who_forgets_to_close_leaves_no_thread_and_no_receiver(variant, hub, address):
    for _ in variant.read_batches(address, settings=TENS):
        assert reading_threads()
        break
    gc.collect()
    eventually(lambda: not reading_threads())
    eventually(lambda: not hub.receivers("orders"))


def test_reading_to_the_end_leaves_nothing_either(variant, hub, address):
    batches = variant.read_batches(address)
    assert numbers(batches) == ALL
    eventually(lambda: not reading_threads())
    eventually(lambda: not hub.receivers("orders"))
    batches.close()
    batches.close()


def test_closing_ends_a_wait_for_a_hub_that_is_busy(busy_hub):
    public = ReadSettings(receive_path="public")
    batches = read_batches(busy_hub.connection_string("orders"), settings=public)
    ended = []
    reader = threading.Thread(target=lambda: ended.append([*batches]))
    reader.start()
    eventually(busy_hub.refused_links)
    batches.close()
    reader.join(LIMIT)
    assert ended == [[]]
    eventually(lambda: not reading_threads())


def test_closing_while_the_hub_is_asked_receives_nothing(address):
    asked, answer = threading.Event(), threading.Event()

    def open_queries(self):
        asked.set()
        assert answer.wait(LIMIT)
        return HubAddress.open_queries(self)

    type(address).open_queries = open_queries
    batches = read_batches(address)
    ended = []
    reader = threading.Thread(target=lambda: ended.append([*batches]))
    reader.start()
    assert asked.wait(LIMIT)
    batches.close()
    answer.set()
    reader.join(LIMIT)
    assert ended == [[]]
    eventually(lambda: not reading_threads())


def test_several_threads_share_the_batches_and_none_comes_twice(address):
    found = []
    with read_batches(address, settings=TENS) as batches:
        readers = [
            threading.Thread(target=lambda: found.extend(last_of(batch) for batch in batches))
            for _ in range(3)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(LIMIT)
    tens = [*range(9, 100, 10)]
    expected = [("0", number) for number in tens] + [("1", number) for number in tens] + [("2", 9)]
    assert sorted((row["partition"], row["sequenceNumber"]) for row in found) == expected


def test_a_group_that_may_not_read_is_an_error(variant):
    with LocalHub({"orders": 1}, consumer_groups=["known"]) as hub:
        hub.publish("orders", "0", ["event"])
        scope = Scope("any", "orders", "unknown")
        with (
            variant.read_batches(hub.connection_string("orders"), scope) as batches,
            pytest.raises(ConfigurationError, match="no consumer group 'unknown'"),
        ):
            next(batches)
        eventually(lambda: not reading_threads())


def test_a_second_table_is_refused_and_not_empty(variant, address):
    with variant.read_batches(address) as batches:
        assert batches.to_table().num_rows == 210
        with pytest.raises(ConfigurationError, match="into a table already"):
            batches.to_table()
    with variant.read_batches(address) as batches:
        first = next(batches).num_rows
        assert batches.to_table().num_rows == 210 - first


def test_what_is_closed_is_not_read_into_an_empty_table(variant, address):
    with variant.read_batches(address) as batches:
        pass
    with pytest.raises(ConfigurationError, match=r"closed, .* would be empty; read before close"):
        batches.to_table()


def test_what_is_closed_is_no_empty_reader(address):
    with read_batches(address) as batches:
        pass
    with pytest.raises(ConfigurationError, match="the batches are closed"):
        pa.table(batches)


# What cannot be meant


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": "newest"}, "for start= a sequence number"),
        ({"until": 1.5}, "for until= a sequence number"),
        ({"start": -1}, "sequence_number is -1"),
        ({"start": datetime(2026, 11, 21)}, "time zone"),
        ({"partition_ids": []}, "partition_ids"),
        ({"partitions_at_once": 0}, "partitions_at_once is 0"),
        ({"partitions_at_once": True}, "partitions_at_once is True"),
        ({"scope": "orders"}, "expected a Scope"),
        ({"scope": Scope("ns", "others", "$Default")}, "'others'.*'orders'"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused_at_once(variant, text, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        variant.read_batches(text, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"partition_ids": ["0", "7"]}, "has no partition 7; it has 0, 1, 2"),
        ({"partition_ids": ["0"], "start": {"0": 1, "2": 1}}, "start names partition 2"),
        ({"until": {"0": 1}}, "until has no position for partition 1"),
        ({"start": 50, "until": 40}, "ends before it begins"),
    ],
)
def test_an_error_of_the_hub_is_raised_at_the_first_batch(variant, address, settings, message):
    with (
        variant.read_batches(address, **settings) as batches,
        pytest.raises(ConfigurationError, match=message),
    ):
        next(batches)


def test_a_client_is_refused_with_what_to_give_instead(variant, text):
    client = EventHubConsumerClient.from_connection_string(text, "$Default")
    with client, pytest.raises(ConfigurationError, match=r"HubAddress\.from_credential"):
        variant.read_batches(client)


def test_no_message_shows_a_secret(variant):
    secret = "Endpoint=sb://ns;SharedAccessKeyName=name;SharedAccessKey=hidden"
    for given in (secret, "hidden", {"hidden": 1}):
        with pytest.raises(ConfigurationError) as raised:
            variant.read_batches(given)
        assert "hidden" not in str(raised.value)
