"""`LocalHub`: a server in a thread, its addresses, operations on its hubs, and faults."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from eventhub_checkpoints.amqp.performatives import Error
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub import arguments
from eventhub_checkpoints.localhub.events import (
    Event,
    StoredEvent,
    make_events,
    now,
    read_events,
    read_stored,
)
from eventhub_checkpoints.localhub.hubs import Hubs
from eventhub_checkpoints.localhub.server import BackgroundLoop, RefusedLink, Server
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

T = TypeVar("T")

KEY_NAME, KEY = "RootManageSharedAccessKey", "any-key-will-do"
NAMESPACE = "localhub.servicebus.windows.net"
IDLE_TIMEOUT = 240.0
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_AMQPS_PORT = 5671


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """Properties of a partition.

    Attributes:
        partition_id: which partition.
        first_sequence_number: of the oldest retained event; of the next one if there is none.
        last_sequence_number: of the newest event ever, -1 before the first.
        last_offset: of the same event, "-1" before the first and where it is not known.
        last_enqueued_time: of the same event, in float seconds since the epoch; 0 before the first.
        is_empty: whether no event is retained.
    """

    partition_id: str
    first_sequence_number: int
    last_sequence_number: int
    last_offset: str
    last_enqueued_time: float
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Receiver:
    """Receiver that is attached now.

    Attributes:
        consumer_group: as spelled by the receiver.
        partition_id: which partition it reads.
        name: its link's name.
        container_id: its connection's identifier; azure-eventhub puts its consumer's name here.
        epoch: its owner level, None without one.
        next_sequence_number: of the next event that it gets.
    """

    consumer_group: str
    partition_id: str
    name: str
    container_id: str
    epoch: int | None
    next_sequence_number: int


class LocalHub:
    """Local Event Hubs namespace for experiments and tests; never for production.

    It keeps events in memory and admits every client, whatever its key, unless `accept_keys` names
    the keys. Use it as a context manager, or call `start` and `stop`. Every other method may be
    called from any thread.

    A hub or partition that does not exist raises `LookupError`, an invalid argument `ValueError`,
    and a hub that is not running `RuntimeError`.

    Args:
        hubs: names of the hubs, each with its number of partitions; at least one.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        consumer_groups: the groups of every hub in addition to `$Default`; None admits any name. A
            map has those of each hub by its name.
        tls: listen with a certificate of an authority created for this run, see `ca_file`.
        namespace: the namespace that `client_arguments` passes to clients.
        idle_timeout: seconds of silence after which a client is disconnected.
        accept_keys: see the method `accept_keys`.

    Raises:
        ValueError: an argument is invalid, for instance a hub's name.
    """

    def __init__(
        self,
        hubs: Mapping[str, int],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        consumer_groups: Iterable[str] | Mapping[str, Iterable[str]] | None = None,
        tls: bool = False,
        namespace: str = NAMESPACE,
        idle_timeout: float = IDLE_TIMEOUT,
        accept_keys: Iterable[str] | None = None,
    ) -> None:
        arguments.check_settings(host, port, namespace, idle_timeout)
        arguments.check_flag("tls", tls)
        self.namespace = namespace
        self._bind = (host, port)
        self.tls = tls
        self._authority: SelfMadeAuthority | None = None
        self._loop: BackgroundLoop | None = None
        self._port = 0
        self._server = Server(Hubs(hubs, consumer_groups), idle_timeout)
        self._server.keys = arguments.read_keys(accept_keys)

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
            raise RuntimeError("the local hub has no certificate: create it with tls=True")
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
                f"with TLS a connection string always means port {_AMQPS_PORT}, but the local "
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
        arguments.check_text("hub", hub)
        arguments.check_names(namespace=namespace)
        # Imported here, because the hub itself does not need the client.
        from azure.core.credentials import AzureNamedKeyCredential
        from azure.eventhub import TransportType

        options: dict[str, Any] = {
            "fully_qualified_namespace": namespace or self.namespace,
            "eventhub_name": hub,
            "credential": AzureNamedKeyCredential(KEY_NAME, KEY),
            "custom_endpoint_address": self.endpoint,
            "transport_type": TransportType.Amqp,
        }
        if self.tls:
            return options | {"connection_verify": self.ca_file}
        return options | {"use_tls": False}

    def publish(
        self,
        hub: str,
        partition_id: str,
        events: Iterable[bytes | str],
        *,
        properties: Mapping[str, Any] | None = None,
        partition_key: str | None = None,
        enqueued_time: float | datetime | None = None,
    ) -> range:
        """Append events to a partition, without a client; return their sequence numbers.

        Args:
            hub: the hub's name.
            partition_id: for instance "0".
            events: the bodies; strings are stored as UTF-8.
            properties: application properties of every event.
            partition_key: the key of every event; it does not choose the partition.
            enqueued_time: float seconds since the epoch, or an aware datetime; now if None.
                An event is never older than the one before it.
        """
        arguments.check_properties(properties)
        if partition_key is not None:
            arguments.check_key(partition_key)
        stored = make_events(arguments.read_bodies(events), properties, partition_key)
        return self._append(hub, partition_id, stored, enqueued_time)

    def publish_messages(
        self,
        hub: str,
        partition_id: str,
        messages: Iterable[bytes],
        *,
        enqueued_time: float | datetime | None = None,
    ) -> range:
        """Append messages that are already encoded in the form in which AMQP producers send them.

        Args:
            hub: the hub's name.
            partition_id: for instance "0".
            messages: each the payload of one transfer.
            enqueued_time: as in `publish`.
        """
        try:
            encoded = arguments.read_messages(messages)
            stored = [event for message in encoded for event in read_events(message, 0)]
        except CodecError as error:
            raise ValueError(f"messages contains an invalid AMQP message: {error}") from error
        return self._append(hub, partition_id, stored, enqueued_time)

    def _append(
        self, hub: str, partition_id: str, events: list[Event], time: float | datetime | None
    ) -> range:
        enqueued = now() if time is None else arguments.read_time(time)
        return self._call(lambda server: server.log(hub, partition_id).append(events, enqueued))

    def events(self, hub: str, partition_id: str | None = None) -> list[StoredEvent]:
        """Return the retained events of a partition, or of all in turn; the oldest first.

        Args:
            hub: the hub's name.
            partition_id: which partition; None for all.
        """

        def work(server: Server) -> list[tuple[str, bytes]]:
            ids = server.find(hub).partition_ids if partition_id is None else [partition_id]
            return [(each, payload) for each in ids for payload in server.log(hub, each).payloads]

        return [read_stored(each, payload) for each, payload in self._call(work)]

    def partition_ids(self, hub: str) -> list[str]:
        """Return the partition ids of a hub, in order."""
        return self._call(lambda server: server.find(hub).partition_ids)

    def partition_properties(self, hub: str, partition_id: str) -> PartitionProperties:
        """Return the properties of a partition."""

        def work(server: Server) -> PartitionProperties:
            log = server.log(hub, partition_id)
            return PartitionProperties(
                partition_id=partition_id,
                first_sequence_number=log.first,
                last_sequence_number=log.end - 1,
                last_offset=log.last_offset,
                last_enqueued_time=log.last_time / 1000,
                is_empty=log.first == log.end,
            )

        return self._call(work)

    def trim(
        self,
        hub: str,
        partition_id: str | None = None,
        before: int | None = None,
        *,
        forget_offset: bool = False,
    ) -> int:
        """Drop old events, as the service does when they are older than its retention.

        Args:
            hub: the hub's name.
            partition_id: which partition; None for all.
            before: sequence number of the first event to keep; None drops all.
            forget_offset: a partition without events reports the last offset "-1", as the service
                may; the last sequence number stays.

        Returns:
            How many events were dropped.
        """
        arguments.check_flag("forget_offset", forget_offset)
        if before is not None:
            arguments.check_count("before", before, least=0)

        def work(server: Server) -> int:
            ids = server.find(hub).partition_ids if partition_id is None else [partition_id]
            logs = [server.log(hub, each) for each in ids]
            return sum(
                log.trim(log.end if before is None else before, forget_offset) for log in logs
            )

        return self._call(work)

    def replicate(self, hub: str) -> None:
        """Change a hub's offsets to those of a namespace with geo-replication, permanently.

        They are opaque strings, and an earlier decimal offset is refused with
        `com.microsoft:georeplication:invalid-offset`. Sequence numbers stay the same.
        """
        self._call(lambda server: server.find(hub).replicate())

    def create(self, hub: str, partitions: int) -> None:
        """Create another hub.

        Raises:
            ValueError: the name is taken, see `recreate`.
        """
        self._call(lambda server: server.hubs.create(hub, partitions))

    def recreate(self, hub: str, partitions: int | None = None) -> None:
        """Delete a hub and create it again: sequence numbers and offsets start at 0."""

        def work(server: Server) -> None:
            old = server.find(hub)
            count = len(old.partitions) if partitions is None else partitions
            server.hubs.recreate(old.name, count)

        self._call(work)

    def delete(self, hub: str) -> None:
        """Delete a hub; its receivers are detached."""
        self._call(lambda server: server.hubs.delete(server.find(hub).name))

    def add_partitions(self, hub: str, count: int) -> list[str]:
        """Add empty partitions to a hub and return their ids."""
        return self._call(lambda server: server.find(hub).add_partitions(count))

    def receivers(self, hub: str) -> list[Receiver]:
        """Return the receivers that are attached to a hub, ordered by partition."""

        def work(server: Server) -> list[Receiver]:
            links = [link for readers in server.find(hub).readers.values() for link in readers]
            links.sort(key=lambda link: (int(link.partition_id), link.name))
            return [
                Receiver(
                    consumer_group=link.group,
                    partition_id=link.partition_id,
                    name=link.name,
                    container_id=link.container_id,
                    epoch=link.epoch,
                    next_sequence_number=link.cursor,
                )
                for link in links
            ]

        return self._call(work)

    def drop_connections(self) -> int:
        """Drop all connections, as a broken network does; return how many there were."""
        return self._call(Server.drop_connections)

    def refuse_connections(self, refuse: bool = True) -> None:
        """Drop every new connection immediately, until called with False."""
        arguments.check_flag("refuse", refuse)
        self._set_fault("refusing", refuse)

    def refuse_tokens(self, refuse: bool = True) -> None:
        """Refuse every token, as the service refuses a wrong key, until called with False."""
        arguments.check_flag("refuse", refuse)
        self._set_fault("refusing_tokens", refuse)

    def accept_keys(self, keys: Iterable[str] | None) -> None:
        """Accept only tokens that are signed with one of these keys and have not expired.

        As with the service, a connection keeps its token until it expires, also if its key is
        removed; then its links are detached, unless the client has renewed it. An Entra token is
        accepted until it expires.

        Args:
            keys: of shared access policies, whatever their names; None: every token is accepted.
        """
        accepted = arguments.read_keys(keys)
        self._call(lambda server: setattr(server, "keys", accepted))

    def delay(self, seconds: float) -> None:
        """Delay everything that is sent from now on; 0 ends the delay.

        The order of frames and the throughput stay the same: this adds latency, not a limit.
        """
        arguments.check_delay(seconds)
        self._set_fault("delay", seconds)

    def detach_receivers(
        self,
        hub: str,
        *,
        partition_id: str | None = None,
        consumer_group: str | None = None,
        condition: str = "amqp:link:detach-forced",
        description: str = "The link was detached on request.",
    ) -> int:
        """Detach receivers with a condition; return how many.

        Args:
            hub: the hub's name.
            partition_id: only its receivers; None means all.
            consumer_group: only its receivers; None means all.
            condition: for instance "amqp:link:stolen" or "com.microsoft:server-busy".
            description: the description that the client shows.
        """
        arguments.check_text("condition", condition)
        arguments.check_names(
            partition_id=partition_id, consumer_group=consumer_group, description=description
        )
        error = Error(condition=condition, description=description)
        return self._call(
            lambda server: server.find(hub).detach_readers(error, partition_id, consumer_group)
        )

    def mute_receivers(
        self, hub: str, *, partition_id: str | None = None, consumer_group: str | None = None
    ) -> int:
        """Deliver nothing more to the receivers that are attached now; return how many.

        They stay attached, and nothing tells them. A receiver that attaches again gets everything.

        Args:
            hub: the hub's name.
            partition_id: only its receivers; None means all.
            consumer_group: only its receivers; None means all.
        """
        arguments.check_names(partition_id=partition_id, consumer_group=consumer_group)
        return self._call(
            lambda server: server.find(hub).mute_readers(partition_id, consumer_group)
        )

    def refuse_links(
        self, count: int, condition: str, description: str = "The link was refused on request."
    ) -> None:
        """Refuse the next `count` links that any client attaches; 0 ends it."""
        self._set_errors("refusals", count, condition, description)

    def reject_sends(
        self, count: int, condition: str, description: str = "The delivery was refused on request."
    ) -> None:
        """Refuse the next `count` deliveries of producers, and store nothing of them; 0 ends it.

        Args:
            count: how many.
            condition: for instance "com.microsoft:server-busy", as the service throttles.
            description: the description that the client shows.
        """
        self._set_errors("rejections", count, condition, description)

    def lose_answers(self, count: int) -> None:
        """Store the next `count` deliveries of producers, and disconnect instead of answering."""
        arguments.check_count("count", count, least=0, most=arguments.MAX_FAULTS)
        self._set_fault("lost_answers", count)

    def _set_errors(self, name: str, count: int, condition: str, description: str) -> None:
        arguments.check_count("count", count, least=0, most=arguments.MAX_FAULTS)
        arguments.check_text("condition", condition)
        arguments.check_names(description=description)
        error = Error(condition=condition, description=description)
        self._set_fault(name, deque([error] * count))

    def _set_fault(self, name: str, value: object) -> None:
        self._call(lambda server: setattr(server.faults, name, value))

    def end_faults(self) -> None:
        """End every fault that is in effect, except for receivers that are muted."""
        self._call(lambda server: server.faults.end())

    def refused_links(self) -> list[RefusedLink]:
        """Return the links refused by a fault or by the service's rules, oldest first.

        The aio client retries silently, so this is where a test can see a refusal.
        """
        return self._call(lambda server: list(server.faults.journal))

    def connections(self) -> int:
        """Return the number of open connections."""
        return self._call(lambda server: len(server.connections))
