"""`ehcp reset`, `undo` and `delete`, on a local hub and a SQLite file."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventhub_checkpoints.cli.records import RecordFiles
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.journal import STARTED
from operators import Site, ehcp, ehcp_json
from waiting import LIMIT, eventually

# The client leaves the sockets of links that the hub has ended to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

EARLIEST = {"0": (-1, "-1"), "1": (9, "-1"), "2": (-1, "-1"), "3": (-1, "-1")}


def test_a_dry_run_shows_the_plan_and_changes_nothing(site: Site, tmp_path: Path) -> None:
    before = site.rows()
    shown = ehcp("reset", "--to-sequence-number", "12")
    assert shown.exit_code == 0
    assert "dry run" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    cells = [line.split()[:5] for line in shown.stdout.splitlines()]
    assert ["0", "16", "12", "4", "0"] in cells
    assert ["1", "5", "12", "0", "2"] in cells
    assert site.rows() == before
    assert not [*(tmp_path / "state").glob("*.json")]


def test_earliest_is_stored_as_the_beginning(site: Site) -> None:
    ehcp_json("reset", "--to-earliest", "--execute")
    assert site.rows() == EARLIEST


def test_latest_is_the_last_event_of_the_hub(site: Site) -> None:
    done = ehcp_json("reset", "--to-latest", "--execute")
    last = site.offset(19)
    assert site.rows() == {"0": (19, last), "1": (19, last), "2": (19, last), "3": (-1, "-1")}
    assert [row["skipped"] for row in done["partitions"]] == [4, 10, 0, 0]


def test_a_number_is_the_event_read_next_and_its_offset_is_that_of_the_event_before(
    site: Site,
) -> None:
    done = ehcp_json("reset", "--to-sequence-number", "12", "--execute")
    before = site.offset(11)
    assert site.rows() == {
        "0": (11, before),
        "1": (11, before),
        "2": (11, before),
        "3": (-1, "-1"),
    }
    [*_, last] = done["partitions"]
    assert last["note"] == "12 is above the last event"


def test_a_shift_goes_back_and_stops_at_the_first_event(site: Site) -> None:
    ehcp_json("reset", "--shift-by", "-3", "--partitions", "0, 1,2", "--execute")
    assert site.rows() == {
        "0": (12, site.offset(12)),
        "1": (9, "-1"),
        "2": (16, site.offset(16)),
    }


def test_current_keeps_positions_within_the_retained_events(site: Site) -> None:
    ehcp_json("reset", "--to-current", "--execute")
    assert site.rows() == {
        "0": (15, site.offset(15)),
        "1": (9, "-1"),
        "2": (19, site.offset(19)),
        "3": (-1, "-1"),
    }


def test_a_time_is_that_of_the_first_event_to_be_read(site: Site) -> None:
    noon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    for minute in range(3):
        site.hub.publish("orders", "0", ["late"], enqueued_time=noon + timedelta(minutes=minute))
    moment = (noon + timedelta(seconds=30)).isoformat()
    plan = ehcp_json("reset", "--to-datetime", moment)["partitions"]
    # Events 20, 21 and 22 have a time; the others have none that late.
    assert [row["new"] for row in plan] == [21, 20, 20, 0]
    local = (noon + timedelta(seconds=30)).replace(tzinfo=None).isoformat()
    assert ehcp_json("reset", "--to-datetime", local)["partitions"] == plan
    for spelling in ("PT1H", "1h", "60 Minutes"):
        plan = ehcp_json("reset", "--by-duration", spelling)["partitions"]
        assert [row["new"] for row in plan] == [0, 10, 0, 0]


def test_a_time_after_the_newest_event_is_the_end_and_is_noted(site: Site) -> None:
    plan = ehcp_json("reset", "--to-datetime", "2999-01-01")["partitions"]
    assert [(row["new"], row["note"]) for row in plan] == [
        (number, "no event since then") for number in (20, 20, 20, 0)
    ]


def test_a_plan_is_exported_and_read_again_as_kafka_does(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    ehcp_json("reset", "--shift-by", "-2", "--partitions", "0,2", "--export", str(file))
    assert file.read_text() == "orders,0,14\norders,2,18\n"
    ehcp_json("reset", "--from-file", str(file), "--execute")
    assert site.rows()["0"] == (13, site.offset(13))
    assert site.rows()["1"] == (4, site.offset(4))
    file.write_text("$default,ORDERS,0,3\nother,orders,0,5\n\n")
    assert [row["new"] for row in ehcp_json("reset", "--from-file", str(file))["partitions"]] == [3]


def test_an_active_group_is_refused_with_the_names_of_its_members(site: Site) -> None:
    site.own("0", "2")
    before = site.rows()
    refused = ehcp("reset", "--to-latest", "--execute")
    assert refused.exit_code == 4
    assert "'consumer-7' (partitions 0, 2)" in refused.stderr
    assert "--force" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert (site.rows(), site.owners()) == (before, {"0": "consumer-7", "2": "consumer-7"})


def test_force_takes_the_partitions_and_releases_them(site: Site) -> None:
    site.own("0", "2")
    ehcp_json("reset", "--to-latest", "--execute", "--force", "--hold", "0.2")
    assert site.owners() == dict.fromkeys("0123", "")
    assert site.rows()["0"] == (19, site.offset(19))


def test_an_expired_owner_does_not_hinder(site: Site) -> None:
    site.own("0")
    done = ehcp_json("reset", "--to-latest", "--execute", "--expires-after", "0.001")
    assert done["executed"]
    assert site.owners() == {"0": "consumer-7"}


def test_single_events_of_a_held_group_are_read_through_another_one(site: Site) -> None:
    site.own("0")
    words = ["reset", "--to-sequence-number", "5", "--partitions", "0", "--force"]
    with pytest.raises(
        CheckpointStoreError, match=r"'consumer-7' holds the partition .* --through"
    ):
        raise ehcp(*words).exception
    [row] = ehcp_json(*words, "--through", "other")["partitions"]
    assert (row["sequence_number"], row["offset"]) == (4, site.offset(4))


def test_single_events_are_read_through_the_default_group_while_another_is_consumed(
    site: Site,
) -> None:
    row = {"partition_id": "0", "owner_id": "consumer-7", "consumer_group": "workers"}
    site.store.claim_ownership([{**site.scope.as_dict(), **row}])
    words = ["--to-sequence-number", "5", "--partitions", "0", "--group", "workers"]
    [row] = ehcp_json("reset", *words, "--force")["partitions"]
    assert (row["sequence_number"], row["offset"]) == (4, site.offset(4))


def test_a_change_is_undone_and_an_undo_too(site: Site) -> None:
    before = site.rows()
    ehcp_json("reset", "--to-earliest", "--execute")
    assert "nothing was changed" in ehcp("undo").stdout
    assert site.rows() == EARLIEST
    done = ehcp_json("undo", "--execute")
    assert site.rows() == before, "partition 3 has no row again"
    assert ehcp("undo", done["record"], "--execute").exit_code == 0
    assert site.rows() == EARLIEST


def test_an_undo_by_its_record_needs_no_other_name_of_the_group(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = site.rows()
    name = Path(ehcp_json("reset", "--to-earliest", "--execute")["record"]).name
    monkeypatch.delenv("EHCP_HUB")
    done = ehcp("undo", name, "--execute")
    assert (done.exit_code, site.rows()) == (0, before)
    [undo] = [line for line in done.stdout.splitlines() if line.startswith("done; to take it back")]
    assert undo.endswith(f" --hub {site.scope.fully_qualified_namespace}/orders"), undo
    assert ehcp(*undo.partition("ehcp ")[2].split(), "--execute").exit_code == 0
    assert site.rows() == EARLIEST


def test_an_undo_lists_the_partitions_that_the_command_left_as_they_were(site: Site) -> None:
    site.save("2", 15)
    ehcp_json("reset", "--to-sequence-number", "16", "--partitions", "0,1,2", "--execute")
    site.save("2", 18)  # a consumer goes on
    rows = ehcp_json("undo", "--execute")["partitions"]
    assert [(row["partition_id"], row["state"]) for row in rows] == [
        ("0", "not changed by the command"),
        ("1", "restore"),
        ("2", "not changed by the command"),
    ]
    assert [site.rows()[id_][0] for id_ in "012"] == [15, 4, 18]


def test_several_undos_go_back_one_after_another(site: Site) -> None:
    seen = [site.rows()]
    for words in (["--to-latest"], ["--shift-by", "-5", "--partitions", "0"]):
        ehcp_json("reset", *words, "--execute")
        seen.append(site.rows())
    ehcp_json("undo", "--execute")
    assert site.rows() == seen[1]
    ehcp_json("undo", "--execute")
    assert site.rows() == seen[0]
    with pytest.raises(
        CheckpointStoreError, match="nothing is left to undo: every recorded"
    ) as error:
        raise ehcp("undo").exception
    assert "ehcp undo --list shows the records, and ehcp history, on stores" in str(error.value)
    with pytest.raises(CheckpointStoreError, match="nothing to undo: there is no recorded change"):
        raise ehcp("undo", "--group", "other").exception
    listed = ehcp_json("undo", "--list")
    assert [(row["command"].split()[0], row["state"]) for row in listed] == [
        ("undo", "done"),
        ("undo", "done"),
        ("reset", "undone"),
        ("reset", "undone"),
    ]
    shown = ehcp("undo", "--list").stdout.splitlines()
    assert max(map(len, shown[1:])) <= 80


def test_an_undo_without_a_store_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    record = ehcp_json("reset", "--to-latest", "--execute")["record"]
    monkeypatch.delenv("EHCP_STORE")
    for words in ([], [record]):
        with pytest.raises(ConfigurationError, match="no store: pass --store"):
            raise ehcp("undo", *words).exception


def test_what_was_changed_since_is_only_overwritten_by_force(site: Site) -> None:
    before = site.rows()
    ehcp_json("reset", "--to-earliest", "--execute")
    site.save("0", 3)
    after = site.rows()
    for words in ([], ["--execute"]):
        result = ehcp("undo", *words)
        with pytest.raises(CheckpointStoreError, match="partitions 0 were changed since"):
            raise result.exception
        assert site.rows() == after
    ehcp_json("undo", "--execute", "--force")
    assert site.rows() == before


def test_an_undo_is_refused_and_forced_as_a_reset_is(site: Site) -> None:
    before = site.rows()
    ehcp_json("reset", "--to-latest", "--execute")
    site.own("0", "3")
    assert ehcp("undo", "--execute").exit_code == 4
    ehcp_json("undo", "--execute", "--force", "--hold", "0.2")
    assert site.rows() == before
    # Partition 2 was at the end before, and keeps its position; that of 3 is deleted.
    assert site.owners() == {"0": "", "1": ""}


def test_a_record_is_a_file_of_positions(site: Site) -> None:
    before = site.rows()
    record = ehcp_json("reset", "--to-latest", "--execute")["record"]
    ehcp_json("import", record, "--force", "--execute")
    assert {**site.rows(), "3": None} == {**before, "3": None}


def test_neither_output_nor_record_shows_the_key(site: Site) -> None:
    done = ehcp("reset", "--to-latest", "--execute", "--json")
    record = Path(json.loads(done.stdout)["record"]).read_text()
    assert "any-key-will-do" in site.connection_string
    assert "any-key-will-do" not in done.output + record + ehcp("undo", "--list").stdout


FACTORY = """
import os, signal
from eventhub_checkpoints.sql import SqlCheckpointStore

class Fragile(SqlCheckpointStore):
    written = 0

    def write_checkpoint(self, checkpoint, seen):
        if Fragile.written == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        Fragile.written += 1
        return super().write_checkpoint(checkpoint, seen)

def fragile(**settings):
    return Fragile(os.environ["SQL_URL"], **settings)
"""


def start(site: Site, folder: Path, *words: str, store: str) -> subprocess.Popen[str]:
    """Start a command in a process."""
    (folder / "fragile_store.py").write_text(FACTORY)
    paths = [str(folder), *filter(None, sys.path)]
    return subprocess.Popen(
        [sys.executable, "-m", "eventhub_checkpoints.cli", *words],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "SQL_URL": site.url,
            "EHCP_STORE": store,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill_in_the_middle(site: Site, folder: Path) -> None:
    """Let a reset be killed before its third write."""
    words = ["reset", "--shift-by", "-4", "--partitions", "0,1,2", "--execute"]
    with start(site, folder, *words, store="fragile_store:fragile") as process:
        printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGKILL, printed
    assert site.rows() == {
        "0": (11, site.offset(11)),
        "1": (9, "-1"),
        "2": (19, site.offset(19)),
    }
    # The record names the store as the command did; here it is opened under its own name.
    [record] = RecordFiles().records()
    assert record.state == STARTED
    text = record.path.read_text().replace("fragile_store:fragile", site.url)
    record.path.write_text(text)


@pytest.mark.long
def test_what_was_killed_in_the_middle_is_undone_as_a_whole(site: Site, tmp_path: Path) -> None:
    before = site.rows()
    kill_in_the_middle(site, tmp_path)
    ehcp_json("undo", "--execute")
    assert site.rows() == before


@pytest.mark.long
def test_what_was_killed_in_the_middle_is_finished_by_repeating_it(
    site: Site, tmp_path: Path
) -> None:
    before = site.rows()
    kill_in_the_middle(site, tmp_path)
    words = ["reset", "--shift-by", "-4", "--partitions", "0,1,2", "--execute"]
    ehcp_json(*words)
    after = {"0": (11, site.offset(11)), "1": (9, "-1"), "2": (15, site.offset(15))}
    assert site.rows() == after, "nothing is shifted twice"
    assert len([*RecordFiles().records()]) == 1, "one record undoes both attempts"
    ehcp_json("undo", "--execute")
    assert site.rows() == before
    ehcp_json(*words)
    assert site.rows() == after
    ehcp_json(*words)
    assert site.rows()["0"] == (7, site.offset(7)), "a finished command is not continued"


def test_ctrl_c_while_partitions_are_held_releases_them(site: Site, tmp_path: Path) -> None:
    site.own("0")
    words = ["reset", "--to-latest", "--partitions", "0", "--execute", "--force", "--hold", "600"]
    with start(site, tmp_path, *words, store=site.url) as process:
        eventually(lambda: site.rows()["0"][0] == 19)
        assert site.owners()["0"].startswith("ehcp-")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert site.owners() == {"0": ""}
    ehcp_json("undo", "--execute")
    assert site.rows()["0"] == (15, site.offset(15))


@pytest.mark.long
def test_claims_of_a_killed_command_do_not_hinder_its_repetition(
    site: Site, tmp_path: Path
) -> None:
    site.own("0")
    words = ["reset", "--to-latest", "--partitions", "0", "--execute"]
    with start(site, tmp_path, *words, "--force", "--hold", "600", store=site.url) as process:
        eventually(lambda: site.rows()["0"][0] == 19)
        process.kill()
        process.communicate(timeout=LIMIT)
    assert site.owners()["0"].startswith("ehcp-")
    assert ehcp("reset", "--to-earliest", "--execute").exit_code == 4, "another command"
    assert ehcp(*words).exit_code == 0
    assert site.owners() == {"0": ""}


def test_rows_of_partitions_are_deleted_and_come_back(site: Site) -> None:
    before = site.rows()
    assert "dry run" in ehcp("delete", "--partitions", "0").stdout
    assert site.rows() == before
    done = ehcp_json("delete", "--partitions", "0,2", "--execute")
    assert [row["sequence_number"] for row in done["partitions"]] == [15, 19]
    assert {*site.rows()} == {"1"}
    ehcp_json("undo", "--execute")
    assert site.rows() == before


def test_a_group_is_deleted_with_its_ownerships(site: Site) -> None:
    site.own("0", "3")
    assert ehcp("delete", "--execute").exit_code == 4
    assert ehcp("delete", "--execute", "--expires-after", "0.001").exit_code == 0
    assert (site.rows(), site.owners()) == ({}, {})
    assert "nothing to change" in ehcp("delete", "--execute").stdout


def test_ownerships_of_the_dead_are_released_and_no_others(site: Site) -> None:
    site.own("0", "1")
    before = site.rows()
    assert "nothing to change" in ehcp("delete", "--owners", "--execute").stdout
    shown = ehcp("delete", "--owners", "--expires-after", "0.001")
    assert "consumer-7" in shown.stdout
    assert site.owners() == {"0": "consumer-7", "1": "consumer-7"}
    words = ["delete", "--owners", "--partitions", "1", "--expires-after", "0.001", "--execute"]
    assert ehcp_json(*words)["executed"]
    assert (site.owners(), site.rows()) == ({"0": "consumer-7", "1": ""}, before)


def test_two_commands_do_not_change_a_group_at_the_same_time(site: Site) -> None:
    before = site.rows()
    with RecordFiles().locked(site.scope):
        result = ehcp("reset", "--to-latest", "--execute")
    with pytest.raises(CheckpointStoreError, match="another ehcp changes the positions"):
        raise result.exception
    assert site.rows() == before


def test_a_record_of_another_group_or_store_is_refused(site: Site, monkeypatch) -> None:
    record = ehcp_json("reset", "--to-latest", "--execute")["record"]
    before = site.rows()
    other = ehcp("undo", record, "--execute", "--group", "other")
    with pytest.raises(CheckpointStoreError, match=r"is of .*, and the command names .*/other"):
        raise other.exception
    elsewhere = ehcp("undo", record, "--execute", "--store", "memory:elsewhere")
    with pytest.raises(CheckpointStoreError, match=r"is of store .* ehcp import stores"):
        raise elsewhere.exception
    Path(record).write_text('{"format": "eventhub-checkpoints/positions", "version": 1}')
    with pytest.raises(
        CheckpointStoreError, match="has no list of groups; expected one of the records"
    ):
        raise ehcp("undo", record, "--execute").exception
    assert site.rows() == before


def test_without_a_folder_for_the_record_nothing_is_changed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = site.rows()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EHCP_STATE_DIR", str(tmp_path / "file"))
    result = ehcp("reset", "--to-latest", "--execute")
    with pytest.raises(CheckpointStoreError, match="cannot be created"):
        raise result.exception
    assert site.rows() == before
