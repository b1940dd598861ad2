"""`ehcp export`, `import` and `copy`, on a local hub and SQLite files."""

import json
from pathlib import Path

import pytest

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.positions import Position, read_groups
from eventhub_checkpoints.operations.transfer import closed_with
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore
from operators import Site, ehcp, ehcp_json

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def actions(result: list[dict]) -> dict[str, str]:
    [group] = result
    return {row["partition_id"]: row["action"] for row in group["partitions"]}


@pytest.mark.parametrize("name", ["positions.json", "positions.csv"])
def test_what_was_exported_is_imported(site: Site, tmp_path: Path, name: str) -> None:
    before = site.rows()
    file = tmp_path / name
    assert ehcp("export", str(file)).exit_code == 0
    ehcp_json("delete", "--execute")
    assert set(actions(ehcp_json("import", str(file))).values()) == {"copy"}
    assert site.rows() == {}
    ehcp_json("import", str(file), "--execute")
    assert site.rows() == before
    assert "nothing to change" in ehcp("import", str(file), "--execute").stdout
    ehcp_json("undo", "--execute")
    assert site.rows() == {}


def test_the_json_has_the_last_processed_events(site: Site) -> None:
    value = json.loads(ehcp("export").stdout)
    assert (value["format"], value["version"]) == ("eventhub-checkpoints/positions", 1)
    [group] = value["groups"]
    assert Scope.from_dict(group) == site.scope
    assert group["checkpoints"][0] == {
        "partition_id": "0",
        "sequence_number": 15,
        "offset": site.offset(15),
    }


def test_the_format_of_kafka_has_the_events_read_next(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "kafka.csv"
    ehcp("export", str(file), "--format", "kafka")
    assert file.read_text() == "orders,0,16\norders,1,5\norders,2,20\n"
    ehcp_json("delete", "--execute")
    [plan] = ehcp_json("import", str(file), "--execute")
    assert plan["executed"]
    # Offsets come from the hub, and the position that has expired is that of the first event.
    assert site.rows() == {
        "0": (15, site.offset(15)),
        "1": (9, "-1"),
        "2": (19, site.offset(19)),
    }


def test_a_later_position_is_kept_without_force(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    ehcp("export", str(file))
    site.save("0", 18)
    site.save("1", 2)
    assert actions(ehcp_json("import", str(file), "--execute")) == {
        "0": "newer",
        "1": "copy",
        "2": "equal",
    }
    assert [row[0] for row in site.rows().values()] == [18, 4, 19]
    ehcp_json("import", str(file), "--force", "--execute", "--partitions", "0")
    assert [row[0] for row in site.rows().values()] == [15, 4, 19]


@pytest.mark.parametrize("name", ["positions.json", "positions.csv"])
def test_a_closed_checkpoint_is_exported_as_stored_and_never_brought_elsewhere(
    site: Site, tmp_path: Path, name: str
) -> None:
    closed = closed_with(Position(15, "640"))
    site.store.update_checkpoint(closed.as_dict(site.scope, "0"))
    file = tmp_path / name
    ehcp("export", str(file))
    [exported] = read_groups(file.read_text(), name)
    assert exported.positions["0"] == closed
    refused = ehcp("export", "--format", "kafka")
    with pytest.raises(CheckpointStoreError, match="partition 0 is closed, so the format kafka"):
        raise refused.exception
    force = ["--execute", "--force"]
    assert actions(ehcp_json("copy", "--to-group", "new", *force))["0"] == "closed"
    ehcp_json("delete", "--execute")
    assert actions(ehcp_json("import", str(file), *force))["0"] == "closed"
    assert {*site.rows()} == {*site.rows("new")} == {"1", "2"}


def test_a_closed_checkpoint_is_overwritten_by_force_only_and_comes_back_by_undo(
    site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "positions.json"
    ehcp("export", str(file))
    open_at, closed = site.rows()["0"], closed_with(Position(15, "640"))
    site.store.update_checkpoint(closed.as_dict(site.scope, "0"))
    assert actions(ehcp_json("import", str(file), "--execute"))["0"] == "closed"
    for words in (["import", str(file), "--force"], ["reset", "--to-sequence-number", "16"]):
        ehcp_json(*words, "--partitions", "0", "--execute")
        assert site.rows()["0"] == open_at
        ehcp_json("undo", "--execute")
        assert site.rows()["0"] == (closed.sequence_number, closed.offset)


@pytest.mark.parametrize("words", [["--to-current"], ["--shift-by", "-1"]])
def test_a_reset_that_starts_from_a_closed_checkpoint_is_refused(site: Site, words) -> None:
    site.store.update_checkpoint(closed_with(Position(15)).as_dict(site.scope, "0"))
    refused = ehcp("reset", *words)
    with pytest.raises(CheckpointStoreError, match="partition 0 has a closed checkpoint"):
        raise refused.exception


def test_an_active_group_is_not_imported_into(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    ehcp("export", str(file))
    site.save("0", 18)
    site.own("0")
    assert ehcp("import", str(file), "--execute").exit_code == 4
    ehcp_json("import", str(file), "--execute", "--force", "--hold", "0.2")
    assert site.rows()["0"][0] == 15
    assert site.owners()["0"] == ""


def test_lines_of_kafka_are_imported_through_the_default_group_while_another_is_consumed(
    site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "kafka.csv"
    file.write_text("orders,0,5\n")
    row = {"partition_id": "0", "owner_id": "consumer-7", "consumer_group": "workers"}
    site.store.claim_ownership([{**site.scope.as_dict(), **row}])
    [plan] = ehcp_json("import", str(file), "--group", "workers", "--force")
    [row] = plan["partitions"]
    assert (row["sequence_number"], row["offset"]) == (4, site.offset(4))


def test_lines_of_kafka_are_imported_through_a_named_group_while_the_default_one_is_consumed(
    site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "kafka.csv"
    file.write_text("orders,0,5\n")
    site.own("0")
    with pytest.raises(CheckpointStoreError, match=r"'consumer-7' holds the partition .*--through"):
        raise ehcp("import", str(file), "--force").exception
    [plan] = ehcp_json("import", str(file), "--force", "--through", "other")
    [row] = plan["partitions"]
    assert (row["sequence_number"], row["offset"]) == (4, site.offset(4))


def test_positions_are_copied_to_another_group(site: Site) -> None:
    before = site.rows()
    assert set(actions(ehcp_json("copy", "--to-group", "new")).values()) == {"copy"}
    assert site.rows("new") == {}
    ehcp_json("copy", "--to-group", "new", "--execute")
    assert site.rows("new") == site.rows() == before
    site.save("0", 17, "new")
    site.save("2", 3, "new")
    shown = ehcp("copy", "--to-group", "new", "--execute").stdout
    assert "newer" in shown
    assert {key: row[0] for key, row in site.rows("new").items()} == {"0": 17, "1": 4, "2": 19}
    ehcp_json("undo", "--group", "new", "--execute")
    assert site.rows("new")["2"][0] == 3


def test_positions_are_copied_to_another_store_and_hub(site: Site, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    names = ("ns.servicebus.windows.net", "orders", "$Default")
    with SqlCheckpointStore(url) as other:
        other.create()
        words = ["copy", "--to-store", url, "--to-hub", "ns.servicebus.windows.net/orders"]
        ehcp_json(*words, "--execute")
        rows = other.list_checkpoints(*names)
        assert {row["partition_id"]: row["sequence_number"] for row in rows} == {
            "0": 15,
            "1": 4,
            "2": 19,
        }
        assert other.list_ownership(*names) == []


def test_all_groups_of_a_store_are_copied_and_exported_without_internal_rows(
    site: Site, tmp_path: Path
) -> None:
    site.save("0", 7, "second")
    site.store.verify()
    value = json.loads(ehcp("export", "--all-groups").stdout)
    groups = [group["consumer_group"] for group in value["groups"]]
    assert groups == ["$Default", "second"]
    url = f"sqlite:///{tmp_path}/other.db"
    with SqlCheckpointStore(url) as other:
        other.create()
        copied = ehcp_json("copy", "--all-groups", "--to-store", url, "--execute")
        assert [group["consumer_group"] for group in copied] == groups
        stored = [scope.consumer_group for scope in other.list_scopes()]
        assert stored == [name.lower() for name in groups]
        ehcp_json("delete", "--store", url, "--execute")
        file = tmp_path / "all.csv"
        ehcp("export", "--all-groups", str(file))
        ehcp_json("import", "--all-groups", str(file), "--store", url, "--execute")
        assert len(other.list_checkpoints(*site.scope)) == 3


def test_one_group_of_several_is_imported_by_its_name(site: Site, tmp_path: Path) -> None:
    site.save("0", 7, "second")
    file = tmp_path / "all.json"
    ehcp("export", "--all-groups", str(file))
    ehcp_json("delete", "--execute")
    ehcp_json("import", str(file), "--execute")
    assert {*site.rows()} == {"0", "1", "2"}
    other = ehcp("import", str(file), "--group", "third", "--execute")
    with pytest.raises(CheckpointStoreError, match=r"has no positions of .*third, but of: "):
        raise other.exception


def test_internal_rows_are_not_imported(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    ehcp("export", str(file))
    file.write_text(file.read_text().replace(site.scope[0], "eventhub-checkpoints"))
    assert ehcp_json("import", str(file), "--all-groups", "--execute") == []
    refused = ehcp("copy", "--to-hub", "eventhub-checkpoints/orders", "--execute")
    with pytest.raises(CheckpointStoreError, match="has rows of this package"):
        raise refused.exception


def test_of_several_groups_none_is_changed_if_one_is_active(site: Site, tmp_path: Path) -> None:
    site.save("0", 7, "second")
    file = tmp_path / "all.json"
    ehcp("export", "--all-groups", str(file))
    for group in ("$Default", "second"):
        site.save("0", 3, group)
    row = {"partition_id": "0", "owner_id": "consumer-7", "consumer_group": "second"}
    site.store.claim_ownership([{**site.scope.as_dict(), **row}])
    refused = ehcp("import", str(file), "--all-groups", "--execute")
    assert refused.exit_code == 4
    assert "second is active: 'consumer-7'" in refused.stderr
    assert (site.rows()["0"][0], site.rows("second")["0"][0]) == (3, 3)
