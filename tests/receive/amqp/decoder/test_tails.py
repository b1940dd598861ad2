"""What follows a known head: read as the generic way reads it, or left to that."""

from random import Random

import pytest

from amqp_deliveries import payload
from amqp_spelling import Spelling, compound, sized
from eventhub_checkpoints.amqp.encode import encode_described
from eventhub_checkpoints.amqp.messages import Properties, section, sections
from eventhub_checkpoints.receive.amqp.decoder import CodecError
from eventhub_checkpoints.receive.amqp.decoder.events import (
    SMALL_DESCRIPTOR,
    read_event,
    read_tail,
)
from eventhub_checkpoints.receive.columns import IN_OTHER_COLUMNS

HEAD = payload(1, data=[])
TAIL = (
    Properties(subject="subject", content_type="a/b").encode()
    + section(0x74, {"a": "text", "b": 70000, "c": 1.5, "d": None, "e": True})
    + section(0x75, b"body")
)


def tail_of(raw):
    """What is read of some sections; the bytes behind them are another frame's."""
    assert raw[:2] == SMALL_DESCRIPTOR
    return read_tail(b"#" + raw[2:] + b"\x00\x53\x75\xa0\x00", 1, len(raw) - 1)


def by_the_generic_way(raw):
    """Body, properties and fields of an event that goes on so; None where it is none."""
    try:
        event = read_event(HEAD + raw)
    except CodecError:
        return None
    systems = {key: value for key, value in event.systems.items() if key not in IN_OTHER_COLUMNS}
    return repr((event.body, event.properties, systems))


def spelled(seed, exotic):
    """A tail, as some producer spells it."""
    chance = Random(seed)
    raw = Spelling(chance, chance, exotic=exotic).event(1, 60)
    annotations = next(part for part in sections(raw) if part.code == 0x72)
    return raw[annotations.end :]


@pytest.mark.parametrize("exotic", [False, True])
def test_what_is_read_is_what_the_generic_way_reads(exotic):
    read = 0
    for seed in range(600):
        tail = spelled(seed, exotic)
        if tail[:2] == SMALL_DESCRIPTOR and (found := tail_of(tail)) is not None:
            read += 1
            assert repr(tuple(found)) == by_the_generic_way(tail)
    assert read > 100


def test_what_is_damaged_is_read_as_the_generic_way_reads_it_or_left_to_it():
    chance, refused = Random(5), 0
    for seed in range(300):
        tail = spelled(seed, exotic=bool(seed % 2))
        for _ in range(40 if tail else 0):
            damaged = bytearray(tail)
            damaged[chance.randrange(2, len(damaged))] = chance.randrange(256)
            damaged = bytes(damaged)
            if damaged[:2] == SMALL_DESCRIPTOR and (found := tail_of(damaged)) is not None:
                assert repr(tuple(found)) == by_the_generic_way(damaged)
            else:
                refused += 1
    assert refused > 1000


def test_what_is_cut_off_is_left_to_the_generic_way():
    for end in range(2, len(TAIL)):
        assert read_tail(TAIL, 2, end) is None


def test_a_tail_has_its_values_as_the_client_gives_them():
    found = tail_of(TAIL)
    assert found.body == b"body"
    assert found.properties == {b"a": b"text", b"b": 70000, b"c": 1.5, b"d": None, b"e": True}
    assert found.systems == {b"subject": b"subject", b"content-type": b"a/b"}


@pytest.mark.parametrize(
    "tail",
    [
        TAIL + section(0x75, b"second"),
        TAIL + section(0x78, {}),
        section(0x77, "value"),
        section(0x75, b"x")[:2] + b"\x75\x40",
        encode_described(0x74, compound(0xC1, 3, sized(0xA1, b"k") * 3)) + section(0x75, b""),
        encode_described(0x74, compound(0xC1, 200, sized(0xA1, b"k") * 2)) + section(0x75, b""),
        encode_described(0x74, compound(0xC1, 2, b"\x45" + sized(0xA1, b"k"))) + section(0x75, b""),
        encode_described(0x73, compound(0xC0, 14, b"\x40" * 14)) + section(0x75, b""),
    ],
    ids=["data", "footer", "value", "null", "odd", "count", "key", "fields"],
)
def test_what_few_producers_write_is_left_to_the_generic_way(tail):
    assert tail_of(tail) is None


def test_a_size_beyond_the_frame_costs_nothing():
    huge = b"\x00\x53\x74\xd1\xff\xff\xff\xff\xff\xff\xff\xf0" + b"\x40" * 100_000
    assert read_tail(huge, 2, len(huge)) is None
