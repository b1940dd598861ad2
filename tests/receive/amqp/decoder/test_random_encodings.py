"""Random encodings of every type, against the generic way, however they are cut."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_deliveries import (
    disturbed,
    frames_of,
    mixed_payloads,
    new_link,
    pieces,
    plain,
    reference,
)
from eventhub_checkpoints.receive.columns import Columns
from examples import examples

seeds = st.integers(0, 2**32 - 1)


@examples(75)
@given(seeds)
def test_events_of_few_producers_are_read_as_the_generic_way_reads_them(seed):
    made = mixed_payloads(seed, 30, producers=3)
    link = new_link()
    for piece in pieces(b"".join(disturbed(made, Random(seed), 300)), Random(seed), 2000):
        link.feed(piece)
    assert plain(link.take()) == plain(reference(made))


@examples(40)
@given(seeds)
def test_it_makes_no_difference_when_rows_are_taken(seed):
    made, chance = mixed_payloads(seed, 40, producers=2), Random(seed)
    link, taken = new_link(), Columns()
    for frame in disturbed(made, chance, 300):
        link.feed(frame)
        if chance.random() < 0.2:
            taken.extend(link.take(chance.choice([None, 1, 5])))
    taken.extend(link.take())
    assert plain(taken) == plain(reference(made))


@examples(25)
@given(seeds)
def test_one_byte_at_a_time_gives_the_same(seed):
    made = mixed_payloads(seed, 8, producers=2)
    link = new_link()
    for byte in b"".join(disturbed(made, Random(seed), 300)):
        link.feed(bytes((byte,)))
    assert plain(link.take()) == plain(reference(made))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.waits) for n in (1, 2, 3))]
)
def test_a_cut_at_every_position_gives_the_same(seed):
    made = mixed_payloads(seed, 4, producers=1)
    raw = b"".join(disturbed(made, Random(seed), 300))
    expected = plain(reference(made))
    for cut in range(len(raw) + 1):
        link = new_link()
        link.feed(raw[:cut])
        link.feed(memoryview(raw)[cut:])
        assert plain(link.take()) == expected


@examples(30)
@given(seeds)
def test_a_delivery_cut_into_frames_at_every_position_gives_the_same(seed):
    (made,) = mixed_payloads(seed, 1, producers=1)
    expected = plain(reference([made]))
    for parts in {2, 3, len(made) // 7, len(made) // 2, len(made)}:
        link = new_link()
        link.feed(b"".join(frames_of(made, 0, max(parts, 1))))
        assert plain(link.take()) == expected
