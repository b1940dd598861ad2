"""The backend of `docs/how-to/custom-store.md`, taken from the page, certified in both variants."""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from conformance_checks import not_kept, without
from eventhub_checkpoints.conformance import CHECKS, Certifier
from eventhub_checkpoints.conformance.__main__ import main
from page_blocks import blocks

pytestmark = pytest.mark.waits

ROOT = Path(__file__).resolve().parent.parent
STORE, ASYNC_STORE, *_ = [
    block.text
    for block in blocks(ROOT / "docs/how-to/custom-store.md")
    if block.language == "python"
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


@pytest.mark.parametrize("name", ["JsonCheckpointStore", "AsyncJsonCheckpointStore"])
def test_the_pages_stores_keep_the_contract(page: ModuleType, name: str, tmp_path: Path) -> None:
    """An item is a variant, with all checks but the `long` ones, which the command runs below."""
    checks = without(LACKING)
    with Certifier(partial(getattr(page, name), tmp_path)) as certifier:
        broken = not_kept(certifier, checks)
    assert not broken, "\n".join(broken)


@pytest.mark.long
def test_the_command_certifies_the_pages_store(
    page: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{page.__name__}:make_store"]) == 0
    lacking = len(CHECKS) - len(without(LACKING, CHECKS))
    totals = f"{len(CHECKS) - lacking} passed, {lacking} not shown"
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"certified; {totals}, in ")
    assert last.split(", in ")[0] in (ROOT / "docs/how-to/custom-store.md").read_text()


def code_of(text: str) -> str:
    """The text from the first class or function on, without blank lines."""
    return re.sub(r"\n+", "\n", text[text.index("class ") :]).strip()


def laid_out_anew(code: str) -> str:
    """The code as Python lays it out, without comments."""
    return ast.unparse(ast.parse(code))


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/custom-store.md"])
def test_a_page_says_how_many_lines_the_store_has(page: str) -> None:
    [lines] = re.findall(r"has (\d+) lines, without imports", (ROOT / page).read_text())
    assert int(lines) == len(code_of(STORE).splitlines())


def test_the_sample_uses_the_pages_store() -> None:
    """The same code, in lines of another length."""
    sample = (ROOT / "samples" / "custom_store.py").read_text()
    assert laid_out_anew(code_of(STORE)) in laid_out_anew(sample)
