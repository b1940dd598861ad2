import json
import uuid
from decimal import Decimal

import pytest

from eventhub_checkpoints.amqp.encode import encode
from eventhub_checkpoints.amqp.types import Float, Int, Symbol, Timestamp, UInt
from eventhub_checkpoints.receive.kafka import records as headers
from eventhub_checkpoints.receive.kafka.records import HeaderReader, read_header


def rows(maps):
    """A column of maps as one dict a row."""
    pairs = [*zip(maps.keys, maps.values, strict=True)]
    return [dict(pairs[begin:end]) for begin, end in zip(maps.ends, maps.ends[1:], strict=False)]


def read(*records, form="auto"):
    properties, systems = HeaderReader(form).maps([[*record.items()] for record in records])
    return rows(properties), rows(systems)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("héllo", "héllo"),
        ("x" * 300, "x" * 300),
        (Symbol("name"), "name"),
        (b"\xff\x00", "[-1,0]"),
        (65, "65"),
        (Int(-5), "-5"),
        (UInt(7), "7"),
        (Timestamp(1_700_000_000_000), "1700000000000"),
        (True, "true"),
        (1.5, "1.5"),
        (Float(0.5), "0.5"),
        (None, "null"),
        (uuid.UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
        (Decimal("1.5"), '"1.5"'),
    ],
)
def test_what_a_producer_of_amqp_has_set_is_its_value(value, text):
    assert read({"one": encode(value), "other": encode("text")})[0] == [
        {"one": text, "other": "text"}
    ]


@pytest.mark.parametrize(
    "value",
    [
        b"EUR",
        b"",
        "größe".encode(),
        b"\x00\x00\x04\x52",
        b"{}",
        encode(5) * 2,
        b"Q",
    ],
)
def test_what_a_producer_of_kafka_has_set_stays_as_it_is(value):
    assert read({"one": value}, {"one": value})[0] == [{"one": value.decode()}] * 2


@pytest.mark.parametrize("value", [b"\xff\xfe", encode("cut off")[:-1], encode("more") + b"x"])
def test_bytes_that_are_neither_are_shown_as_the_amqp_transport_shows_bytes(value):
    signed = [byte - 256 if byte > 127 else byte for byte in value]
    assert read({"one": value})[0] == [{"one": json.dumps(signed, separators=(",", ":"))}]


def test_a_header_without_a_value_is_null():
    assert read({"one": None}, {"one": None})[0] == [{"one": "null"}] * 2


def test_what_may_be_both_is_decided_by_the_headers_beside_it():
    assert read_header(b"price").value == "1919509349"
    assert read({"a": b"price", "b": b"EUR"})[0] == [{"a": "price", "b": "EUR"}]
    assert read({"a": b"price", "b": encode("EUR")})[0] == [{"a": "1919509349", "b": "EUR"}]
    assert read({"a": b"price"})[0] == [{"a": "1919509349"}]
    assert read({"a": encode(True), "b": encode(65)})[0] == [{"a": "true", "b": "65"}]


def test_a_value_does_not_remember_what_it_was_beside_others():
    records = {"a": b"A", "b": b"EUR"}, {"a": b"A", "b": encode("EUR")}, {"a": b"A", "b": b"EUR"}
    assert [row["a"] for row in read(*records)[0]] == ["A", "true", "A"]


def test_headers_can_be_held_for_the_one_or_the_other():
    record = {"a": b"price", "b": encode("EUR"), "content-type": b"text/plain"}
    as_text, nothing = read(record, record, form="text")
    assert as_text == [{"a": "price", "b": "[-95,3,69,85,82]", "content-type": "text/plain"}] * 2
    assert nothing == [{}] * 2
    assert read({"a": b"price", "b": b"EUR"}, form="amqp")[0] == [{"a": "1919509349", "b": "EUR"}]


def test_the_properties_section_of_amqp_is_text_and_a_system_property():
    record = {"content-type": b"A", "user-id": b"me", "count": encode(5)}
    assert read(record, record) == (
        [{"count": "5"}] * 2,
        [{"content-type": "A", "user-id": "me"}] * 2,
    )


def test_of_a_header_that_comes_twice_the_last_one_counts():
    reader = HeaderReader("auto")
    record = [("a", b"first"), ("a", b"last"), ("b", b"other")]
    properties, _ = reader.maps([record, record])
    assert rows(properties) == [{"a": "last", "b": "other"}] * 2


def test_records_that_look_alike_are_read_as_each_of_them_alone():
    one, other = ("a", b"first"), ("b", b"second")
    alike = [[one, other]] * 3
    shifted = [[one, other], [one], [other, one, other]]
    unlike = [[one, other], [other, one]]
    unknown = [[one, other], [one, ("b", b"third")]]
    twice = [[one, one]] * 2
    plain = [[one, ("content-type", b"text/plain")]] * 2
    reader = HeaderReader("auto")
    for records in (
        alike,
        alike,
        shifted,
        unlike,
        unknown,
        unknown,
        twice,
        twice,
        plain,
        plain,
        [],
    ):
        alone = [HeaderReader("auto").maps([record]) for record in records]
        properties, systems = reader.maps(records)
        assert rows(properties) == [row for each, _ in alone for row in rows(each)]
        assert rows(systems) == [row for _, each in alone for row in rows(each)]


def test_records_without_headers_have_empty_maps():
    assert read({}, {"a": b"EUR"}, {}) == ([{}, {"a": "EUR"}, {}], [{}, {}, {}])


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(headers, "REMEMBERED", 10)
    reader = HeaderReader("auto")
    records = [[(f"name {one}", b"value %d" % one)] for one in range(100)]
    assert len(rows(reader.maps(records)[0])) == 100
    assert len(reader._certain) <= 11
    assert len(reader._is_plain) <= 11
