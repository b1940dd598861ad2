"""`ehcp groups`, `describe`, `lag` and `check`, on a local hub and a SQLite file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore

OWNERS = {"0": "first", "1": "first", "2": "second"}


class Operator:
    """Runs commands on one group; the store and hub are named by the environment."""

    def __init__(self, hub: LocalHub, store: SqlCheckpointStore) -> None:
        self.hub = hub
        self.store = store
        self.text = hub.connection_string("orders")
        self.scope = HubAddress.from_connection_string(self.text).scope()

    @property
    def listed(self) -> Scope:
        """Return the group as commands list it: the built-in one has one spelling everywhere."""
        return self.scope.folded._replace(consumer_group="$Default")

    def save(self, partition_id: str, number: int) -> None:
        row = {"partition_id": partition_id, "offset": str(number), "sequence_number": number}
        self.store.update_checkpoint({**self.scope.as_dict(), **row})

    def own(self) -> None:
        self.store.claim_ownership(
            [
                {**self.scope.as_dict(), "partition_id": id_, "owner_id": owner}
                for id_, owner in OWNERS.items()
            ]
        )

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(app, [*words])
        if isinstance(result.exception, Exception) and not isinstance(
            result.exception, CheckpointStoreError
        ):
            raise result.exception
        return result

    def json(self, *words: str) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    """A group of four partitions: one behind, one with lost events, one caught up, one empty."""
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    with LocalHub({"orders": 4}) as hub, SqlCheckpointStore(url, create_tables=True) as store:
        monkeypatch.setenv("EHCP_STORE", url)
        monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
        made = Operator(hub, store)
        for partition_id in OWNERS:
            hub.publish("orders", partition_id, [b"event"] * 20)
        hub.trim("orders", "1", 10)
        made.save("0", 15)
        made.save("1", 4)
        made.save("2", 19)
        made.own()
        yield made


def test_groups_have_a_state(operator: Operator) -> None:
    [row] = operator.json("groups")
    assert row == {
        **operator.listed.as_dict(),
        "state": "active",
        "partitions": 3,
        "checkpoints": 3,
        "members": 2,
    }
    assert "active" in operator.run("groups").stdout


def test_a_store_without_groups_says_so_beside_the_header(operator: Operator) -> None:
    operator.store.delete_scope(*operator.scope)
    shown = operator.run("groups")
    assert "note: the store has no group; do its consumers use the same URL?" in shown.stderr
    assert operator.json("groups") == []


def test_one_checkpoint_has_one_number_in_every_table(operator: Operator) -> None:
    """CHECKPOINT is the last processed event, and NEXT the one that is read next."""

    def cell(heading: str, *words: str) -> str:
        lines = operator.run(*words).stdout.splitlines()
        [at] = [number for number, line in enumerate(lines) if line.startswith("PARTITION")]
        [row] = [line for line in lines[at + 1 :] if line.startswith("2 ")]
        end = lines[at].index(heading) + len(heading)
        return row[:end].split()[-1]

    operator.store.claim_ownership(
        [{**row, "owner_id": ""} for row in operator.store.list_ownership(*operator.scope)]
    )
    for words in (["lag"], ["describe"]):
        assert cell("CHECKPOINT", *words) == "19"
    assert cell("NEXT", "reset", "--to-latest") == "20"
    assert cell("NEW NEXT", "reset", "--to-sequence-number", "4") == "4"


def test_an_expired_owner_is_no_member(operator: Operator) -> None:
    [row] = operator.json("groups", "--expires-after", "0.001")
    assert (row["state"], row["members"]) == ("idle", 0)


def test_describe_shows_partitions_members_and_state(operator: Operator) -> None:
    shown = operator.run("describe").stdout
    assert "LOST" in shown
    assert "first" in shown
    assert max(map(len, shown.splitlines())) <= 80
    members = operator.json("describe", "--members")
    assert [(row["owner_id"], row["partition_ids"]) for row in members] == [
        ("first", ["0", "1"]),
        ("second", ["2"]),
    ]
    assert "second" in operator.run("describe", "--members").stdout
    assert operator.json("describe", "--state")["members"] == 2
    assert "active" in operator.run("describe", "--state").stdout


def test_long_names_fit_80_columns_and_uuids_are_short_beside_other_columns(operator) -> None:
    owner = str(uuid4())
    rows = operator.store.list_ownership(*operator.scope)
    operator.store.claim_ownership([{**row, "owner_id": owner} for row in rows])
    names = (f"{'namespace-' * 5}.servicebus.windows.net", "hub-" * 15, "consumer-group-" * 3)
    other = Scope(*names).as_dict()
    operator.store.claim_ownership([{**other, "partition_id": "0", "owner_id": owner}])
    commands = ["groups"], ["describe"], ["lag"], ["describe", "--members"], ["describe", "--state"]
    printed = [operator.run(*words).stdout for words in commands]
    assert all(len(line) <= 80 for text in printed for line in text.splitlines())
    assert [owner in text for text in printed] == [False, False, False, True, False]
    assert all(f"{owner[:8]}..." in text for text in printed[1:3])


@pytest.mark.parametrize("words", [["describe"], ["describe", "--state"], ["lag"], ["check"]])
def test_a_group_without_rows_is_named_with_those_that_there_are(operator, words) -> None:
    words = [*words, "--samples", "1"] if words == ["check"] else words
    result = operator.run(*words, "--group", "billing")
    [note] = result.stderr.splitlines()
    assert note.startswith("note: the store has no rows of ")
    assert note.endswith(f"/orders/billing; it has those of {operator.listed}")
    assert operator.run(*words).stderr == ""


def test_a_misspelt_case_is_the_same_group(operator) -> None:
    assert operator.json("lag", "--group", "$DEFAULT")["lag"] == 14


def test_lag_is_that_of_retained_events_and_lost_ones_are_apart(operator: Operator) -> None:
    found = operator.json("lag")
    rows = {row["partition_id"]: row for row in found["partitions"]}
    assert {key: (row["lag"], row["lost"]) for key, row in rows.items()} == {
        "0": (4, 0),
        "1": (10, 5),
        "2": (0, 0),
        "3": (0, 0),
    }
    assert (found["lag"], found["lost"], found["foreign"]) == (14, 5, [])
    assert (rows["1"]["state"], rows["3"]["state"]) == ("LOST", "UNOWNED")
    assert "lag 14, lost 5" in operator.run("lag").stdout


def test_seconds_are_read_by_another_group_where_a_partition_has_an_owner(operator) -> None:
    operator.hub.publish("orders", "3", [b"event"])
    own = operator.json("lag", "--seconds")["partitions"]
    assert [row["lag_seconds"] is None for row in own] == [True, True, False, False]
    assert own[2]["lag_seconds"] == 0
    other = operator.json("describe", "--seconds", "--through", "inspection")["partitions"]
    assert all(row["lag_seconds"] >= 0 for row in other)
    for command in ("lag", "describe"):
        shown = operator.run(command, "--seconds").stdout
        assert "BEHIND" in shown
        assert "pass --through" in shown
        assert max(map(len, shown.splitlines())) <= 80
        assert "pass --through" not in operator.run(command, "--seconds", "--through", "x").stdout
    assert operator.json("lag")["partitions"][3]["lag_seconds"] is None


def test_a_checkpoint_of_a_partition_that_the_hub_does_not_have_is_named(operator) -> None:
    operator.save("7", 1)
    assert operator.json("lag")["foreign"] == ["7"]


@pytest.mark.parametrize(
    ("group", "saved", "state", "status"),
    [
        ("$Default", {"1": 19, "3": -1}, "UNOWNED", 1),
        ("$Default", {}, "LOST", 2),
    ],
)
def test_check_ends_with_the_status_of_the_state(operator, group, saved, state, status) -> None:
    for partition_id, number in saved.items():
        operator.save(partition_id, number)
    operator.save("0", 19)
    result = operator.run("check", "--samples", "3", "--every", "0.1")
    assert result.exit_code == status
    assert result.stdout.startswith(f"{state}: ")
    assert f"; {state} in partition 1" in result.stdout or state == "UNOWNED"
    assert "; ;" not in result.stdout


def test_a_group_that_follows_is_ok_once_there_are_enough_samples(operator, tmp_path) -> None:
    operator.save("0", 19)
    operator.save("1", 19)
    row = {"partition_id": "3", "owner_id": "second"}
    operator.store.claim_ownership([{**operator.scope.as_dict(), **row}])
    file = tmp_path / "state.json"
    statuses = [operator.run("check", "--state-file", str(file)).exit_code for _ in range(4)]
    assert statuses == [3, 3, 0, 0]


def test_a_state_file_of_another_group_is_refused(operator, tmp_path) -> None:
    file = tmp_path / "state.json"
    operator.run("check", "--state-file", str(file))
    other = operator.run("check", "--state-file", str(file), "--group", "other")
    assert (other.exit_code, "use another one" in other.stderr) == (3, True)
    file.write_text("{")
    broken = operator.run("check", "--state-file", str(file))
    assert (broken.exit_code, "not a state file" in broken.stderr) == (3, True)


def test_what_cannot_be_read_is_unknown(operator, monkeypatch) -> None:
    monkeypatch.setenv("EHCP_STORE", "sqlite:////nowhere/checkpoints.db")
    result = operator.run("check")
    assert result.exit_code == 3
    assert result.stderr.startswith("UNKNOWN: ")


def test_a_profile_names_everything(operator, tmp_path, monkeypatch) -> None:
    file = tmp_path / "config.toml"
    url = os.environ["EHCP_STORE"]
    file.write_text(
        f"[profiles.prod]\nhub = '{operator.text}'\ngroup = '$Default'\ntimeout = '20s'\n"
        f"store = {{backendType = 'Sql', sql = {{url = '{url}'}}}}\n"
    )
    monkeypatch.delenv("EHCP_STORE")
    monkeypatch.delenv("EHCP_HUB")
    monkeypatch.setenv("EHCP_CONFIG", str(file))
    assert operator.json("lag", "--profile", "prod")["lag"] == 14
    monkeypatch.setenv("EHCP_PROFILE", "prod")
    assert operator.json("lag")["lag"] == 14
    # An option comes before the profile.
    assert operator.json("groups", "--expires-after", "0.001")[0]["members"] == 0
    assert operator.json("lag", "--group", "other")["lag"] == 50


@pytest.mark.parametrize(
    ("variable", "said"), [("EHCP_STORE", "no store: pass --store"), ("EHCP_HUB", "no hub: pass")]
)
def test_without_store_or_hub_both_ways_are_named(operator, monkeypatch, variable, said) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(CheckpointStoreError, match=said):
        raise operator.run("lag").exception
