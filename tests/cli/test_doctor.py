"""`ehcp doctor`: planted defects are found, nothing is found in a sound group, and fixes mend.

The stores are real (SQLite files, Azurite behind a proxy, Redis, PostgreSQL), and so is the hub.
"""

import asyncio
import json
import os
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore
from azure.storage.blob import (
    BlobServiceClient,
    ContainerClient,
    RetentionPolicy,
    generate_container_sas,
)
from typer.testing import CliRunner, Result

from backends import Backend, Place
from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import closed_with
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from fault_proxy import FaultProxy

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
GROUP = "Workers"
PARTITIONS = 6
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/doctor.md"
OFFSET_15 = "510"
"""Of event 15 of each partition, as all events have the same size."""
OWNERS = {str(id_): "first" if id_ < 3 else "second" for id_ in range(PARTITIONS)}


@dataclass
class Patient:
    """A sound group, whose rows were written as two consumers would; named by the environment."""

    hub: LocalHub
    place: Place
    environment: pytest.MonkeyPatch
    store: Any
    proxy: FaultProxy | None = None
    undo: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> HubAddress:
        return HubAddress.from_connection_string(self.hub.connection_string("orders"), GROUP)

    @property
    def scope(self) -> Scope:
        return self.address.scope()

    def offset(self, number: int) -> str:
        """Return the offset of an event of partition 0; all events have the same size."""
        return str(int(OFFSET_15) // 15 * number)

    def save(self, partition_id: str, number: int, offset: str | None) -> None:
        row = {"partition_id": partition_id, "offset": offset, "sequence_number": number}
        self.store.update_checkpoint({**self.scope.as_dict(), **row}, force=True)

    def own(self, owners: dict[str, str]) -> None:
        stored = {
            row["partition_id"]: row["etag"] for row in self.store.list_ownership(*self.scope)
        }
        rows = [
            {
                **self.scope.as_dict(),
                "partition_id": id_,
                "owner_id": owner,
                "etag": stored.get(id_),
            }
            for id_, owner in owners.items()
        ]
        assert len(self.store.claim_ownership(rows)) == len(rows)

    def begin(self) -> None:
        for partition_id in OWNERS:
            self.hub.publish("orders", partition_id, [b"event"] * 20)
            last = self.hub.partition_properties("orders", partition_id).last_offset
            self.save(partition_id, 19, last)
        self.save("0", 15, self.offset(15))
        self.own(OWNERS)

    def rows(self) -> tuple[dict[str, str], dict[str, tuple[int, Any]]]:
        """The owner, and the position, of each partition."""
        owned = self.store.list_ownership(*self.scope)
        saved = self.store.list_checkpoints(*self.scope)
        return (
            {row["partition_id"]: row["owner_id"] for row in owned},
            {row["partition_id"]: (row["sequence_number"], row["offset"]) for row in saved},
        )

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(app, ["doctor", *words])
        if isinstance(result.exception, Exception) and not isinstance(
            result.exception, CheckpointStoreError
        ):
            raise result.exception
        return result

    def report(self, *words: str) -> Any:
        result = self.run(*words, "--json")
        report = json.loads(result.stdout)
        ranks = {"OK": 0, "WARNING": 1, "ERROR": 2, "UNKNOWN": 3}
        assert result.exit_code == ranks[report["severity"]]
        return report

    def codes(self, *words: str) -> set[str]:
        return {finding["code"] for finding in self.report(*words)["findings"]}


@pytest.fixture
def admitted(
    servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[str], Patient]]:
    """Gives a patient on a backend; Blob is behind a proxy."""
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EHCP_STATE_DIR", str(tmp_path))
    with ExitStack() as opened:

        def admit(name: str) -> Patient:
            backend = servers(name)
            place = opened.enter_context(backend.place())
            url, proxy = place.url, None
            if name == "blob":
                endpoint = backend.azurite.endpoint  # type: ignore[attr-defined]
                proxy = opened.enter_context(FaultProxy(endpoint))
                url = url.replace(endpoint, proxy.endpoint)
            store = opened.enter_context(open_store(url))
            hub = opened.enter_context(
                LocalHub({"orders": PARTITIONS}, consumer_groups=[GROUP, "other"])
            )
            monkeypatch.setenv("EHCP_STORE", url)
            monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
            monkeypatch.setenv("EHCP_GROUP", GROUP)
            patient = Patient(hub, place, monkeypatch, store, proxy)
            opened.push(patient.undo)
            patient.begin()
            return patient

        yield admit


def blob(patient: Patient, name: str, **metadata: str) -> None:
    """Store a blob as another writer would."""
    with ContainerClient.from_container_url(patient.place.url, credential=EMULATOR_KEY) as client:
        client.upload_blob(name, b"", metadata=metadata, overwrite=True)


Plant = Callable[[Patient], list[str]]

# Each function plants one defect, and returns further words of the command.


def unreachable_store(patient: Patient) -> list[str]:
    url = "http://127.0.0.1:1/devstoreaccount1/container"
    return ["--store", url, "--timeout", "3"]


def store_without_tables(patient: Patient) -> list[str]:
    patient.place.vanish()
    return []


def rights_to_read_only(patient: Patient) -> list[str]:
    container = patient.place.url.rpartition("/")[2]
    sas = generate_container_sas(
        EMULATOR_ACCOUNT,
        container,
        account_key=EMULATOR_KEY,
        permission="rl",
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return ["--store", f"{patient.place.url}?{sas}"]


def unreachable_hub(patient: Patient) -> list[str]:
    patient.hub.refuse_connections()
    return ["--timeout", "2"]


def deleted_hub(patient: Patient) -> list[str]:
    patient.hub.create("another", 1)
    patient.hub.delete("orders")
    return []


def group_that_the_hub_does_not_have(patient: Patient) -> list[str]:
    return ["--group", "absent"]


def clock_that_is_ahead(patient: Patient) -> list[str]:
    assert patient.proxy
    shifted = datetime.now(UTC) + timedelta(seconds=40)
    patient.proxy.rewrite("Date", format_datetime(shifted, usegmt=True))
    return []


def clock_that_is_far_behind(patient: Patient) -> list[str]:
    assert patient.proxy
    shifted = datetime.now(UTC) - timedelta(seconds=400)
    patient.proxy.rewrite("Date", format_datetime(shifted, usegmt=True))
    return []


def soft_delete(patient: Patient) -> list[str]:
    credential = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
    account = patient.place.url.rpartition("/")[0]
    client = patient.undo.enter_context(BlobServiceClient(account, credential))
    client.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=1))
    patient.undo.callback(
        client.set_service_properties, delete_retention_policy=RetentionPolicy(enabled=False)
    )
    return []


def versioning(patient: Patient) -> list[str]:
    assert patient.proxy
    patient.proxy.rewrite("x-ms-version-id", "2026-11-23T10:00:00.0000000Z")
    return []


def hierarchical_namespace(patient: Patient) -> list[str]:
    assert patient.proxy
    patient.proxy.rewrite("x-ms-is-hns-enabled", "true")
    return []


def checkpoint_without_a_position(patient: Patient) -> list[str]:
    patient.place.put_raw("checkpoint", patient.scope, "2", {"offset": None})
    return []


def folder_among_the_rows(patient: Patient) -> list[str]:
    patient.place.put_raw("ownership", patient.scope, "9", {"hdi_isfolder": "true"})
    return []


def rows_as_java_writes_them(patient: Patient) -> list[str]:
    blob(patient, f"{patient.scope}/checkpoint/0", sequencenumber="3", offset="3")
    return []


def consumers_of_two_families(patient: Patient) -> list[str]:
    blob(patient, f"{patient.scope}/ownership/1", ownerid="a consumer in Java")
    return []


def mirror_with_a_prefix(patient: Patient) -> list[str]:
    name = f"team-a/{patient.scope.folded}/checkpoint/1"
    blob(patient, name, offset=OFFSET_15, sequencenumber="15")
    return []


def consumer_with_a_prefix(patient: Patient) -> list[str]:
    blob(patient, f"team-a/{patient.scope.folded}/ownership/1", ownerid="a consumer of team a")
    return []


def other_names(patient: Patient) -> list[str]:
    return ["--group", "other"]


def released_partitions(patient: Patient) -> list[str]:
    patient.own(dict.fromkeys(OWNERS, ""))
    return []


def unowned_partition(patient: Patient) -> list[str]:
    patient.own({"3": ""})
    return []


def dead_consumer(patient: Patient) -> list[str]:
    patient.place.put_raw("ownership", patient.scope, "5", {"ownerid": "dead"})
    return []


def consumer_that_hangs(patient: Patient) -> list[str]:
    place: Any = patient.place
    place.execute(
        f"UPDATE {place.tables.ownership} SET last_modified_time = last_modified_time - 100 "
        "WHERE partition_id = '4'"
    )
    return []


def greedy_consumer(patient: Patient) -> list[str]:
    patient.own({"3": "first", "4": "first"})
    return []


def row_of_no_partition(patient: Patient) -> list[str]:
    patient.save("7", 1, "1")
    return []


def consumer_of_another_hub(patient: Patient) -> list[str]:
    patient.own({"7": "second"})
    return []


def hub_created_anew(patient: Patient) -> list[str]:
    patient.hub.recreate("orders")
    return []


def events_that_expired(patient: Patient) -> list[str]:
    patient.hub.trim("orders", "0", 18)
    return []


def offset_of_another_event(patient: Patient) -> list[str]:
    patient.save("1", 19, "4711")
    return []


def checkpoint_without_offset(patient: Patient) -> list[str]:
    patient.save("0", 15, None)
    return []


def offset_of_another_hub(patient: Patient) -> list[str]:
    patient.save("0", 15, "1:AAAAAAAAAHA=:7")
    return []


def offset_beyond_the_newest(patient: Patient) -> list[str]:
    patient.save("0", 15, "999999999")
    return []


def word_that_no_hub_takes(patient: Patient) -> list[str]:
    patient.place.put_raw("checkpoint", patient.scope, "0", {"offset": "$latest"})
    return []


def corrupt_offset_without_number(patient: Patient) -> list[str]:
    fields = {"offset": "corrupt!", "sequencenumber": ""}
    patient.place.put_raw("checkpoint", patient.scope, "0", fields)
    return []


def offset_of_an_older_event(patient: Patient) -> list[str]:
    patient.save("0", 15, patient.offset(12))
    return []


def offset_of_the_newest_event(patient: Patient) -> list[str]:
    patient.save("0", 15, patient.hub.partition_properties("orders", "0").last_offset)
    return []


def offset_of_another_hub_where_all_events_expired(patient: Patient) -> list[str]:
    patient.hub.trim("orders", "0", 20, forget_offset=True)
    patient.save("0", 19, "1:AAAAAAAAAHA=:7")
    return []


def metadata(**fields: str) -> Plant:
    """Give partition 0 a checkpoint as another writer would store it."""

    def plant(patient: Patient) -> list[str]:
        names = patient.scope.folded
        blob(patient, f"{names}/checkpoint/0", **fields)
        return []

    plant.__name__ = "_".join(("metadata", *(f"{key}_{value}" for key, value in fields.items())))
    return plant


def owner_in_capitals(patient: Patient) -> list[str]:
    blob(patient, f"{patient.scope.folded}/ownership/0", OwnerId="first")
    return []


def owner_without_a_key(patient: Patient) -> list[str]:
    blob(patient, f"{patient.scope.folded}/ownership/9")
    return []


def blob_below_the_rows(patient: Patient) -> list[str]:
    blob(patient, f"{patient.scope.folded}/checkpoint/0/extra", offset="15", sequencenumber="15")
    return []


def word_beside_a_number(word: str) -> Plant:
    def plant(patient: Patient) -> list[str]:
        patient.save("0", 15, word)
        return []

    plant.__name__ = f"word_{word}_beside_a_number"
    return plant


def lease_at_the_end_that_was_migrated(patient: Patient) -> list[str]:
    patient.save("0", 0, "@latest")
    return []


def lease_at_the_end_of_python_that_was_migrated(patient: Patient) -> list[str]:
    patient.save("0", -1, "@latest")
    return []


def lease_at_the_beginning_that_was_copied(patient: Patient) -> list[str]:
    patient.save("0", 0, "-1")
    return []


def checkpoint_without_number(patient: Patient) -> list[str]:
    patient.place.put_raw("checkpoint", patient.scope, "0", {"offset": "15"})
    return []


def distant_store(patient: Patient) -> list[str]:
    assert patient.proxy
    patient.proxy.delay = 0.4
    return ["--balancing-interval", "3"]


def checkpoint_for_every_event(patient: Patient) -> list[str]:
    return ["--checkpoints-per-second", "100"]


def group_that_was_moved_away(patient: Patient) -> list[str]:
    closed = closed_with(Position(3, "3"))
    patient.save("2", CLOSED_NUMBER, closed.offset)
    return []


OFFICIAL_FAULTS: list[tuple[Plant, set[str]]] = [
    (metadata(Offset=OFFSET_15, SequenceNumber="15"), {"official_store_fails"}),
    (
        metadata(offset=OFFSET_15, sequencenumber="abc"),
        {"official_store_fails", "no_sequence_number"},
    ),
    (metadata(offset="xyz", sequencenumber="abc"), {"official_store_fails", "offset_refused"}),
    (owner_in_capitals, {"official_store_fails"}),
    (owner_without_a_key, {"official_store_fails", "no_such_partition"}),
    (blob_below_the_rows, {"unreadable_rows"}),
    (folder_among_the_rows, {"unreadable_rows"}),
]
"""Rows of a group on Blob that this package reads, or skips, and the official store does not."""
DEFECTS: list[tuple[str, Plant, set[str]]] = [
    ("sqlite", unreachable_store, {"store_unreachable"}),
    ("sqlite", store_without_tables, {"store_not_ready"}),
    ("blob", store_without_tables, {"store_not_ready"}),
    ("blob", rights_to_read_only, {"store_refused"}),
    ("sqlite", unreachable_hub, {"hub_unreachable"}),
    ("sqlite", deleted_hub, {"hub_refused"}),
    ("sqlite", group_that_the_hub_does_not_have, {"consumer_group_missing", "no_rows"}),
    ("blob", clock_that_is_ahead, {"clock_skew"}),
    ("blob", clock_that_is_far_behind, {"clock_skew"}),
    ("blob", soft_delete, {"soft_delete"}),
    ("blob", versioning, {"versioning"}),
    ("blob", hierarchical_namespace, {"hierarchical_namespace"}),
    ("sqlite", checkpoint_without_a_position, {"unreadable_rows"}),
    ("blob", rows_as_java_writes_them, {"other_spelling"}),
    ("blob", consumers_of_two_families, {"other_spelling", "two_owners"}),
    ("blob", mirror_with_a_prefix, {"other_prefix"}),
    ("blob", consumer_with_a_prefix, {"other_prefix", "two_owners"}),
    ("sqlite", other_names, {"no_rows"}),
    ("sqlite", released_partitions, {"group_idle"}),
    ("sqlite", unowned_partition, {"unowned"}),
    ("sqlite", dead_consumer, {"dead_owner", "unowned"}),
    ("sqlite", consumer_that_hangs, {"late_renewal"}),
    ("sqlite", greedy_consumer, {"unfair_share"}),
    ("sqlite", row_of_no_partition, {"no_such_partition"}),
    ("sqlite", consumer_of_another_hub, {"no_such_partition"}),
    ("sqlite", group_that_was_moved_away, {"checkpoint_closed"}),
    ("sqlite", hub_created_anew, {"checkpoint_ahead"}),
    ("sqlite", events_that_expired, {"checkpoint_expired"}),
    ("sqlite", offset_of_another_event, {"wrong_offset"}),
    ("sqlite", offset_of_another_hub, {"wrong_offset"}),
    ("sqlite", offset_beyond_the_newest, {"wrong_offset"}),
    ("sqlite", offset_of_an_older_event, {"wrong_offset"}),
    ("sqlite", offset_of_the_newest_event, {"wrong_offset"}),
    ("sqlite", offset_of_another_hub_where_all_events_expired, {"wrong_offset"}),
    ("blob", word_that_no_hub_takes, {"offset_refused", "official_store_fails"}),
    ("blob", corrupt_offset_without_number, {"offset_refused", "official_store_fails"}),
    *(("blob", plant, codes) for plant, codes in OFFICIAL_FAULTS),
    ("sqlite", lease_at_the_end_that_was_migrated, {"never_processed"}),
    ("sqlite", lease_at_the_end_of_python_that_was_migrated, {"never_processed"}),
    ("sqlite", lease_at_the_beginning_that_was_copied, {"never_processed"}),
    ("sqlite", checkpoint_without_offset, {"no_offset"}),
    ("sqlite", word_beside_a_number("-1"), {"no_offset"}),
    ("sqlite", word_beside_a_number("@latest"), {"no_offset"}),
    ("sqlite", word_beside_a_number("end"), {"no_offset"}),
    ("blob", checkpoint_without_number, {"no_sequence_number", "official_store_fails"}),
    ("blob", distant_store, {"slow_list", "slow_claim"}),
    ("blob", checkpoint_for_every_event, {"cost"}),
]


@pytest.mark.parametrize(
    ("backend", "plant", "codes"),
    DEFECTS,
    ids=[f"{plant.__name__}-{backend}" for backend, plant, _ in DEFECTS],
)
def test_a_planted_defect_is_found_and_nothing_else(admitted, backend, plant, codes) -> None:
    patient = admitted(backend)
    words = plant(patient)
    assert patient.codes(*words) == codes


def official_rows(patient: Patient) -> list[dict[str, Any]]:
    """Return what the official store lists of a group, or let its error out."""
    url, _, container = patient.place.url.rpartition("/")
    with BlobCheckpointStore(url, container, EMULATOR_KEY) as official:
        owned = official.list_ownership(*patient.scope)
        return [*owned, *official.list_checkpoints(*patient.scope)]


@pytest.mark.parametrize(
    "plant", [plant for plant, _ in OFFICIAL_FAULTS], ids=lambda plant: plant.__name__
)
def test_what_stops_the_official_store_is_an_error(admitted, plant) -> None:
    patient = admitted("blob")
    assert len(official_rows(patient)) == 2 * PARTITIONS
    plant(patient)
    try:
        rows = official_rows(patient)
    except (KeyError, ValueError, TypeError):
        rows = []
    # A deeper blob with all keys is taken for the row of a partition.
    assert not rows or "extra" in {row["partition_id"] for row in rows}
    assert patient.report()["severity"] == "ERROR"


def test_a_word_that_a_hub_takes_is_an_error_and_another_is_not(admitted) -> None:
    patient = admitted("sqlite")
    for word, severity in (("", "WARNING"), ("end", "WARNING"), ("-1", "ERROR")):
        patient.save("0", 15, word)
        assert patient.report()["severity"] == severity
    patient.save("0", 15, "@latest")
    [finding] = patient.report()["findings"]
    assert "every official client starts at the beginning or the end" in finding["evidence"]


def test_every_finding_of_the_page_is_planted_above() -> None:
    table = PAGE.read_text().partition("## Findings")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    named = {code for row in rows for code in re.findall(r"`(\w+)`", row.split("|")[1])}
    planted = {code for _, _, codes in DEFECTS for code in codes}
    # An error of a driver that is none of the others; tests/operations has one.
    assert named == planted | {"store_failed"}


@pytest.mark.parametrize("backend", ["sqlite", "blob"])
def test_nothing_is_found_in_rows_that_are_sound(admitted, backend) -> None:
    patient = admitted(backend)
    result = patient.run()
    assert (result.exit_code, "no findings" in result.stdout) == (0, True)
    assert max(map(len, result.stdout.splitlines())) <= 80


TIMES = {"load_balancing_interval": 0.5, "partition_ownership_expiration_interval": 60.0}
"""Seconds; by default, an ownership would expire in a pause of the machine."""


@contextmanager
def consuming_sync() -> Iterator[None]:
    """A real consumer with a store of its own, which saves every batch."""

    def save(context: Any, _events: Any) -> None:
        context.update_checkpoint()

    with open_store(os.environ["EHCP_STORE"]) as store:
        client = EventHubConsumerClient.from_connection_string(
            os.environ["EHCP_HUB"], GROUP, checkpoint_store=store, **TIMES
        )
        thread = threading.Thread(
            target=client.receive_batch, args=(save,), kwargs={"starting_position": "-1"}
        )
        thread.start()
        yield
        client.close()
        thread.join()


@contextmanager
def consuming_aio(loop: Loop) -> Iterator[None]:
    """The same with asyncio."""

    async def save(context: Any, _events: Any) -> None:
        await context.update_checkpoint()

    async def begin() -> tuple[Any, Any, asyncio.Task[None]]:
        store = aio.open_store(os.environ["EHCP_STORE"])
        client = AioConsumerClient.from_connection_string(
            os.environ["EHCP_HUB"], GROUP, checkpoint_store=store, **TIMES
        )
        receiving = client.receive_batch(save, starting_position="-1")
        return store, client, asyncio.create_task(receiving)

    async def end(store: Any, client: Any, receiving: asyncio.Task[None]) -> None:
        await client.close()
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
        await store.close()

    begun = loop.finished(begin())
    yield
    loop.finished(end(*begun))


@pytest.mark.parametrize("backend", ["sqlite", "blob", "redis", "postgres"])
def test_nothing_is_found_while_real_consumers_work(admitted, backend, wait, loop) -> None:
    patient = admitted(backend)
    released_partitions(patient)
    last = patient.hub.partition_properties("orders", "0").last_offset
    patient.save("0", 19, last)  # the consumers go on from real offsets

    def is_balanced() -> bool:
        rows = patient.store.list_ownership(*patient.scope)
        owners = [row["owner_id"] for row in rows if row["owner_id"]]
        return sorted(owners.count(owner) for owner in {*owners}) == [3, 3]

    with consuming_sync(), consuming_aio(loop):
        wait(is_balanced)
        for number in range(3):
            for partition_id in OWNERS:
                patient.hub.publish("orders", partition_id, [f"later {number}"] * 10)
            report = patient.report()
            assert report["findings"] == []
            if backend == "blob":
                assert report["cost"]["requests"]["claims"] > 0


def test_findings_are_shown_with_the_command_that_mends_them(admitted) -> None:
    patient = admitted("sqlite")
    events_that_expired(patient)
    row_of_no_partition(patient)
    shown = patient.run().stdout
    assert "ERROR checkpoint_expired: 1 partition with events that expired" in shown
    assert "  mend: ehcp reset --to-earliest --partitions 0" in shown
    assert "2 findings" in shown


@pytest.mark.parametrize(
    "plant",
    [dead_consumer, hub_created_anew, events_that_expired, offset_of_another_event],
    ids=lambda plant: plant.__name__,
)
def test_the_command_that_a_finding_names_mends_it(admitted, plant) -> None:
    patient = admitted("sqlite")
    released_partitions(patient)  # a reset refuses a group that is being consumed
    plant(patient)
    [finding] = [
        each
        for each in patient.report()["findings"]
        if each["code"] not in ("group_idle", "unowned")
    ]
    before = patient.rows()
    for words in ([], ["--execute"]):
        assert patient.rows() == before, "a remedy shows first what it would change"
        result = CliRunner().invoke(app, [*shlex.split(finding["remedy"])[1:], *words])
        assert result.exit_code == 0, result.output
    assert patient.codes() == {"group_idle"}


def test_without_writing_the_rights_are_not_examined(admitted) -> None:
    patient = admitted("blob")
    words = rights_to_read_only(patient)
    report = patient.report(*words, "--no-write")
    assert report["findings"] == []
    assert "rights, and the duration of a claim: nothing was written" in report["unchecked"]
    assert (
        "soft_delete: the credential may not read it, or the driver does not show it"
        in report["unchecked"]
    )


class Saving:
    """The time of the measurement: each sleep of it ends at once, after a checkpoint was saved."""

    def __init__(self, patient: Patient) -> None:
        self._patient, self._now = patient, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        self._patient.save("0", 16 + int(self._now), "an offset")


def test_the_rate_of_checkpoints_is_measured(admitted, monkeypatch) -> None:
    patient = admitted("blob")
    monkeypatch.setattr("eventhub_checkpoints.operations.doctor.examination.time", Saving(patient))
    report = patient.report("--measure", "2", "--price", "1", "--budget", "1e6")
    assert report["cost"]["requests"]["checkpoints"] == 1.0  # a second
    assert (report["cost"]["price"], report["cost"]["source"]) == (1.0, "--price")


def test_fixes_are_a_dry_run_first_and_then_mend(admitted) -> None:
    patient = admitted("sqlite")
    dead_consumer(patient)
    row_of_no_partition(patient)
    patient.own({"4": ""})
    patient.save("4", 15, None)
    before = patient.rows()
    planned = patient.report("--fix")["fixes"]
    assert [(fix["action"], fix["partition_id"], fix["changed"]) for fix in planned] == [
        ("delete", "7", None),
        ("release", "5", None),
        ("add offset", "4", None),
    ]
    assert "would delete" in patient.run("--fix").stdout
    assert patient.rows() == before
    report = patient.report("--fix", "--execute")
    changed = [fix["changed"] for fix in report["fixes"]]
    assert changed[0] == "partition 7: rows deleted (checkpoint 1, owner '')"
    assert changed[1].startswith("partition 5: released (owner 'dead'")
    assert changed[2].startswith("partition 4: offset ")
    assert {finding["code"] for finding in report["findings"]} == {"unowned"}
    owners, positions = patient.rows()
    assert "7" not in positions
    number, offset = positions["4"]
    assert (number, isinstance(offset, str)) == (15, True)
    assert owners["5"] == ""
    assert "no fix applies" in patient.run("--fix").stdout
    undone = CliRunner().invoke(app, ["undo", report["record"], "--force", "--execute"])
    assert undone.exit_code == 0, undone.output
    assert patient.rows()[1]["7"] == before[1]["7"], "a deletion has a record for undo"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--execute"], "--execute carries out the fixes of --fix: pass both"),
        (["--measure", "1", "--checkpoints-per-second", "1"], "pass one of them"),
        (["--hub", "orders"], "the hub is 'orders'; expected a connection string"),
        (["--hub", "Endpoint=sb://ns"], "the connection string has no SharedAccessKeyName"),
        (["--store", "nothing://here"], "nothing"),
        (["--store", ""], "the store URL is empty"),
        (["--group", " "], "consumer_group is ' '"),
        (["--profile", "absent"], "profile 'absent'"),
    ],
)
def test_a_mistake_is_one_sentence(admitted, words, said) -> None:
    result = admitted("sqlite").run(*words)
    text = str(result.exception) if result.exit_code == 1 else result.stderr.strip()
    assert said in text
    assert "\n" not in text
    assert result.exit_code in (1, 3)


def test_without_a_store_or_a_hub_nothing_can_be_examined(admitted, monkeypatch) -> None:
    patient = admitted("sqlite")
    monkeypatch.delenv("EHCP_STORE")
    result = patient.run()
    assert (result.exit_code, result.stderr.startswith("UNKNOWN: no store")) == (3, True)
