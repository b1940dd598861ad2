"""`ehcp mirror`, `move` and `migrate`, on a local hub, SQLite files and Azurite."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eventhub_checkpoints import open_store
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT

SAVED = {"0": 15, "1": 4}


class Operator:
    """Runs commands on a group of three partitions in one store, with another store beside it."""

    def __init__(self, hub: LocalHub, folder: Path) -> None:
        self.hub = hub
        self.url, self.other_url = (f"sqlite:///{folder}/{name}.db" for name in ("old", "new"))
        self.scope = HubAddress.from_connection_string(hub.connection_string("orders")).scope()
        self.store, self.other = (
            SqlCheckpointStore(url, create_tables=True) for url in (self.url, self.other_url)
        )

    def save(self, store: Any, partition_id: str, number: int, **options: Any) -> None:
        row = Position(number, f"{number}00").as_dict(self.scope, partition_id)
        store.update_checkpoint(row, **options)

    def own(self, store: Any, partition_id: str, owner_id: str) -> None:
        row = {**self.scope.as_dict(), "partition_id": partition_id, "owner_id": owner_id}
        assert store.claim_ownership([row])

    def rows(self) -> list[Any]:
        """Everything in both stores; the other one's SQL counts as nothing."""
        stores = self.store, self.other
        lists = [store.list_checkpoints(*self.scope) for store in stores]
        owned = [store.list_ownership(*self.scope) for store in stores]
        for row in [row for rows in owned for row in rows]:
            del row["last_modified_time"]
        return [*lists, *owned]

    def numbers(self, store: Any) -> dict[str, int]:
        rows = store.list_checkpoints(*self.scope)
        return {row["partition_id"]: row["sequence_number"] for row in rows}

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(app, [*words])
        if isinstance(result.exception, Exception) and not isinstance(
            result.exception, CheckpointStoreError
        ):
            raise result.exception
        return result

    def done(self, *words: str) -> str:
        result = self.run(*words)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.done(*words, "--json"))


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    with LocalHub({"orders": 3}) as hub:
        made = Operator(hub, tmp_path)
        with made.store, made.other:
            monkeypatch.setenv("EHCP_STORE", made.url)
            monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
            monkeypatch.setenv("EHCP_CONFIG", str(tmp_path / "config.toml"))
            profile = f"[profiles.new]\nstore = '{made.other_url}'\n"
            (tmp_path / "config.toml").write_text(profile)
            for partition_id, number in SAVED.items():
                made.save(made.store, partition_id, number)
            made.other.list_checkpoints(*made.scope)
            yield made


def test_a_mirror_shows_first_and_copies_then(operator: Operator) -> None:
    words = "mirror", "--to-store", operator.other_url
    operator.save(operator.other, "1", 9)
    shown = operator.done(*words)
    assert "dry run: would copy 1 of 2 checkpoints; pass --execute" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert operator.numbers(operator.other) == {"1": 9}
    assert "copied 1 of 2 checkpoints" in operator.done(*words, "--once", "--execute")
    assert operator.numbers(operator.other) == {"0": 15, "1": 9}
    assert operator.json(*words) == [
        {
            "partition_id": "0",
            "action": "equal",
            "source": {"sequence_number": 15, "offset": "1500"},
            "target": {"sequence_number": 15, "offset": "1500"},
        },
        {
            "partition_id": "1",
            "action": "newer",
            "source": {"sequence_number": 4, "offset": "400"},
            "target": {"sequence_number": 9, "offset": "900"},
        },
    ]


def test_the_other_store_may_be_that_of_a_profile(operator: Operator) -> None:
    operator.done("mirror", "--to-profile", "new", "--once", "--execute")
    assert operator.numbers(operator.other) == SAVED


class Running:
    """A command in a process of its own, and the JSON lines that it prints."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eventhub_checkpoints.cli", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"},
        )

    def next(self) -> Any:
        """The next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def until(self, key: str, expected: Any) -> Any:
        """The next line that has such a value."""
        while (line := self.next())[key] != expected:
            pass
        return line

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_mirror_goes_on_until_a_signal(operator: Operator) -> None:
    words = "mirror", "--to-store", operator.other_url, "--execute", "--every", "0.1"
    with Running(*words) as running:
        assert running.next()["copied"] == ["0", "1"]
        operator.save(operator.store, "2", 7)
        line = running.until("copied", ["2"])
        assert line["actions"] == {"equal": 2, "copy": 1}
        assert line["error"] == ""
        operator.save(operator.store, "0", 3, force=True)
        assert running.until("copied", ["0"])["actions"] == {"rewind": 1, "equal": 2}
        running.process.send_signal(signal.SIGINT)
        _, said = running.process.communicate(timeout=LIMIT)
    assert (running.process.returncode, said) == (0, "")
    assert operator.numbers(operator.other) == {"0": 3, "1": 4, "2": 7}


def test_a_mirror_rides_out_an_outage(operator: Operator, blob_container, proxy) -> None:
    url = blob_container.through(proxy.endpoint).url
    words = "mirror", "--to-store", url, "--execute", "--every", "0.1", "--timeout", "5"
    with Running(*words) as running:
        assert running.next()["copied"] == ["0", "1"]
        proxy.on().refuse(503, "ServerBusy")
        operator.save(operator.store, "2", 7)
        while not (line := running.next())["error"]:
            pass
        assert "503" in line["error"]
        proxy.heal()
        running.until("copied", ["2"])


def test_a_mirror_for_keda_has_names_in_lower_case(operator: Operator, blob_container) -> None:
    words = "mirror", "--to-store", blob_container.url, "--execute", "--once"
    operator.done(*words)
    with blob_container.client() as client:
        blobs = {blob.name: blob.metadata for blob in client.list_blobs(include=["metadata"])}
    start = "/".join(operator.scope).lower()
    assert blobs == {
        f"{start}/checkpoint/{id_}": {"offset": f"{number}00", "sequencenumber": str(number)}
        for id_, number in SAVED.items()
    }
    assert start.endswith("/orders/$default")


MOVE = ("move", "--expires-after", "2", "--to-store")


def test_a_move_shows_first_and_moves_then(operator: Operator) -> None:
    words = *MOVE, operator.other_url
    before = operator.rows()
    shown = operator.done(*words)
    assert "dry run: would move 3 of 3 partitions; pass --execute" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert operator.rows() == before
    executed = operator.done(*words, "--execute")
    assert "partition 0: done, position 15" in executed
    assert "partition 2: done, position none" in executed
    assert "moved 3 partitions; stop the old store's consumers" in executed
    assert operator.numbers(operator.other) == SAVED
    assert operator.numbers(operator.store) == dict.fromkeys("012", CLOSED_NUMBER)
    old = operator.json("lag")["partitions"]
    assert [(each["state"], each["lag"]) for each in old] == [("MOVED", 0)] * 3
    assert operator.json(*words)[0] == {
        "partition_id": "0",
        "stage": "done",
        "position": {"sequence_number": 15, "offset": "1500"},
        "owner_id": "",
        "target_owner_id": "",
    }


def test_a_group_that_was_moved_is_shown_as_such_by_every_command(operator: Operator) -> None:
    operator.done(*MOVE, operator.other_url, "--execute")
    mirror = f"mirror --to-store {operator.other_url}"
    for words in ("describe", "delete", "history", mirror):
        shown = operator.done(*words.split())
        assert shown.count("MOVED") == 3
        assert str(CLOSED_NUMBER) not in shown
    deleted = operator.json("delete")["partitions"]
    assert [(row["sequence_number"], row["is_moved"]) for row in deleted] == [(None, True)] * 3
    [found] = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)["findings"]
    assert found["code"] == "checkpoint_closed"


def test_a_move_takes_the_partition_of_a_live_consumer(operator: Operator) -> None:
    operator.own(operator.store, "0", "consumer")
    move = "move", "--to-store", operator.other_url, "--settle", "0.1"
    assert "consumer" in operator.done(*move)
    operator.done(*move, "--execute")
    # The fence is released, for commands that would wait until it expires.
    owners = [row["owner_id"] for row in operator.store.list_ownership(*operator.scope)]
    assert owners == ["", "", ""]
    assert operator.json("describe", "--state")["state"] == "moved"
    assert "done; to take it back: ehcp undo" in operator.done("reset", "--to-latest", "--execute")


def test_a_move_waits_for_a_live_consumer_and_ends_on_a_signal(operator: Operator) -> None:
    operator.own(operator.store, "0", "consumer")
    words = "move", "--to-store", operator.other_url, "--wait", "--execute"
    with Running(*words) as running:
        stages: dict[str, str] = {}
        while stages != {"0": "prepared", "1": "done", "2": "done"}:
            partitions = running.next()["partitions"]
            stages |= {each["partition_id"]: each["stage"] for each in partitions}
        running.process.send_signal(signal.SIGTERM)
        _, said = running.process.communicate(timeout=LIMIT)
    assert running.process.returncode == 143
    assert said.splitlines() == [
        "python -m eventhub_checkpoints.cli: ended early",
        "  not moved: partition 0",
        "  moved: partition 1, 2",
        "  to continue: run the same command again; to go back after that, run it with the stores "
        "exchanged",
    ]
    owners = {
        row["partition_id"]: row["owner_id"]
        for row in operator.store.list_ownership(*operator.scope)
    }
    assert owners == {"0": "consumer", "1": "", "2": ""}
    assert operator.numbers(operator.store)["0"] == 15
    assert operator.numbers(operator.other)["0"] == CLOSED_NUMBER


def test_a_move_keeps_the_old_store_fenced_as_long_as_it_is_told(operator: Operator) -> None:
    operator.done(*MOVE, operator.other_url, "--execute")
    [first, *_] = operator.store.list_ownership(*operator.scope)
    operator.done(*MOVE, operator.other_url, "--execute", "--hold", "0.6")
    [later, *_] = operator.store.list_ownership(*operator.scope)
    assert later["etag"] != first["etag"]


def test_a_live_consumer_at_the_target_is_refused_with_a_status_of_its_own(
    operator: Operator,
) -> None:
    operator.own(operator.other, "1", "early")
    before = operator.rows()
    for execute in ([], ["--execute"]):
        result = operator.run("move", "--to-store", operator.other_url, *execute)
        assert result.exit_code == 4
        assert "is active: 'early' (partitions 1); stop the consumers of" in result.stderr
    assert operator.rows() == before


@pytest.fixture
def leases(blob_container) -> str:
    """A container with the leases of the Event Processor Host of .NET."""
    with blob_container.client() as client:
        for partition_id, number in {"0": 20, "1": 2, "2": 7}.items():
            lease = {"Offset": f"{number}00", "SequenceNumber": number, "Epoch": 3}
            client.upload_blob(f"$Default/{partition_id}", json.dumps(lease))
    url: str = blob_container.url
    return url


def test_a_migration_shows_first_and_copies_then(operator: Operator, leases: str) -> None:
    words = "migrate", "--from", "eph", "--container", leases
    before = operator.rows()
    assert "dry run: would copy 2 of 3 checkpoints; pass --execute" in operator.done(*words)
    assert operator.rows() == before
    assert "copied 2 of 3 checkpoints" in operator.done(*words, "--execute")
    assert operator.numbers(operator.store) == {"0": 20, "1": 4, "2": 7}
    assert [step["action"] for step in operator.json(*words)] == ["equal", "newer", "equal"]


@pytest.mark.parametrize(("format", "prefix"), [("eph-go", ""), ("dapr", "dapr-orders-$Default-")])
def test_a_lease_that_never_processed_anything_is_not_migrated(
    operator: Operator, blob_container, format: str, prefix: str
) -> None:
    new = {"offset": "@latest", "sequenceNumber": 0, "enqueueTime": "0001-01-01T00:00:00Z"}
    processed = {"offset": "700", "sequenceNumber": 7, "enqueueTime": "2021-01-01T00:00:00Z"}
    with blob_container.client() as client:
        for partition_id, checkpoint in enumerate((new, None, processed)):
            lease = {"partitionID": str(partition_id), "epoch": 1, "checkpoint": checkpoint}
            client.upload_blob(f"{prefix}{partition_id}", json.dumps(lease))
    words = "migrate", "--from", format, "--container", blob_container.url
    assert [step["partition_id"] for step in operator.json(*words)] == ["2"]


def test_names_in_another_case_are_migrated_within_one_container(
    operator: Operator, blob_container
) -> None:
    url = blob_container.url
    with BlobCheckpointStore.from_url(url, name_case="as-typed") as store:
        operator.save(store, "0", 5)
    operator.done("migrate", "--from", "as-typed", "--store", url, "--execute")
    with open_store(url) as store:
        assert operator.numbers(store) == {"0": 5}


def test_a_group_is_moved_to_a_prefix_in_the_same_container(
    operator: Operator, blob_container
) -> None:
    url, team = blob_container.url, f"{blob_container.url}?prefix=team-a"
    with open_store(url) as store, open_store(team) as other:
        operator.save(store, "0", 5)
        operator.done("move", "--store", url, "--to-store", team, "--wait", "--execute")
        assert operator.numbers(other) == {"0": 5}
        assert operator.numbers(store)["0"] > 5  # it is closed
        operator.save(other, "0", 6)
    line = operator.done("reset", "--store", team, "--to-earliest", "--execute")
    assert f"--store '{team}'" in line


def test_a_prefix_of_this_package_is_none_of_an_older_program(
    operator: Operator, blob_container
) -> None:
    team = f"{blob_container.url}?prefix=team-a"
    result = operator.run("migrate", "--from", "eph", "--store", team)
    assert "leave it out, and pass the prefix that the old program had" in str(result.exception)


def test_offsets_of_iothub_react_get_their_numbers_from_the_hub(
    operator: Operator, blob_container
) -> None:
    operator.hub.publish("orders", "2", [b"event"] * 10)
    last = int(operator.hub.partition_properties("orders", "2").last_offset)
    with blob_container.client() as client:
        client.upload_blob("partition-2", str(last // 9 * 4))
    words = "migrate", "--from", "iothub-react", "--container", blob_container.url
    operator.done(*words, "--execute")
    assert operator.numbers(operator.store)["2"] == 4


MISTAKES: list[tuple[list[str], str]] = [
    (["mirror", "--to-store", "OLD"], "must name a store other than the source"),
    (["move", "--to-store", "OLD", "--execute"], "must name a store other than the source"),
    (["mirror"], "name the other store: pass --to-store URL, set EHCP_TO_STORE, or"),
    (["move", "--execute"], "name the other store: pass --to-store URL, set EHCP_TO_STORE, or"),
    (["move", "--to-profile", "sql"], "profile 'sql' is not in .*; it has: new"),
    (["move", "--to-store", "OLD?timeout=20", "--execute"], "source and target are the same store"),
    (["mirror", "--to-store", "orders.db"], "'orders.db' names no store"),
    (["mirror", "--to-store", "sqlite:////nowhere/new.db", "--once", "--execute"], "nowhere"),
    (["move", "--to-store", "sqlite:////nowhere/new.db", "--execute"], "nowhere"),
    (["move", "--to-store", "NEW", "--hub", "orders"], "the hub is 'orders'; expected"),
    (["move", "--to-store", "NEW", "--group", " "], "consumer_group is ' '"),
    (["migrate", "--from", "kinesis", "--container", "BLOB"], "expected one of eph, eph-python"),
    (["migrate", "--from", "eph", "--container", "BLOB"], "no position of .* was found"),
    (["migrate", "--from", "eph"], "expected https://ACCOUNT"),
    (["migrate", "--from", "eph", "--container", "BLOB", "--prefix", "x"], "and its prefix"),
    (["migrate", "--from", "eph", "--container", "BLOBx"], "does not exist"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_one_sentence_and_changes_nothing(
    operator: Operator, blob_container, words: list[str], said: str
) -> None:
    places = {"OLD": operator.url, "NEW": operator.other_url, "BLOB": blob_container.url}
    for name, url in places.items():
        words = [url + word.removeprefix(name) if word.startswith(name) else word for word in words]
    before = [operator.store.list_checkpoints(*operator.scope), operator.rows()[1]]
    result = operator.run(*words)
    with pytest.raises(CheckpointStoreError, match=said):
        raise result.exception or AssertionError(result.output)
    assert "\n" not in str(result.exception)
    assert [operator.store.list_checkpoints(*operator.scope), operator.rows()[1]] == before


@pytest.mark.parametrize(
    "words", [["migrate"], ["mirror", "--every", "0"], ["move", "--settle", "-1"]]
)
def test_wrong_usage_has_a_status_of_its_own(operator: Operator, words: list[str]) -> None:
    before = operator.rows()
    assert operator.run(*words).exit_code == 2
    assert operator.rows() == before


def test_a_command_outside_of_the_main_thread_leaves_signals_alone(operator: Operator) -> None:
    results: list[Result] = []
    words = "mirror", "--to-store", operator.other_url, "--execute", "--once"
    thread = threading.Thread(target=lambda: results.append(operator.run(*words)))
    thread.start()
    thread.join()
    assert results[0].exit_code == 0
