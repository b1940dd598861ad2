"""`ehcp demo`: options, requirements, exit status, and signals."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from eventhub_checkpoints._shared.drivers import is_installed
from eventhub_checkpoints._shared.signals import STOP_SIGNALS
from eventhub_checkpoints.cli import complain
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.errors import CheckpointStoreError, MissingDriverError
from eventhub_checkpoints.stores.backends import SCHEMES, scheme_of


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Options of the user, and the number of events in each part of the demo.

    Attributes:
        store: the URL of a store; None for a SQLite file in the demo's folder.
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


SPARK_DOWNLOAD_MB = 510
"""Of the extra `spark`; `tests/tools/test_extras.py` compares it with the measured size."""
OLDEST_JAVA = 17
"""Source: Spark 4.0, docs/index.md, "Downloading"."""


class CannotBeginError(CheckpointStoreError):
    """Raised if a requirement is missing; nothing was started."""


def check_requirements(store: str | None, consumer: str) -> None:
    """Report missing requirements, all at once.

    Args:
        store: the value of `--store`.
        consumer: the client that the consumers use.

    Raises:
        CannotBeginError: a Python package or Java is missing, Java is too old, or this is not a
            POSIX system.
    """
    if os.name != "posix":
        raise CannotBeginError("the demo runs on Linux and macOS only: it sends POSIX signals")
    missing = missing_packages(store, consumer)
    if missing:
        packages = [package for of_extra in missing.values() for package in of_extra]
        weight = f" (about {SPARK_DOWNLOAD_MB} MB to download)" if "spark" in missing else ""
        raise CannotBeginError(
            f"the demo needs {' and '.join(packages)}: "
            f"python -m pip install 'eventhub-checkpoints[{','.join(missing)}]'{weight}"
        )
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        installed = "none was found" if version is None else f"Java {version} was found"
        raise CannotBeginError(
            f"the demo needs Java {OLDEST_JAVA} or newer for Spark, and {installed}: install one, "
            "such as the package openjdk-17-jre-headless, or set JAVA_HOME"
        )


def missing_packages(store: str | None, consumer: str) -> dict[str, list[str]]:
    """Return the missing packages by the extra that installs them."""
    missing = {}
    if packages := [name for name in ("pyspark", "pyarrow") if not is_installed(name)]:
        missing["spark"] = packages
    if extra := missing_extra("sqlite:///checkpoints.db" if store is None else store, consumer):
        missing[extra] = ["the driver of the store"]
    return missing


def missing_extra(store: str, consumer: str) -> str | None:
    """Return the extra of a store's missing driver; other faults of its URL are reported later."""
    # Imported here: other commands need no store of either variant.
    from eventhub_checkpoints import aio, open_store

    async def open_and_close() -> None:
        async with aio.open_store(store):
            pass

    # A custom factory is called no more often than needed.
    if scheme_of(store) in SCHEMES:
        try:
            open_store(store).close()
            if consumer == "aio":
                asyncio.run(open_and_close())
        except MissingDriverError as error:
            return error.extra
        except CheckpointStoreError:
            pass
    return None


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
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(match[1]) if match else None


class Stopped(BaseException):
    """Raised if the user stops the demo. Not an `Exception`, so that no library swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Handlers of the two signals while the demo runs."""

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise `Stopped` on the first signal in this block; ignore the following ones.

        A second Ctrl-C must not interrupt the cleanup.
        """
        before = {number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Defer a signal to the end of this block.

        Between the start of a process and the registration of its cleanup, an exception would leave
        it running.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def check(self) -> None:
        """Raise `Stopped` if a signal came whose exception was deferred or swallowed."""
        if self._came is not None:
            raise Stopped(self._came)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        self._came = number
        if not self._held:
            raise Stopped(number)


INTRODUCTION = """\
Two consumers share a local stand-in for Event Hubs. One is killed, the other
takes over, PySpark continues from the checkpoints, and every event is counted.
Nothing is downloaded. It takes one to two minutes, most of them for PySpark."""
EVENTS_A_PARTITION = 50
"""Minimum: with fewer events, one consumer may finish before the other one has started."""

MOST_EVENTS = 200_000


class Client(StrEnum):
    """Client of azure-eventhub that the consumers use."""

    AIO = "aio"
    SYNC = "sync"


def demo(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where to store the checkpoints: a URL for `open_store`. "
            "By default a temporary SQLite file.",
        ),
    ] = None,
    consumer: Annotated[
        Client, typer.Option(help="The client that both consumers use.")
    ] = Client.AIO,
    events: Annotated[
        int,
        number_option(
            least=1,
            most=MOST_EVENTS,
            help=f"Total number of events, at least {EVENTS_A_PARTITION} for each partition.",
        ),
    ] = 4000,
    partitions: Annotated[int, number_option(least=2, most=32, help="Partitions of the hub.")] = 8,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="At the end, keep the hub and the checkpoints until Ctrl-C."),
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
        plan = DemoPlan(store, consumer, events, partitions)
        with signals.watched():
            raise typer.Exit(_run(plan, keep, signals))
    except CannotBeginError as error:
        complain(error)
        raise typer.Exit(2) from None
    except Stopped as stopped:
        typer.echo("stopped; everything that was started has ended", err=True)
        raise typer.Exit(128 + stopped.number) from None


def _run(plan: DemoPlan, keep: bool, signals: Signals) -> int:
    # Imported here, because these need the extras that were checked just now.
    from eventhub_checkpoints.cli.demo.report import Screen
    from eventhub_checkpoints.cli.demo.story import keep_up, result, run, suggest

    with ExitStack() as stack:
        with Screen(of_partition=plan.events // plan.partitions) as screen:
            screen.note(INTRODUCTION)
            servers, outcomes = run(plan, screen, signals, stack)
        status = result(screen, outcomes)
        if keep:
            keep_up(screen, servers)
        elif status == 0:
            suggest(screen)
    return status
