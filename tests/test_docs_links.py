"""Links and file names on the pages, also outside of `docs/`, which mkdocs does not check."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "eventhub_checkpoints"
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *ROOT.glob("docs/*.md")])
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_and_headings_are_valid(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if path.startswith("https:"):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_files_on_the_architecture_page_exist() -> None:
    files = re.findall(r"`([\w/]+/\w+\.py)`", (ROOT / "docs/architecture.md").read_text())
    assert len(files) > 4
    assert [file for file in files if not (PACKAGE / file).exists()] == []
