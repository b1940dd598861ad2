"""Links and file names on the pages, also outside of `docs/`, which mkdocs does not check."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "eventhub_checkpoints"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("tools/*.md"),
        *ROOT.glob("docs/**/*.md"),
    ]
)
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


OF_SCHEMES = {"only-light", "only-dark"}
"""What the theme knows behind the name of a picture, which it shows in one colour scheme."""


def anchors(page: Path) -> set[str]:
    if page.suffix != ".md":
        return OF_SCHEMES
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {anchor(heading) for heading in headings}


def anchor(heading: str) -> str:
    if named := re.search(r"\{#([\w-]+)\}$", heading):
        return named[1]
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def dead_links(page: Path) -> Iterator[str]:
    """Links to a file or a heading that is not there."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if path.startswith("https:"):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT).as_posix()}: {link}"


def test_links_to_files_and_headings_are_valid() -> None:
    dead = [link for page in PAGES for link in dead_links(page)]
    assert not dead, "\n".join(dead)


def test_a_dead_link_would_be_found(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n# Two {#2}\n"
        "[a](#one-heading) [b](#none) [c](none.md) [d](https://a.b) [e](#2)\n"
    )
    assert [*dead_links(page)] == ["page.md: #none", "page.md: none.md"]


def test_files_on_the_architecture_page_exist() -> None:
    files = re.findall(
        r"`([\w/]+/\w+\.py)`", (ROOT / "docs/explanation/architecture.md").read_text()
    )
    assert len(files) > 4
    assert [file for file in files if not (PACKAGE / file).exists()] == []
