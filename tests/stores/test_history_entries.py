"""Which writes get an entry in a history, decided without a clock."""

from eventhub_checkpoints.records import RESERVED_NAMESPACE, Checkpoint, Scope
from eventhub_checkpoints.stores.history_entries import ENTRY_INTERVAL, EntriesDue
from eventhub_checkpoints.stores.hook_results import FORCE

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")
FIRST, SECOND = Checkpoint(SCOPE, "0", "", 1), Checkpoint(SCOPE, "1", "", 1)


def test_the_first_write_is_due_and_the_next_one_after_a_minute() -> None:
    entries = EntriesDue()
    assert entries.are_due(FIRST, "version", 0.0)
    entries.wrote(FIRST, 0.0)
    assert not entries.are_due(FIRST, "version", ENTRY_INTERVAL - 0.1)
    assert entries.are_due(FIRST, "version", ENTRY_INTERVAL)
    assert entries.are_due(SECOND, "version", 0.0)


def test_a_rewind_is_always_due() -> None:
    entries = EntriesDue()
    entries.wrote(FIRST, 0.0)
    assert entries.are_due(FIRST, FORCE, 1.0)
    assert entries.is_rewind(FIRST, FORCE)
    assert not entries.is_rewind(FIRST, "version")


def test_a_marked_write_is_a_rewind_once() -> None:
    entries = EntriesDue()
    entries.wrote(FIRST, 0.0)
    entries.mark(SCOPE.folded, "0")
    assert entries.is_marked(FIRST)
    assert entries.is_rewind(FIRST, "version")
    assert entries.are_due(FIRST, "version", 1.0)
    assert not entries.is_marked(SECOND)
    entries.wrote(FIRST, 1.0)
    assert not entries.are_due(FIRST, "version", 2.0)


def test_what_is_forgotten_is_due_again() -> None:
    entries = EntriesDue()
    for each in (FIRST, SECOND):
        entries.wrote(each, 0.0)
    entries.forget(SCOPE, "0")
    assert entries.are_due(FIRST, "version", 1.0)
    assert not entries.are_due(SECOND, "version", 1.0)
    entries.forget(SCOPE, None)
    assert entries.are_due(SECOND, "version", 1.0)


def test_rows_of_this_package_have_no_entries() -> None:
    probe = Checkpoint(Scope(RESERVED_NAMESPACE, "verify", "probe"), "0", "", 0)
    assert not EntriesDue().are_due(probe, FORCE, 0.0)
