"""What a program must not ask for is one sentence, and nothing has changed."""

import math
from datetime import datetime

import pytest

from eventhub_checkpoints.localhub import LocalHub


@pytest.mark.parametrize("hubs", [None, [], ["orders"], "orders", {}])
def test_hubs_that_are_no_names_and_numbers_are_refused(hubs):
    with pytest.raises(ValueError, match=r"hubs is .*: expected names"):
        LocalHub(hubs)


@pytest.mark.parametrize("name", ["", "a/b", "a b", None, 3, b"orders"])
def test_an_impossible_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a valid name of an event hub"):
        LocalHub({name: 1})


@pytest.mark.parametrize("partitions", [0, -1, 2049, "2", 1.5, True, None])
def test_an_impossible_number_of_partitions_is_refused(partitions):
    with pytest.raises(ValueError, match=r"orders=.*: expected 1 to 2048 partitions"):
        LocalHub({"orders": partitions})


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("port", ["x", 99999, -1, None]),
        ("host", [None, 3]),
        ("consumer_groups", ["abc", 3]),
        ("idle_timeout", [0, -1, "x", math.nan, math.inf]),
        ("namespace", ["", None]),
    ],
)
def test_an_impossible_setting_is_refused_by_name(setting, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{setting} is .*: expected"):
            LocalHub({"orders": 1}, **{setting: value})


def test_a_group_without_a_name_is_refused():
    for name in ("", 3):
        with pytest.raises(ValueError, match="a consumer group's name is"):
            LocalHub({"orders": 1}, consumer_groups=["audit", name])


@pytest.mark.parametrize("events", [b"body", "body", 3, None])
def test_one_body_in_place_of_a_list_is_refused(hub, events):
    with pytest.raises(ValueError, match="list of bodies"):
        hub.publish("orders", "0", events)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (lambda hub: hub.publish("orders", "0", ["x", 3]), "bytes or a string, not int"),
        *[
            (
                lambda hub, t=t: hub.publish("orders", "0", ["x"], enqueued_time=t),
                "enqueued_time is",
            )
            for t in ("x", math.nan, -1.0, 1e18, datetime(2030, 1, 1))
        ],
        (lambda hub: hub.publish("orders", "0", ["x"], properties=3), "properties is 3"),
        (lambda hub: hub.publish("orders", "0", ["x"], properties={1: 2}), "properties is"),
        (lambda hub: hub.publish("orders", "0", ["x"], properties={"a": object()}), "no type"),
        (lambda hub: hub.publish("orders", "0", ["x"], partition_key=3), "partition_key is 3"),
        (
            lambda hub: hub.publish("orders", "0", ["x"], partition_key="k" * 129),
            "partition_key has 129 characters; expected at most 128",
        ),
        (lambda hub: hub.trim("orders", before="x"), "before is 'x'"),
        (lambda hub: hub.delay("x"), "delay by 'x' seconds"),
        (lambda hub: hub.delay(math.nan), "delay by nan seconds"),
        (lambda hub: hub.create("other", "2"), "other='2': expected 1 to 2048"),
        (lambda hub: hub.recreate("orders", 0), "orders=0: expected 1 to 2048"),
        (lambda hub: hub.add_partitions("orders", 1.5), "new partitions is 1.5"),
        (lambda hub: hub.add_partitions("orders", 2047), "at most 2048"),
        (lambda hub: hub.refuse_links("x", "amqp:not-found"), "count is 'x'"),
        (lambda hub: hub.refuse_links(1, None), "condition is None"),
        (lambda hub: hub.detach_receivers("orders", condition=3), "condition is 3"),
    ],
)
def test_an_impossible_request_changes_nothing(hub, action, reason):
    hub.publish("orders", "0", ["kept"])
    with pytest.raises(ValueError, match=reason):
        action(hub)
    found = hub.partition_properties("orders", "0")
    assert (found.first_sequence_number, found.last_sequence_number) == (0, 0)
