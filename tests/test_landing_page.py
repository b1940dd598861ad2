"""The figures of the landing page are those of the benchmarks' tables, and its links lead there."""

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/index.md").read_text()
MEASURED = PAGE.partition("## Measured\n")[2].partition("\n## ")[0]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BENCHMARKS = (ROOT / "benchmarks/README.md").read_text()
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
ASSUMED = {"1,024", "1,000", "10", "64"}
"""Numbers that say what was measured: partitions, events, milliseconds away, claims in a call."""


def rows(section: str) -> Iterator[dict[str, str]]:
    """The rows of all tables in a section; one without a name has that of the row above."""
    columns: list[str] = []
    name = ""
    for line in BENCHMARKS.partition(f"\n## {section}\n")[2].partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if not cells:
            columns = []
        elif not columns:
            columns = cells
        elif not set(line) <= set("|-: "):
            name = cells[0] or name
            yield {**dict(zip(columns, cells, strict=True)), "name": name}


def cell(section: str, name: str, column: str, **others: str) -> str:
    (found,) = (
        row[column]
        for row in rows(section)
        if row["name"] == name
        and column in row
        and all(row.get(key) == value for key, value in others.items())
    )
    return found


def first(text: str) -> str:
    return text.split(", ")[0]


def extremes(text: str) -> str:
    parts = text.split(", ")
    return f"{parts[0]} to {parts[-1]} events"


def times(text: str) -> str:
    return f"**{float(text):.0f} \N{MULTIPLICATION SIGN}**"


def seconds(digits: int) -> Callable[[str], str]:
    return lambda text: f"{float(text.removesuffix(' s')):.{digits}f} s"


def same(text: str) -> str:
    return text


JOINED = {"section": "Processing", "name": "EventProcessor, sync"}
EVERY_EVENT = {"section": "Processing", "name": "CoalescingCheckpointStore"}
CLAIMS = {"section": "Blob store", "name": "1024 first claims, 10 ms away", "measure": "wall"}
TRIPS = {"section": "All backends", "measure": "trips"}
ARROW = {"section": "Receiving", "name": "no properties"}
SPARK = {"section": "Spark", "name": "batch into noop", "properties": "0"}
FIGURES = [
    ({**JOINED, "column": "twice: after"}, lambda text: f"**{first(text)}**"),
    ({**JOINED, "column": "twice: before"}, extremes),
    ({**EVERY_EVENT, "column": "ours / official"}, times),
    ({**EVERY_EVENT, "column": "ours"}, same),
    ({**EVERY_EVENT, "column": "official"}, lambda text: f"instead of {text}"),
    (
        {**EVERY_EVENT, "column": "writes per 1000: ours, official"},
        lambda text: f"{first(text)} writes for 1,000 events instead of 1,000",
    ),
    ({**CLAIMS, "column": "ours"}, lambda text: f"**{seconds(1)(text)}**"),
    ({**CLAIMS, "column": "official"}, seconds(0)),
    (
        {**TRIPS, "name": "64 first claims, postgres", "column": "ours"},
        lambda text: f"{text} round trip",
    ),
    (
        {**TRIPS, "name": "64 first claims, redis", "column": "ours"},
        lambda text: f"{text} round trip",
    ),
    (
        {**TRIPS, "name": "64 first claims, blob", "column": "official"},
        lambda text: f"instead of {text}",
    ),
    ({**ARROW, "column": "fast / official"}, times),
    ({**ARROW, "column": "fast"}, same),
    ({**ARROW, "column": "official"}, same),
    ({**SPARK, "column": "fast / plain"}, times),
    ({**SPARK, "column": "fast"}, same),
    ({**SPARK, "column": "fast / Spark's Kafka"}, lambda text: f"{text} times"),
]


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("where", "shown"), FIGURES)
def test_a_figure_is_that_of_the_table(where: dict[str, str], shown: Callable[[str], str]) -> None:
    assert shown(cell(**where)) in in_one_line(MEASURED)


def test_no_other_figure_is_claimed() -> None:
    text = re.sub(r"\]\([^)]*\)|\{[^}]*\}", "", MEASURED)
    measured = {
        number for where, shown in FIGURES for number in NUMBER.findall(shown(cell(**where)))
    }
    assert set(NUMBER.findall(text)) - measured - ASSUMED == set()


def test_links_into_the_repository_name_what_there_is() -> None:
    # Python's tags name what only mkdocs can import.
    site = yaml.safe_load(re.sub(r"!!python\S*", "", (ROOT / "mkdocs.yml").read_text()))
    repository = site["repo_url"]
    assert repository == PROJECT["urls"]["Source"]
    links = re.findall(rf"{re.escape(repository)}/blob/main/([\w./-]+)#([\w-]+)", PAGE)
    assert len(links) >= 5
    assert PAGE.count("https://github.com/") == len(links)
    for path, anchor in links:
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
