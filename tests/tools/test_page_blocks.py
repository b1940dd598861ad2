"""The runner of the pages' code blocks: a block that is wrong is found, at the page's own line."""

import subprocess
import sys
from pathlib import Path

import pytest

import page_blocks

pytestmark = pytest.mark.waits


def run(folder: Path, text: str, *before: Path) -> subprocess.CompletedProcess[str]:
    page = folder / "page.md"
    page.write_text(text)
    return subprocess.run(
        [sys.executable, page_blocks.__file__, *before, page],
        capture_output=True,
        text=True,
        check=False,
    )


def test_blocks_of_a_page_share_a_namespace(tmp_path: Path) -> None:
    ran = run(tmp_path, "```python\na = 1\n```\ntext\n```python\nprint(a + 1)\n```\n")
    assert (ran.stdout, ran.returncode) == ("2\n", 0)


def test_pages_share_a_process_and_no_namespace(tmp_path: Path) -> None:
    first = tmp_path / "first.md"
    first.write_text("```python\nimport sys\nsys.seen = a = 1\n```\n")
    page = "```python\nimport sys\nprint(sys.seen, 'a' in globals())\n```\n"
    ran = run(tmp_path, page, first)
    assert (ran.stdout, ran.returncode) == ("1 False\n", 0), ran.stderr


def test_a_fault_is_found_at_the_line_of_the_page(tmp_path: Path) -> None:
    ran = run(tmp_path, "# Page\n\n```python\na = 1\na.missing\n```\n")
    assert ran.returncode == 1
    assert 'page.md", line 5' in ran.stderr


def test_a_block_with_a_reason_is_left_out(tmp_path: Path) -> None:
    assert run(tmp_path, "<!-- not run: no hub -->\n```python\n1 / 0\n```\n").returncode == 0


def test_other_languages_are_left_out(tmp_path: Path) -> None:
    assert run(tmp_path, "```console\n$ rm -r /\n```\n").returncode == 0


CALM = "try:\n    print('on')\n    {}\nexcept KeyboardInterrupt:\n    print('stopped')"


@pytest.mark.parametrize(
    "block",
    [
        f"import time\n{CALM.format('time.sleep(60)')}",
        f"import asyncio\n{CALM.format('asyncio.run(asyncio.sleep(60))')}",
    ],
    ids=["sync", "aio"],
)
def test_what_goes_on_is_ended_by_ctrl_c_and_the_page_goes_on(tmp_path: Path, block: str) -> None:
    page = f"<!-- runs until Ctrl-C -->\n```python\n{block}\n```\n```python\nprint('next')\n```\n"
    ran = run(tmp_path, page)
    assert (ran.stdout, ran.returncode) == ("on\nstopped\nnext\n", 0), ran.stderr


def test_what_ctrl_c_ends_in_a_traceback_is_wrong(tmp_path: Path) -> None:
    block = "import time\nprint('on')\ntime.sleep(60)"
    ran = run(tmp_path, f"<!-- runs until Ctrl-C -->\n```python\n{block}\n```\n")
    assert "AssertionError: Ctrl-C ended it in a traceback" in ran.stderr


def test_what_should_go_on_and_ends_is_wrong(tmp_path: Path) -> None:
    ran = run(tmp_path, "<!-- runs until Ctrl-C -->\n```python\nend = 1\n```\n")
    assert "it ended before Ctrl-C" in ran.stderr


def test_a_block_without_an_end_is_an_error(tmp_path: Path) -> None:
    assert "page.md:1: this block has no end" in run(tmp_path, "```python\na = 1\n").stderr


def test_a_fence_within_a_longer_fence_is_text(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("````text\n```python\n1 / 0\n```\n````\n")
    assert [block.language for block in page_blocks.blocks(page)] == ["text"]


TABS = """
```python
a = 1
```

=== "asyncio"

    <!-- not run: of a tab -->
    ```text
    note
    ```

    ```python
    b = a + 1
    print(b)
    ```

=== "sync"

    ```python
    print(a, "b" in globals())
    ```

```python
print("b" in globals())
```
"""


def test_blocks_of_a_tab_share_the_names_outside_and_no_others(tmp_path: Path) -> None:
    ran = run(tmp_path, TABS)
    assert (ran.stdout, ran.returncode) == ("2\n1 False\nFalse\n", 0), ran.stderr
    found = page_blocks.blocks(tmp_path / "page.md")
    assert [block.tab for block in found] == ["", "asyncio", "asyncio", "sync", ""]
    assert (found[1].note, found[1].text) == ("not run: of a tab", "note")


def test_what_is_folded_is_a_program_of_its_own(tmp_path: Path) -> None:
    before = "```python\na = 1\n```\n\n<details><summary>asyncio</summary>\n\ntext\n\n"
    folded = "```python\nb = 'a' in globals()\nprint(b)\n```\n\n</details>\n\n"
    ran = run(tmp_path, f"{before}{folded}```python\nprint('b' in globals())\n```\n")
    assert ran.stdout == "False\nFalse\n", ran.stderr
    found = page_blocks.blocks(tmp_path / "page.md")
    assert [block.is_folded for block in found] == [False, True, False]
