"""Plugin of pytest: an event hub and a checkpoint store for tests of consumers.

pytest imports this module in every run of an environment that has the package, before it measures
coverage, and whether or not a test uses it. So nothing of the package and of azure-eventhub is
imported until a test asks for a fixture.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eventhub_checkpoints.abilities import FullCheckpointStore
    from eventhub_checkpoints.aio.abilities import FullCheckpointStore as AioFullCheckpointStore
    from eventhub_checkpoints.localhub import LocalHub
    from eventhub_checkpoints.testing import Checkpoints, EventHub

STORES = ("memory", "sqlite")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for line in (
        "event_hub(partitions=1, name=None): the hub of the fixture event_hub",
        "checkpoint_store(kind): where the fixtures keep checkpoints: memory (default) or sqlite",
    ):
        config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def _eventhub_checkpoints_local_hub() -> Iterator[LocalHub]:
    """Run one local hub for all tests of this process."""
    from eventhub_checkpoints.localhub import LocalHub

    with LocalHub({"unused": 1}) as running:
        yield running


@pytest.fixture
def event_hub(
    request: pytest.FixtureRequest, _eventhub_checkpoints_local_hub: LocalHub
) -> Iterator[EventHub]:
    """Event hub of this test, on a local hub: `@pytest.mark.event_hub(partitions=4)`."""
    from eventhub_checkpoints.testing import EventHub

    marker = request.node.get_closest_marker("event_hub")
    arguments: tuple[Any, ...] = marker.args if marker else ()
    hub = EventHub(_eventhub_checkpoints_local_hub, *arguments, **(marker.kwargs if marker else {}))
    yield hub
    hub.delete()


@pytest.fixture
def checkpoint_store_url(request: pytest.FixtureRequest) -> str:
    """URL of this test's empty store, for `open_store`; define it anew for another store."""
    marker = request.node.get_closest_marker("checkpoint_store")
    args, kwargs = (marker.args, marker.kwargs) if marker else (STORES[:1], {})
    kind = next(iter(args), kwargs.get("kind"))
    if kind not in STORES or len(args) + len(kwargs) > 1:
        from eventhub_checkpoints._shared.secrets import quoted

        named = [f"{name}={quoted(value)}" for name, value in kwargs.items()]
        raise ValueError(
            f"the marker checkpoint_store has {', '.join([*map(quoted, args), *named]) or None}; "
            f"expected {' or '.join(STORES)}. For another store, define a fixture "
            "checkpoint_store_url that returns its URL"
        )
    if kind == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path') / 'checkpoints.db'}"
    return f"memory:{uuid.uuid4().hex}"


@pytest.fixture
def checkpoint_store(checkpoint_store_url: str) -> Iterator[FullCheckpointStore]:
    """Empty checkpoint store for synchronous clients; it shares its rows with the asyncio one."""
    from eventhub_checkpoints import open_store

    with open_store(checkpoint_store_url) as store:
        store.create()
        yield store


@pytest.fixture
def aio_checkpoint_store(
    checkpoint_store_url: str, checkpoint_store: FullCheckpointStore
) -> Iterator[AioFullCheckpointStore]:
    """Empty checkpoint store for asyncio clients; the test may close it, but need not."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from eventhub_checkpoints.aio import open_store

    store = open_store(checkpoint_store_url)
    yield store
    # Not in this thread: a plugin may keep an event loop running in it.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, store.close()).result()


@pytest.fixture
def checkpoints(event_hub: EventHub, checkpoint_store: FullCheckpointStore) -> Checkpoints:
    """Return what is stored for the hub of this test: `checkpoints() == {"0": 41}`."""
    from eventhub_checkpoints.testing import Checkpoints

    return Checkpoints(checkpoint_store, event_hub.name)
