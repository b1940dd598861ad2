"""The partition of a key, and keys that no partition takes."""

import pytest
from azure.eventhub._buffered_producer import _partition_resolver as official
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints._shared.partition_keys import (
    lookup3,
    partition_of,
    words_of_bytes,
    words_of_characters,
)
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.send.arrow import send_batches
from eventhub_checkpoints.send.filling import check_keys

NOWHERE = HubAddress.from_connection_string(
    "Endpoint=sb://nowhere.invalid/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=h"
)
COUNTS = (1, 2, 4, 7, 32)
"""Partitions of a hub."""
KEYS = [f"{kind}{number}" for kind in ("", "Zug Nr. ") for number in range(1000)]
FOREIGN = [
    "Zürich",
    "東京都千代田区",
    "\U0001f682",
    "\u00ff" * 11,
    "\u0100" * 12,
    "\U0010ffff" * 25,
]


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=40))
def test_a_key_has_the_hash_of_the_official_clients(key):
    data = key.encode()
    assert lookup3(len(data), words_of_bytes(data)) == official.compute_hash(key)


@given(st.text(max_size=40))
def test_characters_have_the_hash_of_the_python_client(key):
    assert lookup3(len(key), words_of_characters(key)) == official.compute_hash(key)


@pytest.mark.parametrize("count", COUNTS)
def test_the_python_producer_is_followed_exactly(count):
    ids = [str(number) for number in range(count)]
    producer = official.PartitionResolver(ids)
    places = {key: producer.get_partition_id_by_partition_key(key) for key in [*KEYS, *FOREIGN]}
    assert {key: partition_of(key, ids, "python") for key in places} == places


def test_the_two_rules_differ_for_some_negative_hashes_only():
    differing = {
        count: [
            official.generate_hash_code(key)
            for key in KEYS
            if partition_of(key, ids, "python") != partition_of(key, ids)
        ]
        for count in COUNTS
        if (ids := [str(number) for number in range(count)])
    }
    assert differing[1] == differing[2] == []
    assert all(code < 0 for codes in differing.values() for code in codes)
    assert len(KEYS) / 4.5 < len(differing[4]) < len(differing[32]) < len(KEYS) / 1.9


@pytest.mark.parametrize("key", ["k" * 129, "é" * 129, "\U0001f682" * 65])
def test_a_key_that_the_service_does_not_take_is_refused_before_the_hub_is_asked(rows, key):
    check_keys([None, key[:-1][:64], "\U0001f682" * 64, "é" * 128])
    count = len(key.encode("utf-16-le")) // 2
    with pytest.raises(
        ConfigurationError,
        match=f"row 1 of a batch has a partitionKey of {count} characters; the service accepts at",
    ):
        send_batches(NOWHERE, [rows(["a", "b"], partitionKey=["k" * 128, key])])


@pytest.mark.parametrize(
    ("key", "hash_code"),
    [("7", -15263), ("131", 30562), ("7149583486996073602", 12977), ("FWfAT", -22341)],
)
def test_a_key_has_the_partition_that_the_service_gives_it(key, hash_code):
    assert official.generate_hash_code(key) == hash_code
    assert partition_of(key, [str(n) for n in range(7)]) == str(abs(hash_code) % 7)
