"""Stores of both variants on every backend, called the same way."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from backends import Backend, Place, Variant
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope

PROGRAMS = Path(__file__).parents[1] / "sdk"
IMPORT = re.compile(r"^from azure\.eventhub\.extensions\.\w+ import BlobCheckpointStore$", re.M)
OPENING = re.compile(r"BlobCheckpointStore\.from_connection_string\([^)]*\)", re.S)
PACKAGES = {"sync": "eventhub_checkpoints", "aio": "eventhub_checkpoints.aio"}


@pytest.fixture
def program_with(variant: Variant, tmp_path: Path) -> Callable[[str, str], Path]:
    """Write the program of `stores/sdk` with a store of ours in the place of the official one.

    It is given what is imported, and how the store is opened.
    """

    def written(names: str, opening: str) -> Path:
        text = (PROGRAMS / f"program_{variant}.py").read_text()
        text, imports = IMPORT.subn(f"from {PACKAGES[variant]} import {names}", text)
        text, openings = OPENING.subn(opening, text)
        assert (imports, openings) == (1, 1)
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return written


@pytest.fixture
def opened(shared_place: Place, variant: Variant, loop: Loop) -> Iterator[Callable[..., Client]]:
    """Opens stores, which are closed after the test, over the place that the file's tests share."""
    with ExitStack() as opening:

        def open_one(scope: Scope) -> Client:
            client = Client(shared_place.open(variant), scope, loop)
            opening.callback(client.close)
            return client

        yield open_one


@pytest.fixture(scope="module")
def shared_places(servers: Callable[[str], Backend]) -> Iterator[Callable[[str], Place]]:
    """Gives one place on each backend, for the tests of a file, which use names of their own.

    A list of all scopes costs a request each on Blob: those of other files are elsewhere.
    """
    with ExitStack() as created:

        @cache
        def place(name: str) -> Place:
            return created.enter_context(servers(name).place())

        yield place


@pytest.fixture
def shared_place(backend: Backend, shared_places: Callable[[str], Place]) -> Place:
    """The backend's place that the tests of a file share."""
    return shared_places(backend.name)
