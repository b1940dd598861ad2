"""The stores of this package keep the contract, in both colours."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import pytest
from blob_accessors import of_container
from sound import Sound, StallingRows

from eventhub_checkpoints._memory import MemoryRows
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.cli.azurite import connection_string
from eventhub_checkpoints.conformance import (
    CHECKS,
    Accessors,
    CheckpointStoreConformance,
    certify,
)
from eventhub_checkpoints.memory import MemoryCheckpointStore

MEMORY = {"sync": MemoryCheckpointStore, "aio": AioMemoryCheckpointStore}
BLOB = {"sync": BlobCheckpointStore, "aio": AioBlobCheckpointStore}
RACES = [check for check in CHECKS if check.function.__module__.endswith(".races")]


class TestMemory(CheckpointStoreConformance):
    lacks = ("stall",)

    @pytest.fixture(params=MEMORY)
    def make_store(self, request: pytest.FixtureRequest) -> Callable[[], Any]:
        return partial(MEMORY[request.param], MemoryRows())


class TestBlob(CheckpointStoreConformance):
    lacks = ("shift_clock",)

    @pytest.fixture(params=BLOB)
    def make_store(
        self, request: pytest.FixtureRequest, shared_container: Any, shared_proxy: Any
    ) -> Callable[[], Any]:
        text = connection_string(shared_proxy.endpoint)
        name = shared_container.container_name
        return partial(BLOB[request.param].from_connection_string, text, name)

    @pytest.fixture
    def accessors(self, shared_container: Any, shared_proxy: Any) -> Accessors:
        return of_container(shared_container, shared_proxy)


class ServerChooses(Sound):
    """Its etags and versions are the server's, as on Blob: nobody can propose them."""

    makes_own_etags = True

    def try_claim(self, proposal: Any) -> Any:
        return super().try_claim(replace(proposal, new_etag=uuid.uuid4().hex))

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        return super().write_checkpoint(replace(checkpoint, version=uuid.uuid4().hex), seen)


class ClaimsInOneTrip(Sound):
    """It claims a batch in one trip, as a database may."""

    def try_claims(self, proposals: Any) -> Any:
        return [self.try_claim(proposal) for proposal in proposals]


@pytest.mark.parametrize(
    ("kind", "guarantees"),
    [(ServerChooses, {"G1", "G2", "G3"}), (ClaimsInOneTrip, {"G1", "G2", "G8"})],
)
def test_a_store_that_does_a_thing_in_its_own_way_keeps_the_contract(
    kind: Any, guarantees: set[str]
) -> None:
    rows = StallingRows()
    checks = [check for check in CHECKS if guarantees & set(check.guarantees)]
    report = certify(partial(kind, rows), rows.accessors(), checks=checks)
    assert not report.failed, report.text()


def test_stores_of_both_colours_race_each_other_in_memory() -> None:
    rows = MemoryRows()
    kinds = cycle(MEMORY.values())
    report = certify(lambda: next(kinds)(rows), checks=RACES)
    assert not report.failed, report.text()


def test_stores_of_both_colours_race_each_other_on_one_container(
    azurite: Any, shared_container: Any
) -> None:
    text = connection_string(azurite.endpoint)
    kinds = cycle(BLOB.values())

    def make_store() -> Any:
        return next(kinds).from_connection_string(text, shared_container.container_name)

    report = certify(make_store, checks=RACES)
    assert not report.failed, report.text()
