"""The backend of `docs/custom-store.md`, taken from the page, certified in both variants."""

import importlib
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from eventhub_checkpoints.conformance import CheckpointStoreConformance
from eventhub_checkpoints.conformance.__main__ import main
from page_blocks import blocks

pytestmark = pytest.mark.waits

ROOT = Path(__file__).resolve().parent.parent
STORE, ASYNC_STORE, *_ = [
    block.text for block in blocks(ROOT / "docs" / "custom-store.md") if block.language == "python"
]
LACKING = ("put_raw", "stall", "shift_clock")


FACTORY = """
def make_store():
    return JsonCheckpointStore({folder!r})
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The page's stores as a module, which processes that race can import."""
    folder = tmp_path_factory.mktemp("page")
    parts = [STORE, ASYNC_STORE, FACTORY.format(folder=str(folder / "checkpoints"))]
    (folder / "store_of_the_page.py").write_text("\n".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("store_of_the_page")
        del sys.modules["store_of_the_page"]


class TestThePagesStore(CheckpointStoreConformance):
    lacks = LACKING

    @pytest.fixture
    def make_store(self, page, tmp_path):
        return partial(page.JsonCheckpointStore, tmp_path)


class TestThePagesAsyncStore(CheckpointStoreConformance):
    lacks = LACKING

    @pytest.fixture
    def make_store(self, page, tmp_path):
        return partial(page.AsyncJsonCheckpointStore, tmp_path)


@pytest.mark.long
def test_the_command_certifies_the_pages_store(
    page: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{page.__name__}:make_store"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "certified"


def code_of(text: str) -> str:
    """The text from the first class or function on, without blank lines."""
    return re.sub(r"\n+", "\n", text[text.index("class ") :]).strip()


def test_a_backend_takes_about_sixty_lines() -> None:
    assert len(code_of(STORE).splitlines()) <= 75


def test_the_sample_uses_the_pages_store() -> None:
    sample = (ROOT / "samples" / "custom_store.py").read_text()
    assert code_of(STORE) in re.sub(r"\n+", "\n", sample)
