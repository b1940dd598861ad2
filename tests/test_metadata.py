"""What PyPI shows: summary, links, and README, whose links have to work there."""

import re
import tomllib
from pathlib import Path
from typing import Any

import eventhub_checkpoints
from eventhub_checkpoints.stores.backends import BACKENDS

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
README = (ROOT / "README.md").read_text()
LINK = re.compile(r"\]\(([^)\s]+)\)")
SCREEN = 48
"""Lines of a screen."""


def of_pypi() -> str:
    """README as the build writes it into the metadata."""
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    assert hook["fragments"] == [{"path": "README.md"}]
    text = README
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text.replace("$HFPR_VERSION", eventhub_checkpoints.__version__)


def test_the_summary_names_every_store() -> None:
    titles = [service.title for backend in BACKENDS for service in backend.services]
    assert [title for title in titles if title not in PROJECT["description"]] == []
    # PyPI refuses longer ones.
    assert len(PROJECT["description"]) <= 512


def test_the_links_beside_the_readme_are_complete() -> None:
    urls = PROJECT["urls"]
    assert [*urls] == ["Documentation", "Source", "Issues", "Changelog"]
    assert all(url.startswith("https://") for url in urls.values())
    assert urls["Issues"] == f"{urls['Source']}/issues"
    assert (ROOT / urls["Changelog"].rpartition("/")[2]).exists()


def test_every_link_of_the_readme_works_on_pypi() -> None:
    """Those to files of the repository name the tag of this version."""
    links, on_pypi = LINK.findall(README), LINK.findall(of_pypi())
    begin = f"{PROJECT['urls']['Source']}/blob/v{eventhub_checkpoints.__version__}/"
    assert len(links) == len(on_pypi) > 20
    for link, rewritten in zip(links, on_pypi, strict=True):
        assert rewritten in (link, begin + link)
        assert rewritten.startswith("https://"), link
        # What is behind `#` is checked in tests/test_docs_links.py.
        assert link == rewritten or (ROOT / link.partition("#")[0]).exists()


def test_the_readme_has_at_most_three_screens() -> None:
    """What is folded counts as one line, and a comment is not seen."""
    seen = re.sub(r"<details>.*?</details>", "folded", README, flags=re.DOTALL)
    lines = [line for line in seen.splitlines() if not line.startswith("<!--")]
    assert len(lines) <= 3 * SCREEN
