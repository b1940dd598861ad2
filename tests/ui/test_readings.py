"""Reads that a page waits for."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.doctor import GroupSnapshot
from eventhub_checkpoints.ui.readings import CONCURRENT_READS, Readings
from eventhub_checkpoints.ui.server import LOCAL_NAMES
from operators import Site
from pages import BASE, PORT, Visitor, path_of


def failing() -> None:
    raise CheckpointStoreError("no answer")


def test_a_read_returns_its_result_or_raises_its_error() -> None:
    readings = Readings(most=1)
    for _ in range(3):
        assert asyncio.run(readings.run(lambda: 7)) == 7
        with pytest.raises(CheckpointStoreError, match="no answer"):
            asyncio.run(readings.run(failing))


def test_a_read_that_hangs_ends_with_a_sentence_and_keeps_its_place() -> None:
    readings = Readings(seconds=0.05, most=1)
    release = threading.Event()
    try:
        with pytest.raises(CheckpointStoreError, match=r"not answered within 0\.05 s"):
            asyncio.run(readings.run(release.wait))
        with pytest.raises(CheckpointStoreError, match="try again later"):
            asyncio.run(readings.run(release.wait))
    finally:
        release.set()


def test_examinations_that_hang_do_not_block_other_pages(
    visitor: Visitor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Semaphore(0)
    release = threading.Event()

    def hang(*_: Any, **__: Any) -> GroupSnapshot:
        begun.release()
        release.wait()
        return GroupSnapshot(site.scope)

    monkeypatch.setattr("eventhub_checkpoints.operations.doctor.diagnosis.examine_group", hang)
    path = f"{path_of(site.scope, 'findings')}?live=off"
    application = visitor.pages.application(PORT, LOCAL_NAMES)
    with (
        TestClient(application, base_url=BASE) as client,
        ThreadPoolExecutor(CONCURRENT_READS) as threads,
    ):
        client.get(f"/?token={visitor.pages.token}")
        try:
            hanging = [threads.submit(client.get, path) for _ in range(CONCURRENT_READS)]
            for _ in hanging:
                begun.acquire()
            assert "try again later" in client.get(path).text
            assert "Consumer groups" in client.get("/").text
        finally:
            release.set()
        assert all("No defect was found" in each.result().text for each in hanging)
