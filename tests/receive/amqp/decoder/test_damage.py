"""Damaged and cut off input: an error of the codec, no hang, and no row lost that came before."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_deliveries import (
    MAX_FRAME_SIZE,
    disturbed,
    frames_of,
    mixed_payloads,
    new_link,
    plain,
    reference,
)
from amqp_spelling import Spelling
from eventhub_checkpoints.receive.amqp.decoder import CodecError
from examples import examples

GOOD = 20
seeds = st.integers(0, 2**32 - 1)


def stream(seed):
    """Good frames that templates are learned from, and more of the same to be damaged."""
    made = mixed_payloads(seed, GOOD + 10, producers=2)
    return (
        made,
        b"".join(disturbed(made[:GOOD], Random(seed), 300)),
        bytearray(b"".join(disturbed(made[GOOD:], Random(seed), 300 + GOOD))),
    )


def check(seed, made, good, bad):
    """Feed both in pieces; whatever happens, the rows of the good ones come out."""
    link, chance = new_link(), Random(seed)
    link.feed(good)
    at = 0
    with suppress(CodecError):
        while at < len(bad):
            end = at + chance.randrange(1, 400)
            link.feed(bytes(bad[at:end]))
            at = end
    assert plain(link.take(GOOD)) == plain(reference(made[:GOOD]))
    # What follows can be anything that the damage made of it, but it can be taken.
    assert len(link.take()) <= link.deliveries
    assert sum(map(len, link._rest)) <= MAX_FRAME_SIZE


@examples(100)
@given(seeds, st.data())
def test_a_changed_byte_does_no_harm_to_what_came_before(seed, data):
    made, good, bad = stream(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    check(seed, made, good, bad)


@examples(75)
@given(seeds, st.data())
def test_bytes_that_are_missing_or_too_many_do_none(seed, data):
    made, good, bad = stream(seed)
    at = data.draw(st.integers(0, len(bad) - 1))
    bad[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=30))
    check(seed, made, good, bad)


@examples(300)
@given(st.binary(max_size=300))
def test_any_bytes_are_rows_or_the_codecs_error(raw):
    link = new_link()
    with suppress(CodecError):
        link.feed(raw)
    assert len(link.take()) <= len(raw)


@examples(100)
@given(seeds, st.data())
def test_a_payload_cut_off_anywhere_is_an_error_or_a_shorter_event(seed, data):
    chance = Random(seed)
    whole = [Spelling(Random(seed), chance, True).event(number) for number in range(300, 306)]
    link = new_link()
    for number, one in enumerate(whole[:5]):
        link.feed(b"".join(frames_of(one, 300 + number)))
    cut = whole[5][: data.draw(st.integers(0, len(whole[5]) - 1))]
    try:
        expected = plain(reference([cut]))
    except CodecError:
        with pytest.raises(CodecError):
            link.feed(b"".join(frames_of(cut, 305)))
        assert len(link.take()) == 5
        return
    link.feed(b"".join(frames_of(cut, 305)))
    assert len(link.take(5)) == 5
    assert plain(link.take()) == expected
