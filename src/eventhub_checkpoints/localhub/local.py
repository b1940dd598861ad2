"""`LocalHub`: a server in a thread, with start, stop and addresses for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from eventhub_checkpoints.localhub.arguments import check_address, check_idle_timeout, check_text
from eventhub_checkpoints.localhub.disturbances import Disturbances
from eventhub_checkpoints.localhub.hubs import Hubs
from eventhub_checkpoints.localhub.operations import Operations
from eventhub_checkpoints.localhub.server import BackgroundLoop, Server
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

KEY_NAME, KEY = "RootManageSharedAccessKey", "any-key-will-do"
NAMESPACE = "localhub.servicebus.windows.net"
IDLE_TIMEOUT = 240.0
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_AMQPS_PORT = 5671


class LocalHub(Operations, Disturbances):
    """Local Event Hubs namespace for experiments and tests; never for production.

    It keeps events in memory and admits every client, whatever its key. Use it as a context
    manager, or call `start` and `stop`.

    Args:
        hubs: names of the hubs, each with its number of partitions; at least one.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        consumer_groups: the groups of every hub in addition to `$Default`; None admits any name.
        tls: listen with a certificate of an authority created for this run, see `ca_file`.
        namespace: the namespace that `client_arguments` passes to clients.
        idle_timeout: seconds of silence after which a client is disconnected.

    Raises:
        ValueError: an argument is invalid, for instance a hub's name.
    """

    def __init__(
        self,
        hubs: Mapping[str, int],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        consumer_groups: Iterable[str] | None = None,
        tls: bool = False,
        namespace: str = NAMESPACE,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        check_address(host, port)
        check_text("namespace", namespace)
        check_idle_timeout(idle_timeout)
        self.namespace = namespace
        self._bind = (host, port)
        self.tls = tls
        self._authority: SelfMadeAuthority | None = None
        self._loop: BackgroundLoop | None = None
        self._port = 0
        self._server = Server(Hubs(hubs, consumer_groups), idle_timeout)

    def start(self) -> Self:
        """Start listening; a second run has the port and the events of the first.

        Raises:
            OSError: the address is not available.
            RuntimeError: it is running already, or `tls` is set and `openssl` is missing.
            ValueError: the host is not a valid host name.
        """
        if self._loop is not None:
            raise RuntimeError(f"the local hub is running already, on port {self._port}")
        if self.tls:
            self._authority = SelfMadeAuthority(
                [self.host, "localhost", "127.0.0.1", "::1", self.namespace]
            )
        context = None if self._authority is None else self._authority.context()
        self._loop = BackgroundLoop("localhub")
        try:
            self._port = self._loop.run(
                self._server.start(self._bind[0], self._port or self._bind[1], context)
            )
        except BaseException:
            self._end()
            raise
        return self

    def stop(self) -> None:
        """End all connections and stop listening; does nothing if it is not running."""
        if self._loop is not None:
            try:
                self._loop.run(self._server.stop())
            finally:
                self._end()

    def _end(self) -> None:
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        if self._authority is not None:
            self._authority.close()
            self._authority = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _call(self, function: Callable[[Server], T]) -> T:
        return self._running().call(lambda: function(self._server))

    def _running(self) -> BackgroundLoop:
        if self._loop is None:
            raise RuntimeError("the local hub is not running: use it in a with statement")
        return self._loop

    @property
    def host(self) -> str:
        """Host that clients connect to."""
        return _ANY_ADDRESS.get(self._bind[0], self._bind[0])

    @property
    def port(self) -> int:
        """Port that clients connect to."""
        self._running()
        return self._port

    @property
    def endpoint(self) -> str:
        """Address for a client's `custom_endpoint_address`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"sb://{host}:{self.port}"

    @property
    def ca_file(self) -> str:
        """PEM file of the authority that clients have to trust; it is deleted by `stop`.

        Raises:
            RuntimeError: the hub does not run with TLS.
        """
        if self._authority is None:
            raise RuntimeError("there is no certificate: the local hub does not run with TLS")
        return self._authority.ca_file

    def connection_string(self, hub: str) -> str:
        """Return the connection string for `from_connection_string`.

        It has "host:port" as the client's namespace, and a port works only without TLS; see
        `client_arguments` for a constant namespace.

        Raises:
            LookupError: there is no such hub.
            RuntimeError: the hub runs with TLS on another port than 5671.
        """
        self._call(lambda server: server.find(hub))
        if self.tls and self.port != _AMQPS_PORT:
            raise RuntimeError(
                f"with TLS a connection string always means port {_AMQPS_PORT}, and the local "
                f"hub is on {self.port}: use client_arguments, or port={_AMQPS_PORT}"
            )
        emulator = "" if self.tls else "UseDevelopmentEmulator=true;"
        return (
            f"Endpoint={self.endpoint};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY};"
            f"{emulator}EntityPath={hub}"
        )

    def client_arguments(self, hub: str, namespace: str | None = None) -> dict[str, Any]:
        """Return keyword arguments for the clients of azure-eventhub, sync and aio.

        Stores then see `namespace` in keys and paths, whatever the port is; a consumer also needs
        `consumer_group`.
        """
        # Imported here, because the hub itself does not need the client.
        from azure.core.credentials import AzureNamedKeyCredential
        from azure.eventhub import TransportType

        arguments: dict[str, Any] = {
            "fully_qualified_namespace": namespace or self.namespace,
            "eventhub_name": hub,
            "credential": AzureNamedKeyCredential(KEY_NAME, KEY),
            "custom_endpoint_address": self.endpoint,
            "transport_type": TransportType.Amqp,
        }
        if self.tls:
            return arguments | {"connection_verify": self.ca_file}
        return arguments | {"use_tls": False}
