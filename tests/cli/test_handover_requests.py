"""Hand-over requests are seen by no command, exporter or page, and leave with their group."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventhub_checkpoints import HandoverStore, open_store
from eventhub_checkpoints.cli.serve.metrics import GroupCollector
from eventhub_checkpoints.operations.monitor import Monitor, PolledGroup
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import HANDOVER_REQUESTS
from operators import Site, ehcp, ehcp_json
from pages import Visitor, opened, path_of
from waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

NEWCOMER = "who-asks"
READING = {
    "groups": ["groups"],
    "describe": ["describe"],
    "lag": ["lag"],
    "check": ["check", "--samples", "2", "--every", "0.01"],
    "doctor": ["doctor"],
    "history": ["history"],
    "export": ["export", "--all-groups"],
    "reset": ["reset", "--to-earliest"],
    "copy": ["copy", "--all-groups", "--to-group", "audit"],
}


@pytest.fixture
def asked(site: Site) -> Iterator[Site]:
    """A site with a live owner, of which another consumer has asked for a partition."""
    site.own("0", "1")
    newcomer = HandoverStore(site.store, expires_after=180)
    rows = [row for row in newcomer.list_ownership(*site.scope) if row["partition_id"] == "0"]
    assert list(newcomer.claim_ownership([{**row, "owner_id": NEWCOMER} for row in rows])) == []
    assert handover_requests(site.store, site) == [f"{NEWCOMER}>consumer-7"]
    return site


def handover_requests(store: object, site: Site) -> list[str]:
    return [row["owner_id"] for row in store.list_ownership(*site.scope.handover_requests)]  # type: ignore[attr-defined]


def assert_shows_no_request(text: str) -> None:
    assert HANDOVER_REQUESTS not in text
    assert NEWCOMER not in text


@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_no_command_shows_a_hand_over_request(asked: Site, command: list[str]) -> None:
    result = ehcp(*command)
    assert result.output, result.exception
    assert_shows_no_request(result.output + str(result.exception))
    assert handover_requests(asked.store, asked)


def test_a_group_that_is_asked_for_a_partition_has_the_members_it_had(asked: Site) -> None:
    assert [row["consumer_group"] for row in ehcp_json("groups")] == ["$Default"]
    owners = {row["partition_id"]: row["owner_id"] for row in ehcp_json("describe")["partitions"]}
    assert owners == {"0": "consumer-7", "1": "consumer-7", "2": "", "3": ""}


def test_neither_metrics_nor_pages_show_a_hand_over_request(asked: Site) -> None:
    hub = HubAddress.from_connection_string(asked.connection_string)
    with Monitor([PolledGroup(asked.store, hub)], interval=60) as monitor:
        eventually(lambda: monitor.statuses[0].polls)
        families = list(GroupCollector(monitor, 64).collect())
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) > 10
    assert_shows_no_request(str(samples))
    with opened() as pages:
        visitor = Visitor(pages)
        assert_shows_no_request(visitor.wait_known("/", "LOST"))
        assert_shows_no_request(visitor.text(path_of(asked.scope)))


def test_hand_over_requests_are_not_copied_and_are_deleted_with_their_group(
    asked: Site, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    with open_store(url) as other:
        other.create()
        assert ehcp_json("copy", "--all-groups", "--to-store", url, "--execute")
        assert [scope.consumer_group for scope in other.list_scopes()] == ["$default"]
        assert handover_requests(other, asked) == []
    owned = list(asked.store.list_ownership(*asked.scope))
    asked.store.claim_ownership([{**row, "owner_id": ""} for row in owned])
    assert ehcp_json("delete", "--execute")
    assert handover_requests(asked.store, asked) == []
