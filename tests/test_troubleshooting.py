"""The page of error messages has what a user can meet, and nothing that no longer exists.

An entry is a part of a message, with an ellipsis where a value stands. Errors of stores, hubs and
consumers, and warnings in the log, each need an entry. A wrong setting needs none if its message
says what to do, which it has to do in one of a few words.
"""

import re
from pathlib import Path

import pytest

from eventhub_checkpoints import errors
from messages import LOG, VALUE, Message, kinds_of_errors, messages, texts

PAGE = Path(__file__).resolve().parent.parent / "docs/troubleshooting.md"
ENTRIES = re.findall(r"^`(.+)`$", PAGE.read_text(), re.MULTILINE)
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.CheckpointStoreError)
}
OF_SETTINGS = {
    name
    for name, kind in KINDS.items()
    if issubclass(kind, errors.ConfigurationError | errors.InvalidRecordError)
}
BUILT = {"InvalidRecordError", "GroupActiveError"}
"""Classes whose messages are of one form; what they are made from is not shown alone."""
FEWEST_WORDS = 3
"""Messages with fewer words of their own only lead to another one."""
DEMANDS = re.compile(
    r"\b(ask|begin with|call|check|choose|create|delete|ehcp \w+|end|expected|filter|finish|give|"
    r"install|it has|keep|leave|make|must|name|needs?|open|pass|preview|put|read|rename|run|select|"
    r"send|set|start|stop|store|strip|such as|takes?|use|wait|write)\b",
    re.IGNORECASE,
)
NOT_OF_USERS = ("amqp/", "conformance/", "localhub/")
"""Modules whose messages are for who writes a store, or a test with the local hub."""


def pattern(entry: str) -> re.Pattern[str]:
    parts = entry.strip(VALUE + " ").split(VALUE)
    return re.compile(".*".join(re.escape(part) for part in parts))


PATTERNS = {entry: pattern(entry) for entry in ENTRIES}


def is_on_the_page(text: str) -> bool:
    return any(entry.search(text) for entry in PATTERNS.values())


def of_kinds(kinds: set[str]) -> list[Message]:
    return [
        message
        for message in messages()
        if message.kind in kinds
        and message.words >= FEWEST_WORDS
        and not message.place.startswith(NOT_OF_USERS)
    ]


def unlisted(found: list[Message]) -> str:
    missing = {f"{m.place}: {m.text}" for m in found if not is_on_the_page(m.text)}
    return "\n".join(sorted(missing))


def test_the_page_has_every_error_and_warning_of_stores_hubs_and_consumers() -> None:
    found = of_kinds({*kinds_of_errors(), LOG} - OF_SETTINGS - BUILT)
    assert len(found) > 200
    assert unlisted(found) == ""


def test_a_wrong_setting_says_what_to_do_or_is_on_the_page() -> None:
    found = of_kinds(OF_SETTINGS - BUILT)
    assert len(found) > 400
    assert unlisted([message for message in found if not DEMANDS.search(message.text)]) == ""


def test_every_entry_is_a_message_of_the_package() -> None:
    known = "\n".join(dict.fromkeys(texts()))
    assert [entry for entry, one in PATTERNS.items() if not one.search(known)] == []


def test_an_entry_is_there_once_and_can_be_searched_for() -> None:
    assert len(ENTRIES) > 150
    assert len(set(ENTRIES)) == len(ENTRIES)
    assert [entry for entry in ENTRIES if len(re.findall(r"[A-Za-z]{2,}", entry)) < 2] == []


def test_the_table_has_every_class_of_errors() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert {*listed, "CheckpointStoreError"} == set(KINDS)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "text",
    [
        f"checkpoint {VALUE} of partition {VALUE} was not stored: nothing is stored; {VALUE}",
        "the connection broke",
        f"event {VALUE} of partition {VALUE} is skipped",
        f"{VALUE}: {VALUE}; this call tries again for at most {VALUE} s",
    ],
)
def test_messages_are_found_in_classes_tables_calls_and_the_log(text: str) -> None:
    assert any(text in message.text or message.text in text for message in messages())
    assert is_on_the_page(text)
