"""The tables of `docs/reference/extras.md`: all extras and dependencies, as they were measured."""

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import extras
from eventhub_checkpoints.cli.demo.command import SPARK_DOWNLOAD_MB
from extras import NAME, PAGE, Measured, Package, Project, megabytes, of_extras, written

PROJECT, MEASURED = Project.read(), Measured.read()
BASE = MEASURED.needed(PROJECT.own)
README = PAGE.parents[2] / "README.md"
AGAIN = "run `python tools/extras.py`, or `tox -e extras` if a dependency is new"


def test_every_dependency_has_been_measured_and_no_other() -> None:
    everything = {*PROJECT.own, *PROJECT.requirements("all")}
    assert {*PROJECT.requirements("all")} == {
        each for extra in PROJECT.extras for each in PROJECT.requirements(extra)
    }
    direct = {canonicalize_name(Requirement(each).name) for each in everything}
    assert direct <= {*MEASURED.packages}, AGAIN
    assert MEASURED.needed(everything) | {NAME} == {*MEASURED.packages}, AGAIN


def test_the_page_shows_what_was_measured() -> None:
    page = PAGE.read_text()
    assert page == written(page, PROJECT, MEASURED), AGAIN


def test_a_measured_package_was_released_and_has_a_size_and_a_licence() -> None:
    for name, package in MEASURED.packages.items():
        assert package.size > 1000, name
        assert package.download > 1000, name
        assert package.licence != "not stated", name
        assert package.released or name == NAME, name


def test_the_page_names_each_licence_that_asks_for_more_than_a_notice() -> None:
    asking = {
        name.partition("-")[0]
        for name, package in MEASURED.packages.items()
        if re.search("GPL|MPL|Mozilla|EPL|CDDL", package.licence)
    }
    *_, last = PAGE.read_text().strip().split("\n\n")
    assert set(re.findall(r"(\w+) \(", last)) == asking


def test_every_direct_dependency_is_maintained() -> None:
    """Its last release was at most two years old when it was measured."""
    oldest = date.fromisoformat(MEASURED.day) - timedelta(days=730)
    for requirement in (*PROJECT.own, *PROJECT.requirements("all")):
        package = MEASURED.packages[canonicalize_name(Requirement(requirement).name)]
        assert date.fromisoformat(package.released) > oldest, requirement


def test_the_demo_says_what_its_largest_requirement_weighs() -> None:
    download = MEASURED.download(MEASURED.needed(PROJECT.requirements("spark")) - BASE)
    assert round(download / 1e7) == SPARK_DOWNLOAD_MB / 10


def test_pages_say_what_spark_and_the_demo_weigh() -> None:
    readme = README.read_text()
    added = {extra: MEASURED.needed(PROJECT.requirements(extra)) - BASE for extra in PROJECT.extras}
    gigabytes = f"{MEASURED.size(added['spark']) / 1e9:.1f} GB"
    assert f"`spark` adds {gigabytes}" in readme
    for page in ("tutorials/first-spark-job.md", "how-to/spark-clusters.md"):
        assert f"adds {gigabytes}" in (PAGE.parents[1] / page).read_text()
    (extras_of_demo,) = re.findall(r"\[([\w,]+)\]'\n\$ ehcp demo", readme)
    of_demo = {NAME, *BASE}.union(*(added[extra] for extra in extras_of_demo.split(",")))
    (download,) = re.findall(r"download of about (\d+) MB", readme)
    assert round(MEASURED.download(of_demo) / 1e7) == int(download) / 10
    light = [extra for extra, names in added.items() if MEASURED.size(names) < 50e6]
    assert len(light) > len(added) / 2
    assert "Most extras add less than 50 MB." in readme


def test_extras_and_what_they_need_are_added_up_once() -> None:
    def package(size: int, **requires: list[str]) -> Package:
        needs = {"": requires.pop("needs", []), **requires}
        return Package("1", size, size // 2, "2026-01-01", "MIT", needs)

    measured = Measured(
        "2026-01-02",
        "a machine",
        {
            NAME: package(1_000_000),
            "azure-eventhub": package(2_000_000, needs=["typing_extensions"]),
            "typing-extensions": package(100_000),
            "driver": package(3_000_000, needs=["typing_extensions"], fast=["speedup"]),
            "speedup": package(40_000_000),
        },
    )
    project = Project(
        ["azure-eventhub>=5"],
        {"sql": ["driver"], "redis": ["driver[fast]>=2"]},
        {"sql": [], "redis": ["sql"]},
    )
    rows = {row[0]: row[2:] for row in _rows(project, measured)}
    assert rows == {
        "none": ("3.1", "1.6", "3", "azure-eventhub"),
        "`sql`": ("3.0", "1.5", "1", "driver"),
        "`redis`": ("43", "22", "2", "`sql`, driver[fast]"),
    }


def _rows(project: Project, measured: Measured) -> list[tuple[str, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extras, "PURPOSES", dict.fromkeys(["none", *project.extras], "tests"))
        return [*of_extras(project, measured)][1:]


@pytest.mark.parametrize(
    ("size", "text"),
    [(66_000, "0.1"), (2_840_000, "2.8"), (9_960_000, "10"), (511_300_000, "511")],
)
def test_a_size_has_two_digits_or_all_before_the_point(size: int, text: str) -> None:
    assert megabytes(size) == text


def test_a_page_without_a_place_for_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no part"):
        written("# Extras\n", PROJECT, MEASURED)
