"""What the page shows of events."""

import json
import sys
from dataclasses import replace

import pytest

from eventhub_checkpoints.operations.lag import Missing, PartitionLag
from eventhub_checkpoints.ui.bodies import (
    MOST_BINARY,
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_CHILDREN,
    MOST_DEPTH,
    MOST_JSON,
    MOST_NODES,
    PREVIEW,
    SURELY_SEEN,
    JsonNode,
    content,
    line,
    pieces,
    start_of,
)

POSITION = PartitionLag("0", 10, 19, 14, "100", 5, 0, 1.0, "", None)


def test_the_events_after_the_checkpoint_are_read_next() -> None:
    start = start_of(POSITION, "earliest")
    assert (start.number, start.is_next, start.note) == (15, True, "")
    assert start_of(replace(POSITION, checkpoint=19, lag=0), "earliest").number == 20


def test_the_first_retained_events_stand_for_those_that_expired() -> None:
    start = start_of(replace(POSITION, checkpoint=4, lag=10, lost=5), "earliest")
    assert (start.number, start.is_next) == (10, True)
    assert start.note.startswith("5 events after the checkpoint, 4, have expired.")


def test_a_checkpoint_ahead_of_the_hub_is_not_read_next() -> None:
    start = start_of(replace(POSITION, checkpoint=2_000), "earliest")
    assert (start.number, start.is_next) == (10, False)
    assert "2,000, is ahead of the newest event, 19" in start.note


@pytest.mark.parametrize(("missing", "is_next"), [("earliest", True), ("latest", False)])
def test_without_a_checkpoint_the_first_retained_events_are_shown(
    missing: Missing, is_next: bool
) -> None:
    start = start_of(replace(POSITION, checkpoint=None, offset=""), missing)
    assert (start.number, start.is_next) == (10, is_next)
    assert start.note.startswith("No checkpoint is stored.")


def test_the_hub_finds_a_checkpoint_that_has_an_offset_only() -> None:
    assert start_of(replace(POSITION, checkpoint=None, lag=None), "earliest").number is None


def test_a_body_is_shown_as_text_or_in_hexadecimal_digits() -> None:
    assert content("größer\n\tund".encode()).text == "größer\n\tund"
    assert content(b"x").note == "1 byte"
    assert content(b"").note == "0 bytes"
    binary = content(b"\xff\x00\x01\x02\x03")
    assert binary.text == "ff000102 03"
    assert binary.note == "5 bytes, not UTF-8, in hexadecimal digits"


def test_nothing_is_marked_in_hexadecimal_digits() -> None:
    assert content(b"\xff\x007", "7").sought == ""
    assert content(b"17", "7").sought == "7"
    assert content(b"17").sought == ""


def test_a_long_body_is_cut_with_a_note() -> None:
    body = content(("x" + "ü" * 5_000).encode())
    # The last byte is the first half of a character.
    assert body.text == "x" + "ü" * (MOST_BYTES // 2 - 1)
    assert body.note == "the first 4,000 of 10,001 bytes"
    binary = content(b"\xff" * 1_000_000)
    assert binary.text.replace(" ", "") == "ff" * MOST_BINARY
    assert binary.note.startswith("the first 512 of 1,000,000 bytes, not UTF-8")


def test_a_body_that_ends_within_a_character_is_not_text() -> None:
    assert content("ü".encode()[:1]).text == "c3"


def test_invisible_characters_and_those_that_change_the_direction_are_escaped() -> None:
    assert content("a\u202eb\x00\x1b[2J".encode()).text == r"a\u202eb\x00\x1b[2J"
    assert line("a\nb\u200bc") == r"a\nb\u200bc"


def test_a_long_value_is_cut_with_a_note() -> None:
    assert line("x" * 1_000) == "x" * MOST_CHARACTERS + "… (1,000 characters)"


def test_json_is_a_tree_with_the_kinds_of_its_values() -> None:
    tree = content(b' {"a": [1, -2.5, true, null], "b": {"c": "x\\ny"}}').tree
    assert tree is not None
    assert (tree.kind, tree.text) == ("object", "2 keys")
    (a, array), (b, nested) = tree.children
    assert (a, array.kind, array.text) == ("a", "array", "4 items")
    assert [(name, each.kind, each.text) for name, each in array.children] == [
        ("0", "number", "1"),
        ("1", "number", "-2.5"),
        ("2", "word", "true"),
        ("3", "word", "null"),
    ]
    assert (b, nested.text) == ("b", "1 key")
    assert nested.children[0][1].text == r"x\ny"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"17",
        b'"text"',
        b"{",
        b"{]",
        b"[" * 100_000,
        b'{"a": 1}\xff',
        b"[" + b"1" * 5_000 + b"]",
        b'{"a": "' + b"x" * MOST_JSON + b'"}',
    ],
)
def test_what_is_no_object_or_array_of_json_has_no_tree(body: bytes) -> None:
    assert content(body).tree is None


def test_names_and_strings_of_a_tree_are_escaped_and_cut() -> None:
    tree = content(json.dumps({"\u202e": "x" * 1_000}).encode()).tree
    assert tree is not None
    [(name, value)] = tree.children
    assert name == r"\u202e"
    assert value.text == "x" * MOST_CHARACTERS + "… (1,000 characters)"


def test_a_long_array_is_cut() -> None:
    tree = content(json.dumps([*range(MOST_CHILDREN + 5)]).encode()).tree
    assert tree is not None
    assert (len(tree.children), tree.left_out) == (MOST_CHILDREN, 5)
    assert tree.text == f"{MOST_CHILDREN + 5} items"


def size(node: JsonNode) -> int:
    return 1 + sum(size(child) for _, child in node.children)


def numbers(node: JsonNode) -> list[int]:
    return [node.number, *(number for _, child in node.children for number in numbers(child))]


def test_the_values_of_a_tree_are_bounded_and_numbered() -> None:
    tree = content(json.dumps([[*range(90)] for _ in range(90)]).encode()).tree
    assert tree is not None
    assert size(tree) == MOST_NODES
    assert numbers(tree) == [*range(MOST_NODES)]
    assert tree.left_out == 90 - len(tree.children)


def test_the_depth_of_a_tree_is_bounded() -> None:
    value: object = 1
    for _ in range(MOST_DEPTH + 5):
        value = [value]
    tree = content(json.dumps(value).encode()).tree
    depth = 0
    while tree and tree.children:
        tree, depth = tree.children[0][1], depth + 1
    assert depth == MOST_DEPTH
    assert tree is not None
    assert tree.left_out == 1


def test_a_preview_is_one_line() -> None:
    assert content(b'{\n  "a":\t1\n}').preview == '{ "a": 1 }'
    long = content(b"word " * 1_000).preview
    assert len(long) == PREVIEW + 1
    assert long.endswith("…")
    assert content(b"").preview == ""


@pytest.mark.parametrize(
    ("text", "sought", "parts"),
    [
        ("", "x", []),
        ("ACME and acme", "", ["ACME and acme"]),
        ("ACME and acme", "absent", ["ACME and acme"]),
        ("ACME and acme", "Acme", ["[ACME]", " and ", "[acme]"]),
        ("aaaa", "aa", ["[aa]", "[aa]"]),
        ("aaa", "aa", ["[aa]", "a"]),
        ("<b>1</b>", "<b>", ["[<b>]", "1</b>"]),
        ("die STRASSE, die Straße", "straße", ["die ", "[STRASSE]", ", die ", "[Straße]"]),
        ("Maße", "s", ["Ma", "[ß]", "e"]),
        (r"a\u202eb", "\u202e", ["a", r"[\u202e]", "b"]),
    ],
)
def test_what_is_searched_for_is_found_in_any_case(
    text: str, sought: str, parts: list[str]
) -> None:
    assert [f"[{part}]" if found else part for part, found in pieces(text, sought)] == parts


def test_letters_that_become_several_do_not_move_the_match() -> None:
    """The quick way, for texts that stay as long as they are, counts on this."""
    letters = [*map(chr, range(sys.maxunicode + 1))]
    folded = [each.casefold() for each in letters]
    assert all(folded)
    assert "".join(letters).casefold() == "".join(folded)
    for filler in ("x", "ß"):
        assert pieces(filler * 50 + "ACME", "acme") == [(filler * 50, False), ("ACME", True)]


def test_a_long_body_is_shown_around_the_match() -> None:
    body = b"x" * 50_000 + b"ACME" + b"y" * 50_000
    assert content(body, "absent") == replace(content(body), sought="absent")
    shown = content(body, "acme")
    assert shown.note == "the part with the match, of 100,004 bytes"
    assert "xACMEy" in shown.text
    assert shown.text.startswith("…x")
    assert len(shown.text) == MOST_BYTES + 1
    assert "xACMEy" in shown.preview
    assert len(shown.preview) == PREVIEW + 2
    assert "ACME" in content(body[:-50_000], "acme").text


def test_a_match_within_the_first_bytes_leaves_the_beginning() -> None:
    body = b"x" * 1_000 + b"ACME" + b"y" * 9_000
    shown = content(body, "acme")
    assert (shown.text, shown.note) == (content(body).text, content(body).note)
    assert "xACMEy" in shown.preview


def test_a_long_value_is_shown_around_the_match() -> None:
    text = "x" * 1_000 + "ACME" + "y" * 1_000
    assert "xACMEy" in line(text, "acme")
    assert line(text, "absent") == line(text)
    assert line("x" * 1_000 + "ACME", "acme") == "…" + "x" * (MOST_CHARACTERS - 4) + "ACME"
    assert line("x" * MOST_CHARACTERS, "x") == "x" * MOST_CHARACTERS


def test_a_long_match_is_shown_whole_if_it_fits() -> None:
    for length in (150, 180, MOST_CHARACTERS):
        sought = "y" * length
        for text in ("x" * 1_000 + sought + "x" * 1_000, "x" * 20 + sought + "x" * 1_000):
            assert (sought, True) in pieces(line(text, sought), sought)
    assert "…yyy" in line("x" * 1_000 + "y" * 300 + "x" * 1_000, "y" * 300)


def test_a_match_at_the_end_of_a_body_leaves_what_is_before_it() -> None:
    shown = content(b"x" * 50_000 + b"ACME", "acme")
    assert shown.text == "…" + "x" * (MOST_BYTES - 4) + "ACME"
    assert shown.preview == "…" + "x" * (SURELY_SEEN - 4) + "ACME"


def test_what_contains_a_match_is_known_in_a_tree() -> None:
    body = b'{"a": {"b": [1, {"Total": 17.5}]}, "note": null, "7": "x"}'

    def found(sought: str) -> list[int]:
        tree = content(body, sought).tree
        assert tree is not None
        return [node.number for node in nodes(tree) if node.is_found]

    assert found("total") == [0, 1, 2, 4]
    assert found("17.5") == [0, 1, 2, 4, 5]
    assert found("NULL") == [0, 6]
    assert found("7") == [0, 1, 2, 4, 5]
    # An array has no numbers in its text, and the text between two values is in no value.
    assert found("0") == []
    assert found('{"a"') == []
    assert found("") == []


def nodes(node: JsonNode) -> list[JsonNode]:
    return [node, *(each for _, child in node.children for each in nodes(child))]
