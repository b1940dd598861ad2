"""The tests of the page "Testing your consumer" pass in a project that has copied them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_blocks import blocks

pytestmark = pytest.mark.waits

PAGE = Path(__file__).parents[2] / "docs/how-to/test-with-pytest.md"
IMPORT = "from orders import order_processor"
"""What the page says that the tests begin with, besides the lines that it shows."""


def project() -> dict[str, str]:
    """The program of the page, its tests, and their settings."""
    texts = [block.text for block in blocks(PAGE) if block.language == "python"]
    [settings] = [block.text for block in blocks(PAGE) if block.language == "ini"]
    assert IMPORT in PAGE.read_text()
    tests = "\n\n\n".join([IMPORT, *texts[1:]])
    return {"orders.py": texts[0], "test_orders.py": tests, "pytest.ini": settings}


@pytest.mark.parametrize(
    ("chosen", "count"),
    [("not crash", 4), pytest.param("crash", 1, marks=pytest.mark.long)],
)
def test_the_tests_of_the_page_pass(
    run_pytest: Callable[..., Any], chosen: str, count: int
) -> None:
    ran = run_pytest(project(), "-k", chosen)
    assert ran.status == 0, ran.output
    assert f" {count} passed" in ran.output
