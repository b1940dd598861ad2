"""Read with an official client in which one private name was renamed.

    python tools/renamed_part.py                  each name that is used, one by one
    python tools/renamed_part.py flow listen      only these

For each name, the installed azure-eventhub is copied and the name renamed wherever it is used, so
the client itself works as before. A separate process reads a range with the copy: by the public
path, by `auto`, which has to return equal rows and to log once what is missing, and by `fast`,
which has to raise an error with the same message. It also queries the hub twice, which has to
return its partition, and to log once what is missing. All this only where the name is used.
"""

import argparse
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import azure.eventhub

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings, list_partitions
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.sdk.fallback import FastPathError
from eventhub_checkpoints.sdk.private_names import QUERIES, RECEIVE, names_of
from waiting import LIMIT

BY_FAST_PATH, BY_QUERIES = set(names_of(RECEIVE)), set(names_of(QUERIES))

TRANSPORT = ("_transport.py", "sasl.py")
ORDINARY = {"close": TRANSPORT, "read": TRANSPORT, "write": TRANSPORT, "source": ("client.py",)}
"""Names that other objects have too: renamed in these modules, and where the transport is used."""


def copy_with_renamed(name: str, folder: Path) -> None:
    """Copy the client into a folder for PYTHONPATH, with one of its names changed."""
    package = Path(azure.eventhub.__file__).parent
    copy = folder / "azure" / "eventhub"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("aio", "__pycache__"))
    shutil.copytree(package / "aio", copy / "aio")
    # A module may have the same name: `from ._pyamqp._connection import` is left unchanged.
    everywhere = re.compile(rf"(?<=[\w)\]]\.){name}\b(?! import)|(?<=def ){name}\b")
    inside = re.compile(rf"(?<=self\.){name}\b|(?<=def ){name}\b")
    outside = re.compile(rf"(?<=_transport\.){name}\b")
    for file in copy.rglob("*.py"):
        if name not in ORDINARY:
            pattern = everywhere
        elif file.parent.name == "_pyamqp":
            pattern = inside if file.name in ORDINARY[name] else outside
        else:
            continue
        text = file.read_text(encoding="utf-8")
        file.write_text(pattern.sub(f"{name}_renamed", text), encoding="utf-8")


def read_with_renamed(name: str) -> dict[str, object]:
    """Return the results of a process in which the copy precedes everything else."""
    with tempfile.TemporaryDirectory() as folder:
        copy_with_renamed(name, Path(folder))
        path = os.pathsep.join([folder, *sys.path])
        done = subprocess.run(
            [sys.executable, __file__, "--read"],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    if done.returncode:
        return {"failed": done.stderr[-2000:]}
    found: dict[str, object] = json.loads(done.stdout)
    return found


def read_all_ways() -> dict[str, object]:
    """Return the rows and partitions, the log messages, and the error of `fast`."""
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("eventhub_checkpoints").addHandler(handler)
    with LocalHub({"orders": 1}) as hub:
        hub.publish("orders", "0", [f"event {number}" for number in range(100)])
        address = HubAddress.from_connection_string(hub.connection_string("orders"))
        rows = {way: read(address, way) for way in ("public", "auto")}
        read(address, "auto")
        error = ""
        try:
            read(address, "fast")
        except FastPathError as raised:
            error = str(raised)
        partitions = [list_partitions(address) for _ in range(2)]
    return {
        "partitions": partitions,
        "rows": len(rows["public"]),
        "equal": rows["auto"] == rows["public"],
        "told": [one for one in told if "public API" in one],
        "error": error,
    }


def read(address: HubAddress, path: ReceivePath) -> list[object]:
    """Return rows 10 to 90."""
    settings = ReadSettings(receive_path=path, receiver_timeout=LIMIT)
    with closing(read_range(address, OffsetRange("0", 10, 90), settings)) as batches:
        return [row for batch in batches for row in batch.to_pylist()]


def is_as_it_should_be(name: str, found: dict[str, object]) -> bool:
    """Return whether the results are equal, and a missing name was logged once and raised."""
    told = found.get("told")
    return (
        found.get("rows") == 80
        and found.get("equal") is True
        and found.get("partitions") == [["0"], ["0"]]
        and isinstance(told, list)
        and len(told) == (name in BY_FAST_PATH) + (name in BY_QUERIES)
        and all(f".{name}" in each for each in told)
        and (f".{name}" in str(found.get("error"))) == (name in BY_FAST_PATH)
    )


def main() -> int:
    """Run all names or those on the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        print(json.dumps(read_all_ways()))
        return 0
    failures = 0
    for name in chosen.names or sorted(BY_FAST_PATH | BY_QUERIES):
        found = read_with_renamed(name)
        good = is_as_it_should_be(name, found)
        failures += not good
        print(f"{name}: {'falls back, says so once, equal results' if good else found}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
