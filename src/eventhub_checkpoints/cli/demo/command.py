"""`ehcp demo`: options, requirements, exit status."""

import importlib.util
import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eventhub_checkpoints.cli.demo.signals import Signals, Stopped
from eventhub_checkpoints.cli.demo.storage import AZURITE
from eventhub_checkpoints.errors import CheckpointStoreError


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of the user, and the number of events in each part of the demo.

    Attributes:
        store: `azurite` or the URL of a store; None for a SQLite file in the demo's folder.
        consumer: the client that both consumers use, `aio` or `sync`.
        events: total number of events to publish.
        partitions: number of partitions of the hub.
    """

    store: str | None = field(repr=False)
    consumer: str
    events: int
    partitions: int

    @property
    def sent_at_first(self) -> int:
        """Number of events sent while the consumers share the partitions."""
        return self.events // 10

    @property
    def processed_at_the_kill(self) -> int:
        """Number of events processed when A is killed, while more are being sent."""
        return self.events * 3 // 10

    @property
    def sent_at_the_kill(self) -> int:
        """Maximum number of events sent before the kill."""
        return self.events // 2

    @property
    def consumed(self) -> int:
        """Number of events sent while there is a consumer; Spark reads the rest."""
        return self.events * 8 // 10


DRIVERS = {
    "spark": ["pyspark", "pyarrow"],
    "sql": ["sqlalchemy"],
    "blob": ["azure.storage.blob"],
}
"""Required modules by the extra that installs them."""

DRIVERS_OF_AIO = {"sql": ["aiosqlite"], "blob": ["aiohttp"]}
OLDEST_JAVA = 17
"""Source: Spark 4.0, docs/index.md, "Downloading"."""


class CannotBeginError(CheckpointStoreError):
    """Raised if a requirement is missing; nothing was started."""


def check_requirements(store: str | None, consumer: str) -> None:
    """Report missing requirements. A store that is passed by its URL reports its own later.

    Args:
        store: the value of `--store`.
        consumer: the client that the consumers use.

    Raises:
        CannotBeginError: a Python package or Java is missing, Java is too old, or this is not a
            POSIX system.
    """
    if os.name != "posix":
        raise CannotBeginError("the demo runs on Linux and macOS: it kills as they do")
    missing = missing_packages(store, consumer)
    if missing:
        packages = [package for of_extra in missing.values() for package in of_extra]
        raise CannotBeginError(
            f"the demo needs {' and '.join(packages)}: "
            f"python -m pip install 'eventhub-checkpoints[{','.join(missing)}]'"
        )
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        found = "none was found" if version is None else f"Java {version} was found"
        raise CannotBeginError(
            f"the demo needs Java {OLDEST_JAVA} or newer for Spark, and {found}: install one, "
            "such as the package openjdk-17-jre-headless, or set JAVA_HOME"
        )


def missing_packages(store: str | None, consumer: str) -> dict[str, list[str]]:
    """Return the missing packages by the extra that installs them."""
    extras = ["spark", *{None: ["sql"], AZURITE: ["blob"]}.get(store, [])]
    of_aio = DRIVERS_OF_AIO if consumer == "aio" else {}
    found = {
        extra: [
            module.replace(".", "-")
            for module in [*DRIVERS[extra], *of_aio.get(extra, [])]
            if not _is_there(module)
        ]
        for extra in extras
    }
    return {extra: packages for extra, packages in found.items() if packages}


def java_version() -> int | None:
    """Return the major version of Spark's Java; None if there is none that runs."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin/java")) if home else shutil.which("java")
    if java is None:
        return None
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    # Up to version 8 the number is written 1.8.
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(found[1]) if found else None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


EVENTS_A_PARTITION = 50
"""Minimum: with fewer events, one consumer may finish before the other one has started."""

MOST_EVENTS = 200_000


class Colour(StrEnum):
    """Client of azure-eventhub that the consumers use."""

    AIO = "aio"
    SYNC = "sync"


def demo(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the checkpoints go: a URL as `open_store` takes it, or `azurite`, which "
            "needs Node or Docker. By default a SQLite file of the demo's own.",
        ),
    ] = None,
    consumer: Annotated[
        Colour, typer.Option(help="The client that both consumers use.")
    ] = Colour.AIO,
    events: Annotated[
        int,
        typer.Option(
            max=MOST_EVENTS,
            help=f"Events to publish in all, at least {EVENTS_A_PARTITION} for each partition.",
        ),
    ] = 4000,
    partitions: Annotated[int, typer.Option(min=2, max=32, help="Partitions of the hub.")] = 8,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the hub up and the checkpoints there in the end, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Kill a consumer, let another one take over and PySpark resume, and count every event.

    Starts a local hub and two consumers, and stops all of them again. Needs Java; no account, and
    no server for the checkpoints. In an existing store it creates what is missing, and removes its
    own rows at the end. The exit status is 1 if an event was lost, or if PySpark did not read
    exactly the events after the checkpoints, and 2 if the demo could not start.
    """
    if events < partitions * EVENTS_A_PARTITION:
        raise typer.BadParameter(
            f"{events} is below {partitions * EVENTS_A_PARTITION}, which is {EVENTS_A_PARTITION} "
            f"for each of {partitions} partitions",
            param_hint="--events",
        )
    signals = Signals()
    try:
        check_requirements(store, consumer)
        plan = Plan(store, consumer, events, partitions)
        with signals.watched():
            raise typer.Exit(_run(plan, keep, signals))
    except CannotBeginError as error:
        typer.echo(f"eventhub-checkpoints: {error}", err=True)
        raise typer.Exit(2) from None
    except Stopped as stopped:
        typer.echo("stopped; everything that was started has ended", err=True)
        raise typer.Exit(128 + stopped.number) from None


def _run(plan: Plan, keep: bool, signals: Signals) -> int:
    # Imported here, because these need the extras that were checked just now.
    from eventhub_checkpoints.cli.demo.screen import Screen
    from eventhub_checkpoints.cli.demo.story import keep_up, report, tell

    with ExitStack() as stack:
        with Screen() as screen:
            servers, outcomes = tell(plan, screen, signals, stack)
        status = report(screen, outcomes)
        if keep:
            keep_up(screen, servers)
    return status
