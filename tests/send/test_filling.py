from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.send.filling import BatchFiller, check_sizes

EVENTS = st.lists(st.tuples(st.sampled_from([None, "0", "1"]), st.integers(1, 30)), max_size=60)


@given(EVENTS, st.integers(1, 40), st.integers(1, 7))
def test_batches_hold_every_event_in_order_and_are_as_full_as_they_can_be(events, most, at_once):
    filler = BatchFiller(most)
    batches = []
    for begin in range(0, len(events), at_once):
        for partition in (None, "0", "1"):
            chunk = [
                bytes([begin + at]) * size
                for at, (where, size) in enumerate(events[begin : begin + at_once])
                if where == partition
            ]
            batches += filler.add(partition, chunk)
    complete = len(batches)
    batches += filler.rest()
    for partition in (None, "0", "1"):
        own = [batch for batch in batches if batch.partition_id == partition]
        sent = [(each[0], len(each)) for batch in own for each in batch.sections]
        assert sent == [(at, size) for at, (where, size) in enumerate(events) if where == partition]
        for batch, following in pairwise(own):
            assert batch.size + len(following.sections[0]) > most
    for batch in batches:
        assert batch.size == sum(map(len, batch.sections))
        assert batch.size <= most or len(batch) == 1
        assert len(batch) > 0
    assert len({batch.partition_id for batch in batches[complete:]}) == len(batches) - complete


def test_an_event_above_the_size_of_a_batch_goes_alone():
    filler = BatchFiller(10)
    assert [len(batch) for batch in filler.add("0", [b"x" * 20, b"x"])] == [1]


def test_an_event_above_the_hubs_limit_is_refused_with_its_row():
    check_sizes([b"x", b"x" * 20], 20)
    with pytest.raises(ConfigurationError, match=r"row 1 .* 21 bytes .* at most 20 bytes"):
        check_sizes([b"x", b"x" * 21, b"x" * 22], 20)
