"""What a link's frames may look like, and what is counted."""

import pytest

from amqp_deliveries import CHANNEL, FLOW, FOREIGN, HANDLE, frames_of, new_link, payload
from amqp_spelling import compound, sized
from eventhub_checkpoints.amqp.encode import encode, encode_described
from eventhub_checkpoints.amqp.messages import BATCH_FORMAT, encode_batch, section
from eventhub_checkpoints.amqp.performatives import EMPTY_FRAME, Transfer, encode_frame
from eventhub_checkpoints.amqp.types import Char, Decimal32, Decimal64, Described, Symbol, ULong
from eventhub_checkpoints.receive.amqp.decoder import CodecError, deliveries
from eventhub_checkpoints.receive.columns import Columns


@pytest.fixture
def link():
    return new_link()


def only(link, raw):
    assert link.feed(b"".join(raw)) == []
    columns = link.take()
    assert len(columns) == 1
    return columns


def pairs(maps):
    """The pairs of the only row."""
    assert maps.ends == [0, len(maps.keys)]
    return dict(zip(maps.keys, maps.values, strict=True))


def test_a_transfer_becomes_a_row(link):
    one = payload(7, annotations={"x-opt-partition-key": "k", "x-opt-publisher": "p"})
    columns = only(link, frames_of(one, 3))
    assert (columns.numbers, columns.bodies, columns.offsets) == ([7], [b"body"], ["70"])
    assert (columns.enqueued, columns.publishers) == ([1795255200007], ["p"])
    assert columns.partition_keys == ["k"]
    assert pairs(columns.systems) == {"x-opt-partition-key": "k", "x-opt-publisher": "p"}
    assert pairs(columns.properties) == {}


def test_rows_and_their_bytes_wait_to_be_taken(link):
    for number in range(10):
        link.feed(frames_of(payload(number, bytes(number)), number)[0])
    assert (link.rows, link.size) == (10, sum(range(10)))
    assert link.take(4).numbers == [0, 1, 2, 3]
    assert (link.rows, link.size) == (6, sum(range(4, 10)))
    assert link.take(0) == Columns()
    assert link.take().numbers == [4, 5, 6, 7, 8, 9]
    assert (link.rows, link.size) == (0, 0)
    assert link.take() == Columns()


def test_frames_of_others_are_passed_on_in_order(link):
    elsewhere = encode_frame(Transfer(handle=HANDLE, delivery_id=1), CHANNEL + 1, b"x")
    raw = [FLOW, *frames_of(payload(1), 0), FOREIGN, EMPTY_FRAME, elsewhere]
    assert link.feed(b"".join(raw)) == [FLOW, FOREIGN, elsewhere]
    assert (link.rows, link.heartbeats) == (1, 1)


def test_transfers_and_deliveries_are_counted(link):
    for number in range(5):
        link.feed(b"".join(frames_of(payload(number), number, parts=number + 1)))
    link.feed(b"".join(frames_of(b"half", 5, aborted=True)))
    assert (link.transfers, link.deliveries, link.rows) == (1 + 2 + 3 + 4 + 5 + 1, 6, 5)
    assert link.last_delivery_id == 5
    assert link.unsettled == []


def test_ids_of_unsettled_deliveries_are_kept_until_they_are_cleared(link):
    for number in range(20):
        link.feed(frames_of(payload(number), number, settled=number % 3 == 0)[0])
    assert link.unsettled == [number for number in range(20) if number % 3]
    link.unsettled.clear()
    link.feed(frames_of(payload(20), 20, settled=False)[0])
    assert link.unsettled == [20]


def test_a_delivery_in_parts_is_whole_with_other_frames_in_between(link):
    one, two, three = frames_of(payload(1, b"x" * 90), 0, parts=3)
    assert link.feed(one + EMPTY_FRAME + two + FLOW) == [FLOW]
    assert (link.rows, link.is_at_boundary) == (0, False)
    assert link.feed(three) == []
    assert (link.take().bodies, link.is_at_boundary) == ([b"x" * 90], True)


def test_a_known_template_that_arrives_inside_of_a_delivery_is_a_part_of_it(link):
    whole = payload(1)
    for number in range(5):
        link.feed(frames_of(whole, number)[0])
    link.take()
    # The last transfer is spelled like those before it, and what it carries is an event as well.
    outer = payload(9, b"body that ends with " + whole)
    first = Transfer(handle=HANDLE, delivery_id=5, delivery_tag=b"\0\0\0\5", more=True)
    begun = encode_frame(first, CHANNEL, outer.removesuffix(whole))
    columns = only(link, [begun, *frames_of(whole, 5)])
    assert (columns.numbers, columns.bodies) == ([9], [b"body that ends with " + whole])


def test_an_aborted_delivery_is_not_a_row(link):
    begun = frames_of(payload(1), 0, parts=2)[0]
    link.feed(begun + frames_of(b"", 0, aborted=True)[0])
    assert (link.rows, link.deliveries, link.is_at_boundary) == (0, 1, True)
    assert only(link, frames_of(payload(2), 1)).numbers == [2]


def test_the_messages_of_a_batch_are_rows(link):
    batch = encode_batch([payload(number) for number in range(3)])
    transfer = Transfer(
        handle=HANDLE, delivery_id=0, delivery_tag=b"t", message_format=BATCH_FORMAT, settled=True
    )
    link.feed(encode_frame(transfer, CHANNEL, batch))
    assert (link.rows, link.deliveries) == (3, 1)
    assert link.take().numbers == [0, 1, 2]


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ({"data": [b"a", b"", b"b"]}, b"ab"),
        ({"data": [], "sequence": [[1, "x"], [None]]}, b'[[1,"x"],[null]]'),
        ({"data": [], "value": "text"}, b"text"),
        ({"data": [], "value": {"a": [1.5]}}, b'{"a":[1.5]}'),
        ({"data": [], "value": None}, b""),
        ({"data": []}, b""),
        ({"data": [b"x"], "footer": {Symbol("f"): 1}}, b"x"),
    ],
    ids=["several", "sequence", "text", "map", "null", "none", "footer"],
)
def test_a_body_of_any_kind_becomes_bytes(link, parts, body):
    assert only(link, frames_of(payload(1, **parts), 0)).bodies == [body]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Char("é"), "é"),
        (Decimal32("1.5"), '"1.5"'),
        (Decimal64("-2E+3"), '"-2E+3"'),
        (Described(ULong(2**40), "inner"), "inner"),
        (None, "null"),
        (True, "true"),
    ],
    ids=repr,
)
def test_values_that_the_clients_decoder_cannot_read_are_read(link, value, text):
    one = payload(1, application_properties={"k": value})
    assert pairs(only(link, frames_of(one, 0)).properties) == {"k": text}


@pytest.mark.parametrize(
    "descriptor",
    [b"\x80" + (0x75).to_bytes(8, "big"), encode(Symbol("amqp:data:binary"))],
    ids=["eight bytes", "symbol"],
)
def test_a_descriptor_of_any_spelling_names_a_section(link, descriptor):
    one = payload(1, data=[]) + b"\x00" + descriptor + encode(b"body")
    for number in range(5):
        assert only(link, frames_of(one, number)).bodies == [b"body"]


def test_text_that_is_not_utf_8_becomes_signed_bytes(link):
    properties = encode_described(0x74, compound(0xC1, 2, sized(0xA1, b"k") + sized(0xA1, b"\xff")))
    for number in range(4):
        one = payload(number, data=[]) + properties + section(0x75, b"")
        assert pairs(only(link, frames_of(one, number)).properties) == {"k": "[-1]"}


def test_an_event_without_a_sequence_number_is_an_error(link):
    with pytest.raises(CodecError, match="sequence number"):
        link.feed(frames_of(section(0x75, b"x"), 0)[0])


def test_after_an_error_the_rows_before_it_can_be_taken(link):
    good = b"".join(frames_of(payload(1), 0) + frames_of(payload(2), 1))
    bad = encode_frame(Transfer(handle=HANDLE, delivery_id=2), CHANNEL, b"\x00\x53\x99")
    with pytest.raises(CodecError) as first:
        link.feed(good + bad + good)
    with pytest.raises(CodecError) as second:
        link.feed(b"")
    assert first.value is second.value
    assert link.take().numbers == [1, 2]


def test_a_frame_larger_than_negotiated_is_refused_before_it_is_buffered(link):
    with pytest.raises(CodecError, match="larger than the 65536 negotiated"):
        link.feed((65537).to_bytes(4, "big") + b"\x02\x00\x00\x00")


def test_a_delivery_that_never_ends_is_refused_at_its_bound(link, monkeypatch):
    monkeypatch.setattr(deliveries, "MAX_DELIVERY_SIZE", 100_000)
    part = frames_of(bytes(60_000), 0, parts=2)[0]
    more = Transfer(handle=HANDLE, settled=True, more=True)
    link.feed(part)
    with pytest.raises(CodecError, match="delivery 0 exceeds 100000 bytes"):
        link.feed(encode_frame(more, CHANNEL, bytes(30_000)) * 9)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([Transfer(handle=HANDLE)], "no delivery-id"),
        (
            [
                Transfer(handle=HANDLE, delivery_id=1, more=True),
                Transfer(handle=HANDLE, delivery_id=2),
            ],
            "delivery 2 began before 1 had ended",
        ),
    ],
    ids=["no id", "two at once"],
)
def test_transfers_that_make_no_delivery_are_an_error(link, frames, message):
    with pytest.raises(CodecError, match=message):
        link.feed(b"".join(encode_frame(frame, CHANNEL, b"") for frame in frames))


def test_bytes_that_are_not_a_frame_are_an_error(link):
    with pytest.raises(CodecError, match="not an AMQP frame header"):
        link.feed(b"HTTP/1.1 400 Bad Request")
