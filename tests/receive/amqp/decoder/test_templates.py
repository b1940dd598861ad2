"""Learned templates: that they are used, and that nothing depends on whether they are."""

import gc
from random import Random

import pytest

from amqp_deliveries import frames_of, new_link, payload, plain, reference, texts
from amqp_spelling import Spelling, compound, sized
from eventhub_checkpoints.amqp.encode import encode_described
from eventhub_checkpoints.amqp.messages import Properties, section
from eventhub_checkpoints.amqp.types import Symbol
from eventhub_checkpoints.receive.amqp.decoder import CodecError, learning
from eventhub_checkpoints.receive.amqp.decoder.templates import template_of

KNOWN = 200


@pytest.fixture
def link():
    return new_link()


def feed(link, payloads, first=1000):
    """Ids from 1000 on, so that all are spelled alike."""
    raw = [frames_of(one, number)[0] for number, one in enumerate(payloads, first)]
    link.feed(b"".join(raw))


@pytest.mark.parametrize("size", [1, 255, 256, 5_000])
def test_events_of_one_template_are_learned_at_the_second(link, size):
    numbers = [*range(10**6, 10**6 + KNOWN)]
    bodies = [bytes(size + number % 50) for number in numbers]
    feed(link, map(payload, numbers, bodies))
    assert link.generic == 2
    columns = link.take()
    assert columns.bodies == bodies
    assert columns.numbers == numbers
    assert texts(columns.offsets) == [str(number * 10) for number in numbers]


def test_templates_that_alternate_keep_the_order(link):
    made = [
        payload(
            number,
            bytes(number % 300),
            annotations={"x-opt-partition-key": f"k{number}"} if number % 2 else {},
            application_properties={f"p{place}": str(number) for place in range(number % 3)},
            properties=Properties(content_type="text/plain") if number % 5 else None,
        )
        for number in range(10_000_000, 10_000_000 + KNOWN * 5)
    ]
    feed(link, made)
    assert link.generic < KNOWN
    columns = link.take()
    assert columns.numbers == [*range(10_000_000, 10_000_000 + KNOWN * 5)]
    for number, begin, end in zip(
        columns.numbers, columns.properties.ends[:-1], columns.properties.ends[1:], strict=True
    ):
        assert texts(columns.properties.values[begin:end]) == [str(number)] * (number % 3)


def test_a_row_of_a_template_is_the_row_of_the_generic_way():
    differing = []
    for seed in range(60):
        content, numbers = Random(seed), range(10**6, 10**6 + 40)
        made = [Spelling(Random(seed), content, exotic=True).event(number) for number in numbers]
        link = new_link()
        feed(link, made)
        differing += [seed] if plain(link.take()) != plain(reference(made)) else []
    assert not differing


def test_a_value_that_holds_what_follows_it_is_read_whole(link):
    def made(number, text):
        return payload(number, application_properties={"a": text, "b": "end"})

    odd = ["plain", "with \xa1", "\x00Su\xa0", "b", "\x01b"]
    raw = [made(number, "plain") for number in range(9)] + [
        made(number, text) for number, text in enumerate(odd, 9)
    ]
    tricky = sized(0xA1, b"\xa1\x01b\xa1\x03end")
    body = sized(0xA1, b"a") + tricky + sized(0xA1, b"b") + sized(0xA1, b"end")
    raw.append(
        payload(99, data=[]) + encode_described(0x74, compound(0xC1, 4, body)) + section(0x75, b"x")
    )
    feed(link, [*raw, made(100, "plain")])
    found = link.take()
    assert found.numbers == [*range(14), 99, 100]
    values = found.properties.values[::2]
    assert texts(values[9:14]) == odd
    assert values[14] == "[-95,1,98,-95,3,101,110,100]"
    assert found.bodies[-2:] == [b"x", b"body"]


def test_several_data_sections_behind_a_known_template_are_joined(link):
    one = payload(1, b"x")
    feed(link, [one, one, one, one + section(0x75, b"y"), one])
    found = link.take()
    assert found.bodies == [b"x", b"x", b"x", b"xy", b"x"]
    assert (link.rows, link.size, link.generic) == (0, 0, 3)


def test_rows_before_one_that_is_found_unreadable_late_stay(link):
    one = payload(1, b"x")
    with pytest.raises(CodecError):
        feed(link, [one] * 20 + [one + b"\x00\x53\x99\x40"] + [one] * 20)
    assert (link.rows, link.size) == (20, 20)
    assert len(link.take()) == 20


def test_ids_of_rows_that_a_template_misread_are_not_lost(link):
    one = payload(1, b"x")
    raw = [one] * 5 + [one + section(0x75, b"y")] + [one] * 5
    for number, each in enumerate(raw, 1000):
        link.feed(frames_of(each, number, settled=False)[0])
    assert link.unsettled == [*range(1000, 1011)]


def test_a_property_that_becomes_empty_is_left_out(link):
    def made(text):
        return payload(1, properties=Properties(subject=text, content_type="a/b"))

    feed(link, [made("s")] * 4 + [made("")] + [made("t")])
    found = link.take()
    assert found.systems.ends == [0, 2, 4, 6, 8, 9, 11]
    assert found.systems.keys[8] in ("content-type", b"content-type")


def test_text_that_is_not_utf_8_spoils_no_other_row(link):
    made = [payload(number, application_properties={"k": b"ok"}) for number in range(6)]
    made[4] = made[4].replace(b"\xa0\x02ok", b"\xa0\x02\xc3\x28")
    feed(link, made)
    assert texts(link.take().properties.values) == [*["ok"] * 4, "[-61,40]", "ok"]


def test_text_that_is_only_together_utf_8_is_not_taken_for_it(link):
    made = [payload(number, application_properties={"k": b"ab"}) for number in range(6)]
    made[4] = made[4].replace(b"\xa0\x02ab", b"\xa0\x01\xc3", 1)
    made[5] = made[5].replace(b"\xa0\x02ab", b"\xa0\x01\xa9", 1)
    raw = [fix_map(one) for one in made]
    feed(link, raw)
    assert texts(link.take().properties.values)[4:] == ["[-61]", "[-87]"]


def fix_map(raw):
    """Put the size of the only small map of application properties straight."""
    at = raw.index(b"\x00\x53\x74\xc1") + 4
    end = raw.index(b"\x00\x53\x75")
    return raw[:at] + bytes((end - at - 1,)) + raw[at + 1 :]


def test_templates_are_bounded(link):
    for number in range(3):
        feed(
            link,
            [
                payload(1, annotations={f"a{head}": 1}, application_properties={f"p{tail}": "x"})
                for head in range(50)
                for tail in range(50)
            ],
            1000 + number * 2500,
        )
    found = link.take()
    assert len(found) == 3 * 2500
    templates = link._templates
    assert learning.FEW <= len(templates) <= learning.MAX_TEMPLATES
    assert len(templates._heads) == learning.MAX_HEADS
    assert len(templates._sighted) <= learning.MAX_SIGHTED + 2


def test_a_template_that_never_fits_is_not_learned_again(link):
    made = [payload(1, application_properties={"a": "\x00Sux"})] * KNOWN
    feed(link, made)
    assert plain(link.take()) == plain(reference(made))
    assert (len(link._templates), link.heads_only) == (1, KNOWN - 2)


@pytest.mark.parametrize("bound", ["MAX_TEMPLATES", "MAX_ALIKE"])
def test_a_frequent_template_replaces_a_rare_one(link, monkeypatch, bound):
    monkeypatch.setattr(learning, bound, 2)
    monkeypatch.setattr(learning, "MAX_HEADS", 1)
    # Of one bucket key, where names differ late.
    names = ("name-a", "name-b", "name-c", "name-d")
    for name in names:
        feed(link, [payload(1, application_properties={name: "x"})] * KNOWN)
        link.take()
    assert len(link._templates) == 2
    read = link.generic + link.heads_only
    feed(link, [payload(1, application_properties={names[-1]: "x"})] * KNOWN)
    assert link.generic + link.heads_only == read
    feed(link, [payload(1, annotations={"other": "x"})] * KNOWN)
    assert link.generic + link.heads_only - read < KNOWN


def test_of_frames_of_which_hardly_two_are_alike_the_head_is_enough(link):
    made = [
        payload(
            number,
            application_properties={f"p{number}": number, f"q{number * 7}": "text"},
            properties=Properties(subject=f"s{number}", content_type="a/b" if number % 3 else None),
        )
        for number in range(10**6, 10**6 + 5 * KNOWN)
    ]
    feed(link, made)
    assert (link.generic, link.heads_only) == (2, 5 * KNOWN - 2)
    assert plain(link.take()) == plain(reference(made))


def test_a_head_that_holds_what_follows_it_is_read_whole(link):
    keys = ["plain", "a\x00\x53b", "\x00\x53\x74", "\x00\x53\x75\xa0\x00", "end"] * 8
    made = [
        payload(
            number,
            b"body %d" % number,
            annotations={"x-opt-partition-key": key},
            application_properties={f"p{number}": number},
        )
        for number, key in enumerate(keys, 1000)
    ]
    feed(link, made)
    assert link.heads_only > len(keys) / 4
    assert link.generic > len(keys) / 4
    assert link.size == sum(len(b"body 1000") for _ in keys)
    first = plain(link.take(len(keys) // 2))
    assert first == plain(reference(made[: len(keys) // 2]))
    assert plain(link.take()) == plain(reference(made[len(keys) // 2 :]))


def test_templates_that_no_longer_occur_are_forgotten(link, monkeypatch):
    monkeypatch.setattr(learning, "PERIOD", KNOWN)
    for digits in (7, 9):
        feed(link, [payload(10**digits + number) for number in range(KNOWN)])
        assert len(link._templates) == 1 + (digits == 9)
        link.take()
    feed(link, [payload(10**9 + number) for number in range(KNOWN)])
    link.take()
    assert (len(link._templates), link.generic) == (1, 4)


def test_few_of_the_frames_that_fit_no_template_are_analysed(link, monkeypatch):
    analysed = []
    monkeypatch.setattr(
        learning, "template_of", lambda raw: analysed.append(raw) or template_of(raw)
    )
    feed(link, [payload(1, application_properties={f"p{n}": "x"}) for n in range(100 * KNOWN)])
    assert learning.PATIENCE < len(analysed) < 3 * KNOWN


def test_a_short_frame_whose_performative_has_a_name_is_read(link):
    """What a bucket key takes for a size is a letter, and leads behind the frame's end."""
    name = b"amqp:transfer:list"
    raw = [frames_of(sequence_number_only(number), number)[0] for number in range(KNOWN)]
    for one in raw:
        frame = one[4:9] + sized(0xA3, name) + one[11:]
        link.feed((len(frame) + 4).to_bytes(4, "big") + frame)
    assert link.take().numbers == [*range(KNOWN)]


def sequence_number_only(number):
    return section(0x72, {Symbol("x-opt-sequence-number"): number}) + section(0x75, b"")


def test_time_grows_with_the_input_whatever_a_producer_writes(link):
    """A regex that goes back would need minutes for these."""
    names = {f"n{place}": "x" for place in range(20)}
    feed(link, [payload(1, application_properties=names)] * 4)
    text = "\xa1\x02n1\xa1" * 400
    feed(link, [payload(1, application_properties=dict.fromkeys(names, text))] * 3)
    feed(link, [payload(1, application_properties={**names, "n0": text})] * 3)
    assert len(link.take()) == 10


def test_pending_rows_leave_nothing_to_the_garbage_collector(link):
    made = [payload(number, application_properties={"a": "x"}) for number in range(500)]
    feed(link, made)
    link.take()
    gc.collect()
    before = len(gc.get_objects())
    feed(link, made)
    assert len(gc.get_objects()) - before < 200


def test_symbols_and_strings_of_one_name_are_one_key(link):
    body = sized(0xA1, b"k") + sized(0xA1, b"1") + sized(0xA3, b"k") + sized(0xA1, b"2")
    properties = encode_described(0x74, compound(0xC1, 4, body))
    for number in range(4):
        feed(link, [payload(1, data=[]) + properties + section(0x75, b"")], 1000 + number)
        found = link.take().properties
        assert texts(found.keys + found.values) == ["k", "2"]


def test_an_annotation_wins_over_a_property_of_its_name(link):
    one = payload(
        1, annotations={Symbol("content-type"): "mine"}, properties=Properties(content_type="a/b")
    )
    for number in range(4):
        feed(link, [one], 1000 + number)
        systems = link.take().systems
        assert texts(systems.keys + systems.values) == ["content-type", "mine"]


@pytest.mark.parametrize("value", [[1, "a"], "text", b"\xff", 7, None], ids=repr)
def test_an_annotation_that_is_only_called_offset_can_be_anything(link, value):
    made = [payload(number, annotations={"my-offset": value}) for number in range(1000, 1006)]
    feed(link, made)
    assert plain(link.take()) == plain(reference(made))
    # A list is read as it comes, whatever is in it.
    assert link.generic == (6 if isinstance(value, list) else 2)


@pytest.mark.parametrize(
    ("sound", "damaged"),
    [(b"\xc0\x03\x01\x54\x05", b"\xc0\x03\x02\x54\x05"), (b"\x73\0\0\0A", b"\x73\xff\0\0A")],
    ids=["list", "char"],
)
def test_an_invalid_value_is_refused_on_arrival_and_not_when_it_is_taken(link, sound, damaged):
    def event(value):
        body = sized(0xA1, b"k") + value
        properties = encode_described(0x74, compound(0xC1, 2, body))
        return payload(1, data=[]) + properties + section(0x75, b"")

    feed(link, [event(sound)] * 5)
    with pytest.raises(CodecError):
        feed(link, [event(damaged)], 1005)
    assert len(link.take()) == 5
