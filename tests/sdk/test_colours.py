"""A store of the other colour: what the client says of it, in the words that the page names."""

import gc
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import MemoryCheckpointStore, aio

PAGE = Path(__file__).resolve().parents[2] / "docs/api.md"


@pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited:RuntimeWarning")
def test_the_page_names_what_the_client_says_of_a_store_of_the_other_colour(
    site: Any, wait: Any
) -> None:
    fit, unfit = MemoryCheckpointStore(), aio.MemoryCheckpointStore()
    if site.is_aio:
        fit, unfit = unfit, fit
    consumer = site.start(unfit)
    wait(lambda: consumer.saw(TypeError))
    text = str(consumer.errors[0][1])
    consumer.store = fit  # the one that is closed
    site.closed(consumer)
    consumer.errors.clear()
    gc.collect()  # their tracebacks hold coroutines, which warn when they go
    said = [line for line in PAGE.read_text().splitlines() if f"`{text}`" in line]
    assert len(said) == 1, f"the page does not name {text}"
    assert ("`eventhub_checkpoints.aio`" in said[0]) is site.is_aio
