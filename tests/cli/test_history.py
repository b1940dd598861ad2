"""`ehcp history` on a local hub and a SQLite file."""

from pathlib import Path

import pytest

from eventhub_checkpoints import MemoryCheckpointStore, open_store
from operators import Site, ehcp, ehcp_json


def test_a_reset_is_shown_with_what_it_replaced(site: Site) -> None:
    ehcp_json("reset", "--to-sequence-number", "12", "--partitions", "0", "--execute")
    found = ehcp_json("history", "--partitions", "0")
    assert [(row["kind"], row["sequence_number"]) for row in found] == [
        ("rewind", 11),
        ("replaced", 15),
        ("rewind", 15),
    ]
    assert {row["partition_id"] for row in found} == {"0"}
    both = ehcp_json("history", "--partitions", "0,1", "--limit", "4")
    assert {row["partition_id"] for row in both} == {"0", "1"}
    times = [row["last_modified_time"] for row in both]
    assert (len(both), times) == (4, sorted(times, reverse=True))
    assert found[1]["offset"] == site.offset(15)
    assert found[1]["writer"] == site.store.writer


def test_the_newest_entries_of_all_partitions_fit_80_columns(site: Site) -> None:
    shown = ehcp("history", "--limit", "2")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[:3] for line in lines[2:] if line[0].isdigit()] == [
        ["2", "19", "rewind"],
        ["1", "4", "rewind"],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["history", "--group", "absent"],
            "the store has no earlier checkpoints of {absent}; ehcp groups lists",
        ),
        (
            ["history", "--partitions", "9"],
            "the store has no earlier checkpoints of {group}, partition 9\n",
        ),
        (
            ["delete", "--group", "absent"],
            "the store has no rows of {absent}; it has those of {group}",
        ),
        (
            ["export", "--group", "absent"],
            "the store has no positions of {absent}; it has those of",
        ),
    ],
)
def test_what_finds_nothing_says_so_on_standard_error(
    site: Site, words: list[str], said: str
) -> None:
    absent = site.scope._replace(consumer_group="absent")
    result = ehcp(*words)
    assert result.exit_code == 0
    known = said.replace("{absent}", str(absent)).replace("{group}", str(site.scope))
    assert result.stderr.startswith(f"note: {known}")


def test_what_finds_something_says_nothing_on_standard_error(site: Site) -> None:
    for verb in ("history", "delete", "export"):
        assert ehcp(verb).stderr == ""


def test_a_store_without_a_history_is_refused_in_one_sentence(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EHCP_STORE", "memory:")
    monkeypatch.setattr(MemoryCheckpointStore, "for_one_process", False)
    refused = ehcp("history")
    assert refused.exit_code == 1
    assert "MemoryCheckpointStore keeps no history; ehcp undo" in str(refused.exception)


def test_a_store_without_the_table_names_what_creates_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    with open_store(url, create_tables=True, namespace="other") as store:
        store.create()
    monkeypatch.setenv("EHCP_STORE", url)
    refused = ehcp("history")
    assert refused.exit_code == 1
    assert "store.create()" in str(refused.exception)


def test_a_partition_that_is_no_number_is_refused(site: Site) -> None:
    refused = ehcp("history", "--partitions", "first")
    assert refused.exit_code == 1
    assert "'first'" in str(refused.exception)
