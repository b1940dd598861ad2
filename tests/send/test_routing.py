import pytest
from azure.eventhub._buffered_producer import _partition_resolver as official
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.send.routing import lookup3, partition_of


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=40))
def test_a_key_has_the_hash_of_the_official_clients(key):
    assert lookup3(key.encode()) == official.compute_hash(key)


@pytest.mark.parametrize(
    ("key", "hash_code"),
    [("7", -15263), ("131", 30562), ("7149583486996073602", 12977), ("FWfAT", -22341)],
)
def test_a_key_has_the_partition_that_the_service_gives_it(key, hash_code):
    assert official.generate_hash_code(key) == hash_code
    assert partition_of(key, [str(n) for n in range(7)]) == str(abs(hash_code) % 7)
