"""Measure what each extra installs, and write the tables of `docs/reference/extras.md`.

`python tools/extras.py` writes the tables from `pyproject.toml` and `tools/extras.json`: that is
enough if an extra loses a dependency. `tox -e extras` first measures the packages that it has
installed, and learns from `uv lock` how large their files are in the package index, and when the
newest version of each was released.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tools/extras.json"
PAGE = ROOT / "docs/reference/extras.md"
NAME = "eventhub-checkpoints"
OF_DEVELOPERS = {"test"}
EVERY = "all"
PURPOSES = {
    "none": "stores in memory, processing, the local hub",
    "blob": "Azure Blob Storage",
    "table": "Azure Table Storage",
    "sql": "SQLite",
    "postgres": "PostgreSQL",
    "mysql": "MySQL, MariaDB",
    "redis": "Redis",
    "cassandra": "Cassandra",
    "arrow": "events as Arrow batches",
    "spark": "PySpark",
    "kafka": "events over the Kafka protocol",
    "cli": "the command `ehcp`",
    "metrics": "`ehcp serve` for Prometheus",
    "keda": "`ehcp serve` for KEDA",
    "otel": "spans and metrics of OpenTelemetry",
    "ui": "`ehcp ui`",
    EVERY: "all of these",
}
"""What each extra is for, in the order of the table."""
BEGIN, END = "<!-- {}: written by tools/extras.py -->\n", "<!-- end of {} -->\n"
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Package:
    """Installed distribution.

    Attributes:
        version: that was measured.
        size: bytes of its files, with the bytecode that pip compiles.
        download: bytes of the file that pip downloads.
        released: day on which the newest version was released.
        licence: as its metadata states it.
        requires: the names of what it needs on the machine that measured, with their extras; by the
            extra that needs it, `""` for none.
    """

    version: str
    size: int
    download: int
    released: str
    licence: str
    requires: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What `tools/extras.json` contains.

    Attributes:
        day: of the measurement.
        machine: that measured: a Python, system and processor.
        packages: all that any extra installs, by name.
    """

    day: str
    machine: str
    packages: Mapping[str, Package]

    @classmethod
    def read(cls, path: Path = DATA) -> "Measured":
        """Read the file."""
        data = json.loads(path.read_text())
        packages = {name: Package(**values) for name, values in data.pop("packages").items()}
        return cls(**data, packages=packages)

    def needed(self, requirements: Iterable[str]) -> set[str]:
        """Return the names of all packages that pip installs for these requirements."""
        seen: set[tuple[str, str]] = set()
        waiting = [*requirements]
        while waiting:
            requirement = Requirement(waiting.pop())
            name = canonicalize_name(requirement.name)
            for extra in ("", *requirement.extras):
                if (name, extra) not in seen:
                    seen.add((name, extra))
                    waiting += self.packages[name].requires.get(extra, ())
        return {name for name, _ in seen}

    def without_unused(self, project: "Project") -> "Measured":
        """Return it without packages that no extra needs any more."""
        every = self.needed(
            each for extra in project.extras for each in project.requirements(extra)
        )
        kept = {NAME, *every, *self.needed(project.own)}
        packages = {name: package for name, package in self.packages.items() if name in kept}
        return replace(self, packages=packages)

    def size(self, names: Iterable[str]) -> int:
        """Return the bytes of these packages."""
        return sum(self.packages[name].size for name in names)

    def download(self, names: Iterable[str]) -> int:
        """Return the bytes that pip downloads for these packages."""
        return sum(self.packages[name].download for name in names)


@dataclass(frozen=True, slots=True)
class Project:
    """Dependencies in `pyproject.toml`.

    Attributes:
        own: those of the package without extras.
        extras: those of each extra, without extras of this package.
        included: the extras of this package that an extra includes.
    """

    own: Sequence[str]
    extras: Mapping[str, Sequence[str]]
    included: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, path: Path = ROOT / "pyproject.toml") -> "Project":
        """Read the file."""
        table = tomllib.loads(path.read_text())["project"]
        extras, included = {}, {}
        for extra, requirements in table["optional-dependencies"].items():
            if extra not in OF_DEVELOPERS:
                ours = [each for each in requirements if Requirement(each).name == NAME]
                extras[extra] = [each for each in requirements if each not in ours]
                included[extra] = [
                    name for each in ours for name in re.split(r"[\[\],]", each)[1:] if name
                ]
        return cls(table["dependencies"], extras, included)

    def requirements(self, extra: str) -> set[str]:
        """Return all that an extra needs, with the extras that it includes."""
        found = {*self.extras[extra]}
        return found.union(*(self.requirements(each) for each in self.included[extra]))


def megabytes(size: float) -> str:
    """Return a size as text: two digits, or all before the point."""
    number = size / MEGABYTE
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def of_extras(project: Project, measured: Measured) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of extras."""
    yield "extra", "for", "MB", "download, MB", "packages", "direct dependencies"
    base = measured.needed(project.own)
    added = {"none": {*base, NAME}}
    direct = {"none": [*map(named, project.own)], EVERY: ["those of all"]}
    for extra, requirements in project.extras.items():
        added[extra] = measured.needed(project.requirements(extra)) - base
        included = [f"`{each}`" for each in project.included[extra]]
        direct.setdefault(extra, [*included, *map(named, requirements)])
    for extra, purpose in PURPOSES.items():
        names = added.pop(extra)
        title = f"`{extra}`" if extra in project.extras else extra
        sizes = megabytes(measured.size(names)), megabytes(measured.download(names))
        yield title, purpose, *sizes, str(len(names)), ", ".join(direct[extra])
    assert not added, f"say what {' and '.join(added)} is for"


def of_dependencies(project: Project, measured: Measured) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of direct dependencies, in alphabetical order."""
    yield "package", "for", "MB", "with what it needs, MB", "last release", "licence"
    users: dict[str, list[str]] = {}
    for requirement in project.own:
        users.setdefault(named(requirement), []).append("the package")
    for extra, requirements in project.extras.items():
        for requirement in requirements:
            users.setdefault(named(requirement), []).append(f"`{extra}`")
    base = measured.needed(project.own)
    for name in sorted(users, key=str.lower):
        package = measured.packages[canonicalize_name(Requirement(name).name)]
        needed = measured.needed([name])
        more = needed - base if "the package" not in users[name] else needed
        others = len(more) - 1
        yield (
            name,
            ", ".join(users[name]),
            megabytes(package.size),
            f"{megabytes(measured.size(more))} ({others} more)" if others > 0 else "",
            package.released,
            package.licence,
        )


def named(requirement: str) -> str:
    """Return a requirement without its version."""
    parsed = Requirement(requirement)
    extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
    return f"{parsed.name}{extras}"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows as a table in Markdown; the first is its heading."""
    heading, *others = rows
    lines = (heading, ("---",) * len(heading), *others)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def written(page: str, project: Project, measured: Measured) -> str:
    """Return the page with its tables written anew."""
    parts = {
        "measured": f"Measured on {measured.day} with {measured.machine}.\n",
        "extras": table(of_extras(project, measured)),
        "dependencies": table(of_dependencies(project, measured)),
    }
    for name, text in parts.items():
        before, begin, rest = page.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        if not end:
            raise SystemExit(f"{PAGE} has no part {name}")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def measure(project: Project) -> Measured:
    """Measure what is installed beside this interpreter."""
    found: dict[str, Distribution] = {NAME: distribution(NAME)}
    requires: dict[str, dict[str, list[str]]] = {NAME: {}}
    waiting = [*project.own, *(each for extra in project.extras.values() for each in extra)]
    direct = [*waiting]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        found[name] = distribution(name)
        for extra in ("", *requirement.extras):
            if extra not in requires.setdefault(name, {}):
                requires[name][extra] = [*requirements_of(found[name], extra)]
                waiting += requires[name][extra]
    of_index = published(direct)
    packages = {
        name: Package(
            installed.version,
            sum(map(len, contents_of(installed))),
            *of_index.get(name, (compressed(installed), "")),
            licence_of(installed),
            requires[name],
        )
        for name, installed in sorted(found.items())
    }
    machine = (
        f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}; "
        "sizes include the bytecode that pip compiles"
    )
    return Measured(datetime.now(UTC).date().isoformat(), machine, packages)


def requirements_of(installed: Distribution, extra: str) -> Iterator[str]:
    """Yield what a distribution needs here for one of its extras, `""` for none."""
    for text in installed.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None:
            is_needed = extra == ""
        else:
            is_needed = marker.evaluate({"extra": extra}) and (
                extra == "" or not marker.evaluate({"extra": ""})
            )
        if is_needed:
            yield named(text)


def contents_of(installed: Distribution, without: str | None = None) -> Iterator[bytes]:
    """Yield the files of a distribution that are there, but those with one suffix."""
    for file in installed.files or ():
        path = Path(str(file.locate()))
        if path.is_file() and path.suffix != without:
            yield path.read_bytes()


def compressed(installed: Distribution) -> int:
    """Return the bytes of its wheel, for a distribution that the index does not have."""
    return sum(len(zlib.compress(each)) for each in contents_of(installed, without=".pyc"))


def licence_of(installed: Distribution) -> str:
    """Return the licence that the metadata states, in the shortest form."""
    metadata: Any = installed.metadata
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or ()
        if each.startswith("License :: OSI Approved :: ")
    ]
    text = metadata.get("License-Expression") or ", ".join(classifiers) or metadata.get("License")
    return str(text or "not stated").strip().partition("\n")[0]


def published(requirements: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the download in bytes and the day of the newest version of each package."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise SystemExit("uv is not installed: python -m pip install uv")
    python = ".".join(platform.python_version_tuple()[:2])
    wanted = {"name": "measured", "version": "0", "requires-python": f"=={python}.*"}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in wanted.items()]
    with TemporaryDirectory() as folder:
        text = "".join(["[project]\n", *lines, f"dependencies = {json.dumps(requirements)}\n"])
        Path(folder, "pyproject.toml").write_text(text)
        subprocess.run([uv, "lock", "--quiet"], cwd=folder, check=True)
        locked = tomllib.loads(Path(folder, "uv.lock").read_text())
    found = {}
    for package in locked["package"]:
        wheels, source = package.get("wheels", []), package.get("sdist")
        files = [*wheels, source] if source else wheels
        if files:
            first = min(file["upload-time"] for file in files)
            found[package["name"]] = downloaded(wheels, source)["size"], first[:10]
    return found


def downloaded(wheels: Sequence[dict[str, Any]], source: dict[str, Any] | None) -> dict[str, Any]:
    """Return the file that pip takes: the wheel that suits this machine best, else the source."""
    ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
    best, chosen = len(ranks), source
    for wheel in wheels:
        name = unquote(wheel["url"].rpartition("/")[2])
        *_, tags = parse_wheel_filename(name)
        rank = min((ranks[tag] for tag in tags if tag in ranks), default=len(ranks))
        if rank < best:
            best, chosen = rank, wheel
    assert chosen is not None
    return chosen


def main(arguments: list[str] | None = None) -> None:
    """Write the tables, after a measurement if one is wanted."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/reference/extras.md.")
    parser.add_argument("--measure", action="store_true", help="measure what is installed, first")
    project = Project.read()
    is_measured = parser.parse_args(arguments).measure
    measured = (measure(project) if is_measured else Measured.read()).without_unused(project)
    DATA.write_text(json.dumps(asdict(measured), indent=1, sort_keys=True) + "\n")
    PAGE.write_text(written(PAGE.read_text(), project, measured))


if __name__ == "__main__":
    main()
