"""Frames' bodies: padded when written, any number of fields when read."""

import pytest

from eventhub_checkpoints.amqp import performatives
from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.encode import encode
from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    Accepted,
    Attach,
    Begin,
    Close,
    Composite,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Rejected,
    Source,
    Target,
    Transfer,
    from_described,
)
from eventhub_checkpoints.amqp.types import Array, CodecError, Described, Symbol, UInt, ULong

CLASSES = {
    thing
    for thing in vars(performatives).values()
    if isinstance(thing, type)
    and issubclass(thing, Composite)
    and thing is not Composite
    and thing.__module__ == performatives.__name__
}

SPECIFIED = {
    Open: 10, Begin: 8, Attach: 14, Flow: 11, Transfer: 11, Disposition: 6, Detach: 3,
    performatives.End: 1, Close: 1, Error: 3, Source: 11, Target: 7, Accepted: 0, Rejected: 1,
    performatives.Received: 2, performatives.Released: 0, performatives.Modified: 3,
    performatives.SaslMechanisms: 1, performatives.SaslInit: 3, performatives.SaslOutcome: 2,
}  # fmt: skip

FILLED = [
    Open(
        container_id="c",
        hostname="h",
        max_frame_size=512,
        channel_max=1,
        idle_time_out=1000,
        outgoing_locales=("en",),
        desired_capabilities=("a", "b"),
        properties={Symbol("product"): "x"},
    ),
    Begin(remote_channel=0, next_outgoing_id=2**32 - 1, incoming_window=1, handle_max=7),
    Attach(
        name="link",
        handle=3,
        role=RECEIVER,
        source=Source(address="a", filters={Symbol("f"): Described(Symbol("f"), "x")}),
        target=Target(address=None, capabilities=("x",)),
        initial_delivery_count=0,
        max_message_size=2**63,
        properties={Symbol("epoch"): 1},
    ),
    Flow(next_incoming_id=1, handle=2, delivery_count=3, link_credit=4, drain=True),
    Transfer(handle=1, delivery_id=2, delivery_tag=b"t", message_format=0x80013700, settled=True),
    Disposition(first=1, last=2, settled=True, state=Rejected(error=Error(condition="amqp:x"))),
    Detach(handle=1, closed=True, error=Error(condition="a", description="b", info={"c": "d"})),
    Close(),
    performatives.SaslMechanisms(sasl_server_mechanisms=("ANONYMOUS",)),
    performatives.SaslInit(mechanism="PLAIN", initial_response=b"\0a\0b", hostname="h"),
    performatives.SaslOutcome(code=1),
]


@pytest.mark.parametrize("value", FILLED, ids=lambda value: type(value).__name__)
def test_what_is_written_is_read_again(value):
    raw = value.encode()
    described, end = decode(raw)
    assert end == len(raw)
    assert from_described(described) == value


@pytest.mark.parametrize("cls", sorted(CLASSES, key=str), ids=lambda cls: cls.__name__)
def test_all_fields_are_written_in_a_list_with_a_count_after_a_descriptor_of_three_bytes(cls):
    raw = cls().encode()
    assert raw[:3] == bytes((0, 0x53, cls.descriptor))
    assert raw[3] == 0xC0
    assert raw[5] == len(cls.layout) == SPECIFIED.get(cls, len(cls.layout))


def test_a_long_body_uses_the_wide_list():
    raw = Open(container_id="c" * 300).encode()
    assert raw[3] == 0xD0
    assert int.from_bytes(raw[8:12], "big") == 10


@pytest.mark.parametrize("value", FILLED, ids=lambda value: type(value).__name__)
def test_trailing_fields_may_be_left_out(value):
    described, _ = decode(value.encode())
    for count in range(len(described.value) + 1):
        partial = type(value).from_fields(described.value[:count])
        names = [name for name, _ in value.layout]
        for name in names[:count]:
            assert getattr(partial, name) == getattr(value, name)
        for name in names[count:]:
            assert getattr(partial, name) == getattr(type(value)(), name)


def test_an_empty_list_stands_for_the_defaults():
    assert from_described(decode(b"\x00\x53\x24\x45")[0]) == Accepted()
    assert from_described(decode(b"\x00\x53\x28\x45")[0]) == Source()


@pytest.mark.parametrize("descriptor", [ULong(0x10), Symbol("amqp:open:list")])
def test_a_descriptor_may_be_a_number_of_any_width_or_a_symbol(descriptor):
    assert from_described(Described(descriptor, ["c"])) == Open(container_id="c")
    eight_bytes = b"\x00\x80" + bytes(7) + b"\x10\xc0\x04\x01\xa1\x01c"
    assert from_described(decode(eight_bytes)[0]) == Open(container_id="c")


def test_one_symbol_and_an_array_of_symbols_read_the_same():
    for given in (Symbol("a"), Array([Symbol("a")])):
        assert performatives.SaslMechanisms.from_fields([given]).sasl_server_mechanisms == ("a",)


@pytest.mark.parametrize(
    "value",
    [
        Described(ULong(0x10), [5]),
        Described(ULong(0x10), ["c", None, True]),
        Described(ULong(0x10), ["c"] * 11),
        Described(ULong(0x10), {"a": 1}),
        Described(ULong(0x40), [Array([5])]),
        Described(ULong(0x12), ["n", UInt(0), True, None, None, "no source"]),
        Described(ULong(0xFF), []),
        Described("amqp:unheard-of", []),
        Described(1.5, []),
        Described(Described(1, 2), []),
        "nothing described",
    ],
    ids=repr,
)
def test_a_body_of_wrong_types_is_refused(value):
    with pytest.raises(CodecError):
        from_described(decode(encode(value))[0])
