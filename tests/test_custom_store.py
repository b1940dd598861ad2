"""The backend of `docs/custom-store.md`, taken from the page, certified in both colours."""

import re
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints.conformance import CheckpointStoreConformance
from page_blocks import blocks

ROOT = Path(__file__).resolve().parent.parent
STORE, ASYNC_STORE, *_ = [
    block.text for block in blocks(ROOT / "docs" / "custom-store.md") if block.language == "python"
]
LACKING = ("put_raw", "stall", "shift_clock")


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "custom_store"}
    exec(STORE, namespace)
    exec(ASYNC_STORE, namespace)
    return namespace


class TestThePagesStore(CheckpointStoreConformance):
    lacks = LACKING

    @pytest.fixture
    def make_store(self, page, tmp_path):
        return lambda: page["JsonCheckpointStore"](tmp_path)


class TestThePagesAsyncStore(CheckpointStoreConformance):
    lacks = LACKING

    @pytest.fixture
    def make_store(self, page, tmp_path):
        return lambda: page["AsyncJsonCheckpointStore"](tmp_path)


def code_of(text: str) -> str:
    """The text from the first class or function on, without blank lines."""
    return re.sub(r"\n+", "\n", text[text.index("class ") :]).strip()


def test_a_backend_takes_about_sixty_lines() -> None:
    assert len(code_of(STORE).splitlines()) <= 75


def test_the_sample_uses_the_pages_store() -> None:
    sample = (ROOT / "samples" / "custom_store.py").read_text()
    assert code_of(STORE) in re.sub(r"\n+", "\n", sample)
