"""A second consumer joins a group under load: what is processed twice, with the real clients."""

from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import MemoryCheckpointStore, aio
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from handover_table import WAYS
from handover_table.official import joined_on_blob
from handover_table.runs import Setting, joined
from prompt_client import prompt_client

__all__ = ["prompt_client"]

pytestmark = pytest.mark.waits
SMOKE = {"processor": "sync", "checkpointer": "aio"}


def shared(variant: str) -> Callable[[str], Any]:
    """Makes stores over the same rows."""
    rows = MemoryRows()
    kind: Any = aio.MemoryCheckpointStore if variant == "aio" else MemoryCheckpointStore
    return lambda name: kind(rows)


def setting(way: str, variant: str, **settings: Any) -> Setting:
    few = {"partitions": 2, "rate": 200, "interval": 0.4, "seconds": 0.0}
    return Setting(way, variant, **few | settings)


@pytest.mark.parametrize(
    ("variant", "way"),
    [
        # Both clients; every other way in `long`, with one of them.
        pytest.param(SMOKE.get(way, "sync"), way, marks=[] if way in SMOKE else pytest.mark.long)
        for way in WAYS
    ],
)
def test_no_event_is_processed_twice_when_a_consumer_joins(way: str, variant: str) -> None:
    result = joined(setting(way, variant), shared(variant), hands_over=(True, True))
    assert (result.twice, result.lost) == (0, 0)
    assert result.published > 0


@pytest.mark.server
@pytest.mark.long
@pytest.mark.parametrize(("variant", "official"), [("sync", "first"), ("aio", "second")])
def test_a_group_with_an_official_store_is_balanced_and_loses_nothing(
    official: str, variant: str, blob_container: Any
) -> None:
    # The owner that does not answer is taken from after this time.
    short = setting("each", variant, expires_after=3.0)
    container = blob_container.connection_string, blob_container.name
    assert joined_on_blob(short, *container, {official}).lost == 0
