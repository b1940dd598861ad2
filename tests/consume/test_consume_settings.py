"""Arguments that cannot be meant, and hubs, groups and stores that cannot be read."""

import re
import traceback
from datetime import datetime
from functools import partial

import pytest

from eventhub_checkpoints import (
    ConfigurationError,
    HandoverStore,
    HubUnavailableError,
    MemoryCheckpointStore,
    StoreError,
    StoreNotReadyError,
    aio,
    open_store,
)
from eventhub_checkpoints.arrow import HubAddress
from eventhub_checkpoints.consume.settings import RULES, ConsumeSettings
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.kafka import KafkaAddress
from waiting import eventually

HIDDEN = "aGlkZGVuIGtleQhiddenaGlkZGVuIGtleQhiddenaGk="
HUB = (
    f"Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=name;SharedAccessKey={HIDDEN};"
    "EntityPath=orders;UseDevelopmentEmulator=true"
)


def generator(_):
    yield


def refusal(call, *args, **settings):
    """Return what an error says, which shows no secret, nor does its traceback."""
    with pytest.raises(ConfigurationError) as raised:
        call(*args, **settings)
    lines = traceback.TracebackException.from_exception(raised.value).format()
    assert "hidden" not in "\n".join(line for line in lines if "File " not in line)
    return str(raised.value)


# Settings

COUNT = "expected a whole number, 1 or more"
SECONDS = "expected a number of seconds"
WRONG = [
    *[(name, value, COUNT) for name in ("max_rows", "max_bytes", "buffer_bytes") for value in
      (0, -1, 1.5, "10", None, True, float("inf"), [])],
    *[("load_balancing_interval", value, SECONDS) for value in
      (0, -1, "5", None, True, float("nan"), float("inf"), 1e12)],
    *[("max_wait", value, SECONDS) for value in (-0.1, "5", None, True, float("nan"), 1e12)],
    *[("partition_ownership_expiration_interval", value, "expected None, or a number of seconds")
      for value in (0, -1, "5", True, float("nan"))],
    *[("load_balancing_strategy", value, "expected 'greedy' or 'balanced'") for value in
      ("GREEDY", "fair", None, 1, ["greedy"])],
    *[("owner_level", value, "expected a whole number, 0 or more") for value in
      (-1, 1.5, None, "0", True)],
    *[("fail_on_data_loss", value, "expected True or False") for value in (None, 1, "no")],
    *[("receive_path", value, "expected 'auto', 'fast' or 'public'") for value in
      ("slow", None, 1)],
    *[("columns", value, "expected None, or some of body, partition, offset, ") for value in
      ("body", b"body", [], (), ["body", "body"], ["nope"], [None], [["body"]], 5, {"a": 1},
       ["body", "Offset"])],
]  # fmt: skip


def test_every_setting_has_wrong_values_here():
    assert {name for name, _, _ in WRONG} == {*RULES, "columns"}
    assert {*RULES, "columns"} == {*ConsumeSettings.__dataclass_fields__}


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_wrong_setting_is_refused_with_what_is_expected(name, value, expected):
    text = refusal(ConsumeSettings, **{name: value})
    assert text.startswith(f"{name} is ")
    assert expected in text


@pytest.mark.parametrize(("name", "value"), {name: value for name, value, _ in WRONG}.items())
def test_whoever_takes_a_wrong_setting_refuses_it_at_once(variant, name, value):
    store = variant.memory_store()
    for call in (
        partial(variant.consume_batches, HUB, store=store),
        partial(variant.client, HUB, checkpoint_store=store),
    ):
        assert refusal(call, **{name: value}).startswith(f"{name} is ")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("handover", None, "handover is None; expected True or False"),
        ("handover", 1, "handover is 1; expected True or False"),
        ("drain_timeout", -1, "drain_timeout is -1; expected a number of seconds"),
        ("drain_timeout", None, "drain_timeout is None; expected a number of seconds"),
        ("on_assigned", "print", "on_assigned is 'print'; expected None, or a function of a"),
        ("on_lost", 5, "on_lost is 5; expected None, or a function of a partition id"),
        ("on_assigned", generator, "on_assigned has a yield, so calling it runs nothing"),
        ("on_lost", generator, "on_lost has a yield, so calling it runs nothing"),
        ("start", "newest", "for start= a sequence number"),
        ("start", 1.5, "for start= a sequence number"),
        ("start", -1, "sequence_number is -1"),
        ("start", None, "for start= a sequence number"),
        ("start", datetime(2026, 11, 21), "time zone"),
        ("start", {}, "partition"),
        ("start", {"0": "newest"}, "for start= a sequence number"),
        ("start", {"zero": 1}, "'zero'"),
        ("consumer_group", "", "consumer_group is ''"),
        ("consumer_group", 0, "consumer_group is 0"),
        ("consumer_group", ["$Default"], r"consumer_group is ['$Default']"),
        ("max_row", 5, "consume_batches has no argument max_row; did you mean max_rows?"),
        ("transport", "kafka", "consume_batches has no argument transport"),
        ("checkpoint_store", None, "consume_batches has no argument checkpoint_store"),
    ],
)
def test_a_wrong_argument_is_refused_at_once_with_what_is_expected(variant, name, value, expected):
    for hub in (HUB, HubAddress.from_connection_string(HUB)):
        settings = {"store": variant.memory_store(), name: value}
        assert expected in refusal(variant.consume_batches, hub, **settings)


def test_what_is_missing_is_named(variant):
    assert "hub" in refusal(variant.consume_batches, store="memory:")
    assert "store" in refusal(variant.consume_batches, HUB)
    assert "checkpoint_store" in refusal(variant.client, HUB)


def test_an_unknown_setting_of_the_client_is_named_with_the_nearest(variant):
    text = refusal(variant.client, HUB, checkpoint_store=variant.memory_store(), max_row=5)
    assert "max_row" in text
    assert "max_rows" in text


@pytest.mark.parametrize(
    ("hub", "expected"),
    [
        (None, "expected a connection string or a HubAddress"),
        (5, "expected a connection string or a HubAddress"),
        ({"hub": HUB}, "expected a connection string or a HubAddress"),
        (HUB.encode(), "expected a connection string or a HubAddress"),
        (HubAddress, "expected a connection string or a HubAddress"),
        ("", "connection string"),
        (HUB.replace("Endpoint", "endpont"), "connection string"),
        (HUB.partition(";EntityPath")[0], "EntityPath"),
    ],
)
def test_what_is_no_hub_is_refused_and_not_shown(variant, hub, expected):
    for call in (
        partial(variant.consume_batches, hub, store="memory:"),
        partial(variant.client, hub, checkpoint_store=variant.memory_store()),
    ):
        assert expected.casefold() in refusal(call).casefold()


def test_a_hub_over_kafka_is_refused_with_the_reason(variant):
    kafka = KafkaAddress.of_hub(HubAddress.from_connection_string(HUB))
    for call in (
        partial(variant.consume_batches, kafka, store="memory:"),
        partial(variant.client, kafka, checkpoint_store=variant.memory_store()),
    ):
        text = refusal(call)
        assert text.startswith("hub is a KafkaAddress: Kafka has no owner levels")
        assert "Pass a connection string or a HubAddress" in text


def test_the_group_is_that_of_the_argument_or_of_the_address_or_the_default(variant):
    address = HubAddress.from_connection_string(HUB, "billing")
    for hub, group, expected in [
        (HUB, None, "$Default"),
        (HUB, "archive", "archive"),
        (address, None, "billing"),
        (address, "archive", "archive"),
    ]:
        client = variant.client(hub, group, checkpoint_store=variant.memory_store())
        assert client.scope.consumer_group == expected


def test_an_ownership_lasts_six_intervals_unless_it_is_set(variant):
    client = partial(variant.client, HUB, checkpoint_store=variant.memory_store())
    assert client().expires_after == 180
    assert client(load_balancing_interval=5).expires_after == 30
    expires = {"partition_ownership_expiration_interval": 7}
    assert client(load_balancing_interval=5, **expires).expires_after == 7


# Stores


@pytest.mark.parametrize("store", [None, 5, [], "", "nope:", "x", MemoryCheckpointStore])
def test_what_is_no_store_is_refused(variant, store):
    text = refusal(variant.consume_batches, HUB, store=store)
    assert "store" in text or "URL" in text or "url" in text


def test_a_store_of_the_other_variant_is_refused(variant):
    other = MemoryCheckpointStore() if variant.is_async else aio.MemoryCheckpointStore()
    kind = "asynchronous" if variant.is_async else "synchronous"
    assert f"expected a store of the {kind} kind" in refusal(
        variant.consume_batches, HUB, store=other
    )
    assert "store" in refusal(variant.client, HUB, checkpoint_store=other)


def test_a_store_that_hands_over_already_is_refused_with_the_way_out(variant):
    kind = aio.HandoverStore if variant.is_async else HandoverStore
    store = kind(variant.memory_store(), expires_after=60)
    text = refusal(variant.consume_batches, HUB, store=store)
    assert "outermost" in text
    variant.consume_batches(HUB, store=store, handover=False).close()


def test_a_secret_in_the_url_of_a_store_is_not_shown(variant):
    for url in (f"postgrsql://user:{HIDDEN}@host/db", {f"postgresql://u:{HIDDEN}@h/d": 1}):
        refusal(variant.consume_batches, HUB, store=url)


def test_a_store_without_its_tables_says_what_creates_them(variant, address, tmp_path):
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    with (
        variant.consume_batches(address, store=url) as batches,
        pytest.raises(StoreNotReadyError, match="create"),
    ):
        next(batches)
    with open_store(url) as store:
        store.create()


def test_a_store_that_cannot_be_reached_is_said_at_the_first_batch(variant, address, monkeypatch):
    store = variant.memory_store()

    def unreachable(*_, **__):
        raise StoreError("nobody answers")

    monkeypatch.setattr(store, "list_ownership", unreachable)
    with (
        variant.consume_batches(address, store=store) as batches,
        pytest.raises(StoreError, match="nobody answers"),
    ):
        next(batches)
    variant.close(store)


# Hubs


def test_nothing_is_contacted_before_the_first_batch(variant, closed_port):
    hub = HUB.replace("127.0.0.1:1", f"127.0.0.1:{closed_port}")
    with variant.consume_batches(hub, store="postgresql://127.0.0.1:1/nowhere") as batches:
        assert batches.lost == {}


def test_a_hub_that_does_not_exist_is_an_error_at_the_first_batch(variant, hub, kept):
    address = HubAddress.from_connection_string(
        hub.connection_string("orders"), eventhub_name="others"
    )
    with (
        variant.consume_batches(address, store=kept.url) as batches,
        pytest.raises(ConfigurationError, match="others"),
    ):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_a_group_that_does_not_exist_is_an_error_and_nothing_stays_owned(variant, tmp_path):
    with LocalHub({"orders": 2}, consumer_groups=["known"]) as hub:
        hub.publish("orders", "0", ["event"])
        url = f"sqlite:///{tmp_path / 'c.db'}"
        with open_store(url) as store:
            store.create()
            with (
                variant.consume_batches(
                    hub.connection_string("orders"), "unknown", store=url
                ) as batches,
                pytest.raises(ConfigurationError, match="no consumer group 'unknown'"),
            ):
                next(batches)
            scope = variant.inner(batches)._client.scope
            assert {row["owner_id"] for row in store.list_ownership(*scope)} <= {""}
        eventually(lambda: not hub.connections())


def test_a_key_that_is_refused_is_an_error(variant, hub, text, kept):
    hub.accept_keys(["another"])
    try:
        with (
            variant.consume_batches(text, store=kept.url) as batches,
            pytest.raises(ConfigurationError, match=r"refused|key"),
        ):
            next(batches)
    finally:
        hub.accept_keys(None)


def test_a_start_of_a_partition_that_the_hub_does_not_have_is_an_error(variant, address, kept):
    with (
        variant.consume_batches(address, store=kept.url, start={"0": 1, "7": 1}) as batches,
        pytest.raises(ConfigurationError, match=r"start.* names partition 7, .*: 0, 1, 2"),
    ):
        next(batches)
    assert kept.owners() == {}


def test_a_hub_that_cannot_be_reached_is_an_error_at_the_first_batch(variant, closed_port, kept):
    hub = HUB.replace("127.0.0.1:1", f"127.0.0.1:{closed_port}")
    address = HubAddress.from_connection_string(hub)
    quick = HubAddress(*(getattr(address, name) for name in (
        "fully_qualified_namespace", "eventhub_name", "consumer_group", "connection_string"
    )), unreachable_timeout=0.2)  # fmt: skip
    with (
        variant.consume_batches(quick, store=kept.url) as batches,
        pytest.raises(HubUnavailableError) as raised,
    ):
        next(batches)
    assert "orders" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_the_other_kind_of_iteration_is_refused_with_the_way_out(variant):
    batches = variant.inner(variant.consume_batches(HUB, store="memory:"))
    names = ("__iter__", "__enter__") if variant.is_async else ("__aiter__", "__aenter__")
    for name in names:
        with pytest.raises(ConfigurationError) as raised:
            getattr(batches, name)()
        assert re.search(r"eventhub_checkpoints(\.aio)?\.arrow.* import consume_batches|"
                         r"consume_batches", str(raised.value))  # fmt: skip
    variant.finished(batches.close())
