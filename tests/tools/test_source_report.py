"""The report of a source tree, over a package of a few lines."""

from pathlib import Path

import pytest

from source_report.__main__ import report, rows
from source_report.rules import lines_by_room
from source_report.tree import PACKAGE, Package, merged

FILES = {
    "records": '''
        """Hold values."""

        EPOCH = 1970
        LONGEST_PAUSE = 3.0  # seconds
        _UNITS = {"s": 1.0, "ms": 0.001}


        class Position:
            """Name a place.

            Raises:
                ValueError: there is none,
                    or there are two.
            """


        def seconds(text):
            return _UNITS[text]
        ''',
    "stores/_async/base": """
        from typing import TYPE_CHECKING

        from azure.eventhub.aio import CheckpointStore

        from eventhub_checkpoints.records import Position
        from eventhub_checkpoints.stores._async import hooks

        if TYPE_CHECKING:
            from eventhub_checkpoints.operations.moves import Plan

        EPOCH = 0


        class BaseCheckpointStore(hooks.Claims, hooks.Hooks, CheckpointStore):
            _known: int

            def _write(self):
                # The row may be gone.
                self._lock, self.name = Position(), ""


        class BlobCheckpointStore(BaseCheckpointStore):
            def _own(self): ...
        """,
    "stores/_async/hooks": """
        class Hooks:
            def _run(self):
                for attempt in range(3):
                    try:
                        return attempt
                    except OSError:
                        continue


        class Claims(Hooks):
            async def claim(self):
                while True:
                    wait = self.deadline.pause()


        def run(pages):
            for page in pages:
                signal.pause()
        """,
    "stores/_sync/base": """
        # Derived from _async/base.py by tools/unasync.py; edit that file.
        EPOCH = 7
        """,
    "operations/moves": """
        from typing import Any
        from urllib.parse import urlsplit

        MOST_SECONDS = 5.0


        class Plan:
            def moment(self, text: Any) -> Any:
                return datetime.fromisoformat(text), urlsplit(text).port

            def parts(self, text):
                from eventhub_checkpoints.stores._async.base import BaseCheckpointStore

                return [part.partition("=") for part in text.split(";")]
        """,
}


@pytest.fixture
def package(tmp_path: Path) -> Package:
    for name, text in FILES.items():
        path = tmp_path / "src" / PACKAGE / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").split("\n")
        path.write_text("\n".join(line[8:] for line in lines))
    return Package(tmp_path)


def test_code_docstrings_and_comments_are_counted_and_derived_files_apart(
    package: Package,
) -> None:
    lines = lines_by_room(package)
    assert list(lines) == [
        *("(root)", "operations", "stores"),
        *("together", "derived, beside these"),
    ]
    # The comment behind the constant is on a line of code.
    assert lines["(root)"] == (1, 6, 7, 0)
    assert lines["stores"] == (2, 27, 0, 1)
    assert lines["derived, beside these"] == (1, 1, 0, 1)


def test_each_thing_is_counted_at_its_place(package: Package) -> None:
    hooks, base, moves = "stores._async.hooks", "stores._async.base", "operations.moves"
    order = [f"{base}:BaseCheckpointStore", f"{hooks}:Claims", f"{hooks}:Hooks", "CheckpointStore"]
    assert {row.what: row.places for row in rows(package)} == {
        "classes in the MRO of BaseCheckpointStore": order,
        "classes in the MRO of BlobCheckpointStore": [f"{base}:BlobCheckpointStore", *order],
        "private names of BaseCheckpointStore": ["_known", "_lock", "_run", "_write"],
        "retry loops": [f"{hooks}:Hooks._run", f"{hooks}:Claims.claim"],
        "functions that space retries": [f"{hooks}:Claims.claim"],
        "parsers of times": [f"{moves}:Plan.moment"],
        "parsers of durations": ["records:seconds"],
        "parsers of URLs": [f"{moves}:Plan.moment"],
        "parsers of connection strings": [f"{moves}:Plan.parts"],
        "types called Position, Target, Plan, Ownership, Group": [
            "records:Position",
            f"{moves}:Plan",
        ],
        "constants of one name with several values": [f"EPOCH: 1970 (records); 0 ({base})"],
        "constants of one meaning with two values": [
            f"most seconds: MOST_SECONDS = 5.0 ({moves}); LONGEST_PAUSE = 3.0 (records)"
        ],
        "uses of Any in operations": [f"{moves}: 2"],
        "lines of Raises: sections": ["(root): 3"],
        "circles of imports at run time": [],
        "circles of imports drawn, lazy and for types too": [f"{moves}, {base}"],
    }


def test_bases_without_a_consistent_order_are_refused() -> None:
    with pytest.raises(ValueError, match="no order of bases is consistent"):
        merged([["A", "B"], ["B", "A"]])


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"{tmp_path.name} is not a checkout"):
        Package(tmp_path)


def test_the_report_shows_places_on_request(package: Package) -> None:
    shown = list(report(package, with_places=True))
    loops = shown.index("     2  retry loops")
    assert shown[loops + 1].split() == ["stores._async.hooks:Hooks._run"]
    assert len(list(report(package, with_places=False))) < len(shown)
