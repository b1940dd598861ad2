"""Consumers in processes whose clocks are an hour apart, on one storage.

    python tools/campaign.py skew --backend postgres --rounds 20

Three workers, an hour behind, right and an hour ahead, each own partitions, renew them, save
checkpoints, and take what has expired by their own clocks. One of them is killed. The judge knows
from a clock that all share (`time.monotonic`) when each renewal was made: no worker may see an
older age than that, and what is saved goes forward. Linux only, with libfaketime.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from backends import BACKENDS, Backend, ServerMissingError
from eventhub_checkpoints import open_store
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.records import Scope
from waiting import eventually

SKEWS = {"behind": -3600, "right": 0, "ahead": 3600}
"""Seconds by which the clock of each worker is off."""
HAVE_CLOCKS = [name for name in BACKENDS if name not in ("memory", "sqlite")]
"""Backends with a clock of their own; memory and SQLite use that of the host."""
EACH = 3
"""Partitions that each worker begins with."""
EXPIRES_AFTER = 4.0
RESOLUTION = 1.0
"""Seconds of the coarsest clock of a storage, Blob's."""
PACE_SECONDS = 0.2
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"
WORKER = """
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds)
import sys, clock_skew
clock_skew.work(*sys.argv[1:])
"""
"""Waits without `clock_nanosleep`, which libfaketime calls with a time that is off."""
Line = dict[str, Any]


class SkewError(AssertionError):
    """A clock that is off has cost a partition, kept one, or moved a checkpoint back."""


def faketime() -> str:
    """Return the path of the library.

    Raises:
        ServerMissingError: it is not installed.
    """
    found = sorted(Path("/").glob(LIBRARIES[1:]))
    if not found:
        raise ServerMissingError("clocks that are off need Debian's package libfaketime")
    return str(found[0])


def work(url: str, name: str) -> None:
    """Own, renew, save and take until killed; print what was seen and done as lines of JSON."""
    first = [*SKEWS].index(name) * EACH
    wanted = {str(number) for number in range(first, first + EACH)}
    numbers: dict[str, int] = {}
    with open_store(url) as store:
        while True:
            began = time.monotonic()
            rows = {row["partition_id"]: row for row in store.list_ownership(*SCOPE)}
            ages = {key: time.time() - row["last_modified_time"] for key, row in rows.items()}
            owners = {key: row["owner_id"] for key, row in rows.items()}
            say(name, "listed", began, ages=ages, owners=owners)
            expired = {key for key, age in ages.items() if age > EXPIRES_AFTER}
            own = {key for key, owner in owners.items() if owner == name}
            claims = [
                {**SCOPE.as_dict(), "partition_id": key, "owner_id": name}
                | ({"etag": rows[key]["etag"]} if key in rows else {})
                for key in sorted(own | expired | (wanted - {*rows}))
            ]
            began = time.monotonic()
            won = [row["partition_id"] for row in store.claim_ownership(claims)]
            say(name, "claimed", began, won=won)
            if new := {*won} - {*numbers}:
                rows = {row["partition_id"]: row for row in store.list_checkpoints(*SCOPE)}
                numbers |= {key: rows[key]["sequence_number"] for key in new if key in rows}
            numbers = {key: numbers.get(key, -1) for key in won}
            for key in won:
                began = time.monotonic()
                numbers[key] += 1
                store.update_checkpoint(
                    {
                        **SCOPE.as_dict(),
                        "partition_id": key,
                        "offset": str(numbers[key]),
                        "sequence_number": numbers[key],
                    }
                )
                say(name, "saved", began, partition=key, number=numbers[key])
            time.sleep(PACE_SECONDS)


def say(name: str, what: str, began: float, **more: Any) -> None:
    """Print what a worker did, and when."""
    line = {"name": name, "what": what, "began": began, "ended": time.monotonic(), **more}
    print(json.dumps(line), flush=True)


def lines(children: Sequence[Child]) -> list[Line]:
    """Return the complete lines of all workers in the order of their ends."""
    texts = [text for child in children for text in child.log.read_text().splitlines(True)]
    found = [json.loads(text) for text in texts if text.startswith("{") and text.endswith("\n")]
    return sorted(found, key=lambda line: float(line["ended"]))


def run_skews(backend: Backend, seed: int, rounds: int) -> Counter[str]:
    """Kill one of the workers in each round; return what all have seen and done.

    Raises:
        SkewError: see there.
        ServerMissingError: libfaketime is not installed.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(rounds):
        seen.update(run_round(backend, order.choice([*SKEWS])))
    return seen


def run_round(backend: Backend, victim: str) -> Counter[str]:
    """Run the three workers until the partitions of one that was killed are taken."""
    library = faketime()
    partitions = {str(number) for number in range(EACH * len(SKEWS))}
    with backend.place() as place, TemporaryDirectory() as folder, ExitStack() as started:
        children = {
            name: started.enter_context(
                Child(
                    [sys.executable, "-c", WORKER, place.url, name],
                    log=Path(folder, name),
                    env={
                        "LD_PRELOAD": library,
                        "FAKETIME": f"{seconds:+}s",
                        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    },
                )
            )
            for name, seconds in SKEWS.items()
        }

        def owned(names: Sequence[str]) -> set[str]:
            """Return the partitions that workers own, by what each of them listed last."""
            for child in children.values():
                if child.poll() not in (None, -9):
                    raise SkewError(f"a worker ended:\n{child.tail()}")
            last = {line["name"]: line for line in lines([*children.values()]) if "ages" in line}
            views = [
                {key for key, owner in last[name]["owners"].items() if owner in names}
                for name in names
                if name in last
            ]
            return set.intersection(*views) if len(views) == len(names) else set()

        eventually(lambda: owned([*SKEWS]) == partitions)
        children[victim].kill()
        survivors = [name for name in SKEWS if name != victim]
        eventually(lambda: owned(survivors) == partitions)
        for child in children.values():
            child.kill()
        return judged(lines([*children.values()]))


def judged(told: Sequence[Line]) -> Counter[str]:
    """Check every age that was seen, and every checkpoint.

    Raises:
        SkewError: see there.
    """
    seen: Counter[str] = Counter()
    for line in told:
        seen[line["what"]] += 1
    for line, key, owner, age in ages_of(told):
        seen["ages"] += 1
        renewed = max(
            (
                each["began"]
                for each in told
                if each["what"] == "claimed"
                and (each["name"], key in each["won"]) == (owner, True)
                and each["ended"] < line["began"]
            ),
            default=None,
        )
        oldest = None if renewed is None else line["ended"] - renewed + RESOLUTION
        if age < 0 or (oldest is not None and age > oldest):
            raise SkewError(f"{line['name']} saw partition {key} {age:.1f} s old, not {oldest}")
        seen["too old to keep"] += age > EXPIRES_AFTER
    numbers: dict[str, int] = {}
    for line in told:
        if line["what"] == "saved":
            before = numbers.get(line["partition"], -1)
            if line["number"] <= before:
                raise SkewError(f"{line}, after {before} was saved")
            numbers[line["partition"]] = line["number"]
    return seen


def ages_of(told: Sequence[Line]) -> Iterator[tuple[Line, str, str, float]]:
    """Yield every age in a list, with its partition and owner."""
    for line in told:
        for key, age in line.get("ages", {}).items():
            yield line, key, line["owners"][key], age
