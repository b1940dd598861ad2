"""`ehcp peek` and `at`, on a local hub and a SQLite file, also while the group is consumed."""

import json
import os
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from typer.testing import CliRunner, Result

from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, DataLossError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import peek
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
GROUP = "workers"
BEGAN = datetime(2026, 11, 23, 10, tzinfo=UTC).timestamp()
BINARY = b"\xff\x00binary"


class Scene:
    """A group of a hub of four partitions, named by the environment.

    Partition 0 has 20 events a minute apart and checkpoint 15, partition 1 has lost events, 2 is
    caught up, and 3 is empty.
    """

    def __init__(self, hub: LocalHub, store: SqlCheckpointStore) -> None:
        self.hub, self.store = hub, store
        self.address = HubAddress.from_connection_string(hub.connection_string("orders"), GROUP)
        for number in range(20):
            for partition_id in ("0", "1", "2"):
                hub.publish(
                    "orders",
                    partition_id,
                    [BINARY if number == 18 else f"event {number} " + "x" * 20 * number],
                    properties={"number": number},
                    partition_key="key",
                    enqueued_time=BEGAN + 60 * number,
                )
        hub.trim("orders", "1", 10)
        for partition_id, number in {"0": 15, "1": 4, "2": 19}.items():
            self.save(partition_id, number)

    def save(self, partition_id: str, number: int) -> None:
        row = {"partition_id": partition_id, "offset": None, "sequence_number": number}
        self.store.update_checkpoint({**self.address.scope().as_dict(), **row}, force=True)

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(app, [*words])
        if isinstance(result.exception, Exception) and not isinstance(
            result.exception, CheckpointStoreError
        ):
            raise result.exception
        return result

    def lines(self, *words: str) -> list[Any]:
        result = self.run(*words)
        assert result.exit_code == 0, result.exception
        return [json.loads(line) for line in result.stdout.splitlines()]

    def refusal(self, *words: str) -> str:
        result = self.run(*words)
        assert isinstance(result.exception, CheckpointStoreError), result.stdout
        assert "\n" not in str(result.exception)
        return str(result.exception)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    groups = [GROUP, "other"]
    with (
        LocalHub({"orders": 4}, consumer_groups=groups) as hub,
        SqlCheckpointStore(url, create_tables=True) as store,
    ):
        monkeypatch.setenv("EHCP_STORE", url)
        monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
        monkeypatch.setenv("EHCP_GROUP", GROUP)
        yield Scene(hub, store)


def test_the_event_after_the_checkpoint_is_shown(scene: Scene) -> None:
    [event] = scene.lines("peek", "0", "-J")
    assert event == {
        "partition_id": "0",
        "sequence_number": 16,
        "offset": event["offset"],
        "enqueued_time": "2026-11-23T10:16:00+00:00",
        "partition_key": "key",
        "properties": {"number": "16"},
        "system_properties": event["system_properties"],
        "body_encoding": "utf-8",
        "body": "event 16 " + "x" * 320,
    }
    shown = scene.run("peek", "0").stdout
    assert "event 16" in shown
    assert "(329 characters)" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["0", "--count", "2"], [16, 17]),
        (["0", "--count", "99"], [16, 17, 18, 19]),
        (["0", "--before", "2"], [14, 15, 16]),
        (["2", "--before", "2"], [18, 19]),
        (["0", "--sequence-number", "0"], [0]),
        (["0", "--sequence-number", "1", "--before", "9"], [0, 1]),
        (["1", "--sequence-number", "10", "--before", "9"], [10]),
        (["0", "--at", "2026-11-23T10:05:00"], [5]),
        (["0", "--at", "2026-11-23T12:04:01+02:00"], [5]),
        (["0", "--at", "2020-01-01"], [0]),
    ],
)
def test_a_position_and_a_number_of_events_are_chosen(scene, words, numbers) -> None:
    assert [event["sequence_number"] for event in scene.lines("peek", *words, "-J")] == numbers


def test_a_checkpoint_before_the_first_event_or_with_an_offset_only_is_followed(scene) -> None:
    scene.save("0", -1)
    [event] = scene.lines("peek", "0", "-J")
    assert event["sequence_number"] == 0
    row = {"offset": event["offset"], "sequence_number": None, "partition_id": "0"}
    store = ByOffset([row])
    [after] = peek(store, scene.address, "0")
    assert after.sequence_number == 1
    row["offset"] = scene.hub.partition_properties("orders", "0").last_offset
    with pytest.raises(ConfigurationError, match="has no event after its checkpoint, 19"):
        peek(store, scene.address, "0")


class ByOffset:
    """A store whose checkpoints have offsets only, as other writers leave them."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def list_checkpoints(self, *_: str) -> list[dict[str, Any]]:
        return self.rows


def test_an_offset_names_its_event(scene: Scene) -> None:
    [seventh] = scene.lines("peek", "0", "--sequence-number", "7", "-J")
    [event] = scene.lines("peek", "0", "--offset", seventh["offset"], "--json")
    assert event["sequence_number"] == 7


def test_a_body_that_is_not_text_is_base64_in_json_and_unchanged_alone(scene: Scene) -> None:
    [event] = scene.lines("peek", "0", "--sequence-number", "18", "-J")
    assert (event["body_encoding"], b64decode(event["body"])) == ("base64", BINARY)
    result = scene.run("peek", "0", "--sequence-number", "18", "--body-only")
    assert result.stdout_bytes == BINARY + b"\n"
    assert "8 bytes, not UTF-8" in " ".join(
        scene.run("peek", "0", "--sequence-number", "18").stdout.split()
    )


def test_control_characters_of_a_body_do_not_reach_the_terminal(scene: Scene) -> None:
    scene.hub.publish("orders", "0", ["\x1b[2Jcleared\nline"])
    shown = scene.run("peek", "0", "--sequence-number", "20").stdout
    assert "\x1b" not in shown
    assert r"\x1b[2Jcleared\nline" in shown


def test_at_shows_each_partition_and_those_without_an_event_since(scene: Scene) -> None:
    scene.hub.publish("orders", "2", ["late"], enqueued_time=BEGAN + 7200)
    result = scene.run("at", "2026-11-23T10:15:30Z", "--json")
    rows = {row["partition_id"]: row for row in json.loads(result.stdout)}
    assert {key: row["sequence_number"] for key, row in rows.items()} == {
        "0": 16,
        "1": 16,
        "2": 16,
        "3": None,
    }
    [event] = scene.lines("peek", "0", "--sequence-number", "16", "-J")
    assert rows["0"]["offset"] == event["offset"]
    later = scene.run("at", "2026-11-23T11:00:00").stdout
    assert later.count("no event since then") == 3
    assert "2026-11-23T12:00:00Z" in later


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["3"], "partition 3 of .* is empty: no event was ever sent to it"),
        (["2"], "has no event after its checkpoint, 19: all are processed"),
        (["1"], "events 5 to 9 after the checkpoint have expired; the first retained one is 10"),
        (["1", "--sequence-number", "3"], "event 3 of partition 1 .* has expired"),
        (["0", "--sequence-number", "20"], "has no event 20: its newest one is 19"),
        (["0", "--at", "2999-01-01"], "no event that was enqueued at 2999-01-01T00:00:00"),
        (["7"], "has no partition '7'; it has 0 to 3"),
        (["0", "--at", "yesterday"], "the time is 'yesterday'; expected a time in ISO 8601"),
        (["0", "--at", "2026-11-23", "--offset", "1"], "pass one of them"),
        (["0", "--offset", "nonsense", "--timeout", "4"], "partition 0 of .*nonsense"),
        (["0", "--offset", ""], "offset is ''; expected a non-empty string"),
        (["0", "--group", "absent"], "partition 0 of .*/absent has no checkpoint; .* number, 0"),
        (["0", "--sequence-number", "1", "--through", "absent"], "has no consumer group 'absent'"),
        (["0", "--through", " "], "through is ' '; expected a consumer group"),
    ],
)
def test_a_mistake_is_one_sentence(scene: Scene, words: list[str], said: str) -> None:
    with pytest.raises(CheckpointStoreError, match=said):
        raise AssertionError if not (error := scene.run("peek", *words).exception) else error
    scene.refusal("peek", *words)


def test_a_checkpoint_that_was_moved_is_not_called_ahead(scene: Scene) -> None:
    scene.save("0", CLOSED_NUMBER)
    said = scene.refusal("peek", "0")
    assert "checkpoint of partition 0 of" in said
    assert "was moved to another store; name that store, or pass a position" in said
    assert str(CLOSED_NUMBER) not in said


def test_what_has_expired_or_was_created_anew_is_said(scene: Scene) -> None:
    scene.hub.trim("orders", "0")
    assert "is empty: its events up to 19 have expired" in scene.refusal("peek", "0")
    scene.hub.recreate("orders")
    scene.hub.publish("orders", "0", ["new"])
    assert "checkpoint 15 of partition 0" in scene.refusal("peek", "0")
    assert "is ahead of the newest event, 0" in scene.refusal("peek", "0")


def test_a_time_that_is_invalid_is_refused_for_at_too(scene: Scene) -> None:
    assert "expected a time in ISO 8601" in scene.refusal("at", "noon")


def test_a_hub_that_does_not_answer_ends_within_the_time_limit(scene: Scene) -> None:
    scene.hub.delay(60)
    assert "gave no answer within 0.5 s" in scene.refusal("peek", "0", "--timeout", "0.5")
    assert "gave no answer within 0.5 s" in scene.refusal(
        "at", "2026-11-23T10:00", "--timeout", "0.5"
    )


def test_the_functions_are_for_programs_too(scene: Scene) -> None:
    [event] = peek(scene.store, scene.address, "0")
    assert (event.sequence_number, event.properties) == (16, {"number": "16"})
    first = EventPosition.from_start_of_stream()
    assert [each.sequence_number for each in peek(None, scene.address, "1", first)] == [10]
    with pytest.raises(DataLossError):
        peek(scene.store, scene.address, "1")
    with pytest.raises(ConfigurationError, match="count is 0"):
        peek(scene.store, scene.address, "0", count=0)


@contextmanager
def consuming(scene: Scene, group: str) -> Iterator[list[Exception]]:
    """A running consumer of all partitions, with a checkpoint store; yields its errors."""
    errors: list[Exception] = []
    client = EventHubConsumerClient.from_connection_string(
        scene.hub.connection_string("orders"),
        group,
        checkpoint_store=scene.store,
        load_balancing_interval=0.5,
    )
    thread = threading.Thread(
        target=lambda: client.receive_batch(
            lambda *_: None, on_error=lambda _, error: errors.append(error), starting_position="-1"
        )
    )
    thread.start()
    try:
        eventually(lambda: len(held(scene, group)) == 4)
        yield errors
    finally:
        client.close()
        thread.join()


def held(scene: Scene, group: str) -> set[tuple[str, str]]:
    """The links that read with an owner level."""
    return {
        (each.partition_id, each.name)
        for each in scene.hub.receivers("orders")
        if each.consumer_group == group and each.epoch is not None
    }


def test_no_consumer_is_disconnected(scene: Scene) -> None:
    with consuming(scene, GROUP) as errors:
        before = held(scene, GROUP)
        [event] = scene.lines("peek", "0", "-J")
        assert event["sequence_number"] == 16
        assert "16" in scene.run("at", "2026-11-23T10:16").stdout
        [event] = scene.lines("peek", "0", "--sequence-number", "3", "--through", "other", "-J")
        assert event["sequence_number"] == 3
        assert held(scene, GROUP) == before
        assert not errors


def test_a_group_that_admits_no_other_reader_is_said_with_a_way_out(scene: Scene) -> None:
    with consuming(scene, "$Default") as errors:
        words = ["peek", "0", "--sequence-number", "3", "--group", "$default"]
        said = scene.refusal(*words)
        assert "consumers of $default of" in said
        assert "name another consumer group with --through" in said
        [event] = scene.lines(*words, "--through", GROUP, "-J")
        assert event["sequence_number"] == 3
        assert not errors
