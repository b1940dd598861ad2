"""What PyPI shows, and that the oldest and the newest of every client are tested."""

import configparser
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

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


def test_the_site_has_the_same_addresses() -> None:
    named = re.findall(r"^(\w+_url): (\S+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    urls = {"site_url": PROJECT["urls"]["Documentation"], "repo_url": PROJECT["urls"]["Source"]}
    assert dict(named).items() <= urls.items()


def test_every_link_of_the_readme_works_on_pypi() -> None:
    """Those to pages go to the site, those to other files to the tag of this version."""
    links, on_pypi = LINK.findall(README), LINK.findall(of_pypi())
    site = f"{PROJECT['urls']['Documentation']}latest/"
    files = f"{PROJECT['urls']['Source']}/blob/v{eventhub_checkpoints.__version__}/"
    assert len(links) == len(on_pypi) > 20
    for link, rewritten in zip(links, on_pypi, strict=True):
        page, sign, heading = link.partition("#")
        if page.startswith("docs/"):
            # As mkdocs names them; `mkdocs build` and tests/test_docs_links.py know the headings.
            folder = page.removeprefix("docs/").removesuffix(".md").removesuffix("index")
            assert rewritten == f"{site}{folder.rstrip('/')}/{sign}{heading}"
        else:
            assert rewritten in (link, files + link)
            assert rewritten.startswith("https://"), link
        assert link.startswith("https://") or (ROOT / page).exists()


def test_the_readme_has_at_most_three_screens() -> None:
    """What is folded counts as one line, and a comment is not seen."""
    seen = re.sub(r"<details>.*?</details>", "folded", README, flags=re.DOTALL)
    lines = [line for line in seen.splitlines() if not line.startswith("<!--")]
    assert len(lines) <= 3 * SCREEN


TOX = configparser.ConfigParser(interpolation=None)
TOX.read(ROOT / "tox.ini")
OLDEST_AND_NEWEST = TOX["testenv:{min,newest}"]


def test_the_oldest_clients_that_are_tested_are_the_oldest_that_pip_accepts() -> None:
    extras = PROJECT["optional-dependencies"]
    services = [service for backend in BACKENDS for service in backend.services if service.extra]
    needed = {*PROJECT["dependencies"]}.union(*(extras[service.extra] for service in services))
    bounds = {parsed.name: parsed.specifier for parsed in map(Requirement, needed)}
    of_the_web = {"aiohttp", "certifi", "urllib3"}  # no client of a storage
    tested = [
        Requirement(line.removeprefix("min: "))
        for line in OLDEST_AND_NEWEST["deps"].strip().splitlines()
    ]
    assert {one.name for one in tested} == bounds.keys() - of_the_web - {"eventhub-checkpoints"}
    for one in tested:
        (pin,), (bound,) = one.specifier, bounds[one.name]
        assert (pin.operator, bound.operator) == ("==", ">=")
        assert Version(pin.version) == Version(bound.version), one.name


def test_the_workflow_runs_every_environment_that_others_have() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]
    run = {environment for row in matrix for environment in row["env"].split(",")}
    assert {"py", "min", "newest", "long", "kafka", "jvm", "spark40", "clusters"} <= run
    known = {
        name
        for section in TOX.sections()
        for name in re.split(r"[{},]", section.removeprefix("testenv:"))
    }
    assert run - known == {"py"}
    oldest, *_, newest = sorted({row["python"] for row in matrix})
    where = {environment: row["python"] for row in matrix for environment in row["env"].split(",")}
    assert (where["min"], where["newest"]) == (oldest, newest)
