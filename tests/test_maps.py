"""The docstring of each package names its modules."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import eventhub_checkpoints

ROOT = Path(eventhub_checkpoints.__file__).parent
REPOSITORY = Path(__file__).parent.parent
PACKAGE = "src/eventhub_checkpoints"
SAME_NAMES = {"aio", "_async", "_sync"}
"""Their modules are in the map of the package above."""
OTHER_WORDS = {"all_of", "every", "trailing", "any_of"}
PACKAGES = [
    path.parent for path in sorted(ROOT.rglob("__init__.py")) if path.parent.name not in SAME_NAMES
]


def modules(package: Path) -> set[str]:
    """The modules and packages below a package, those of `_async` included."""
    found = {path.stem for path in [*package.glob("*.py"), *package.glob("_async/*.py")]}
    found |= {path.parent.name for path in package.glob("*/__init__.py")}
    return found - {"__init__", "__main__", "__pycache__"}


def named(package: Path) -> set[str]:
    """The words in backticks of a package's docstring."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    return set(re.findall(r"`(\w+)`", docstring))


def listed(package: Path) -> set[str]:
    """The words that the list in a package's docstring has where it names modules."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    items = re.findall(r"^- (.+?)(?=^- |^$|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([a-z_]+)`(?=[,:]| (?:and|with) `)", " ".join(items)))


def per_package(found: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """What is found in each package in which something is."""
    by_name = {path.relative_to(ROOT).as_posix(): found(path) for path in PACKAGES}
    return {name: words for name, words in by_name.items() if words}


def test_a_package_names_its_modules() -> None:
    assert len(PACKAGES) > 20
    assert per_package(lambda package: modules(package) - named(package) - SAME_NAMES) == {}


def test_a_list_of_modules_names_no_other() -> None:
    known = SAME_NAMES | OTHER_WORDS
    assert per_package(lambda package: listed(package) - modules(package) - known) == {}


def test_the_files_that_contributing_names_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    table = text.partition("## Where do I change")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+/[\w.]*)`", table)
    assert len(named) > 25
    outside = ("deploy/", "docs/", "overrides/", "tests/", "tools/", "src/")
    missing = [
        name
        for name in named
        if not (REPOSITORY / ("" if name.startswith(outside) else PACKAGE) / name).exists()
    ]
    assert not missing


def test_the_tests_that_tox_names_exist() -> None:
    """An environment with one that is gone fails before it runs any."""
    named = set(re.findall(r"\btests/\w[\w/]*(?:\.py)?", (REPOSITORY / "tox.ini").read_text()))
    assert len(named) > 20
    assert {path for path in named if not (REPOSITORY / path).exists()} == set()
