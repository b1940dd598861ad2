"""Address of a hub that is read over AMQP, on the fast or the public path.

Both paths use the official client; see `ReadSettings.receive_path`.
"""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeVar

from azure.eventhub import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.connection_string import ConnectionString, host_of
from eventhub_checkpoints._shared.settings import require_seconds
from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.errors import InvalidCheckpointError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    Connection,
    HubQueries,
    Stream,
    check_types,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.events import EventStream
from eventhub_checkpoints.receive.amqp.fast import FastStream, LinkSource
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.receive.amqp.queries import ManagementQueries, explained, read_partition
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.credentials import (
    Credential,
    CredentialClass,
    CredentialName,
    checked_credential,
    credential_of,
    with_login_host,
)
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.sdk.fallback import (
    FastPathError,
    StalledError,
    UnreadableFrameError,
    report_fallback,
)

log = logging.getLogger(__name__)


class OnePartitionClient(EventHubConsumerClient):
    """Client that receives from one partition, which is known to exist.

    Before the client attaches a receiver, it lists the hub's partitions over a connection opened
    and closed for that purpose, while its receiving thread busy-waits. If it has the list already,
    it opens a receiver in 20 ms instead of 480 ms, with one connection instead of two (measured
    with the local hub).

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `claim_ownership`.
    """

    def __init__(self, *args: Any, partition_id: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._only = partition_id

    def get_partition_ids(self) -> list[str]:
        """Return the id of the one partition."""
        return [self._only]


Client = TypeVar("Client", EventHubConsumerClient, EventHubProducerClient)

STREAM_SETTINGS: Mapping[str, Any] = {"load_balancing_interval": 0.25}
"""Seconds. Receiving from one partition needs no load balancing, but after the client was stopped,
its load-balancing thread still sleeps this long."""

HUB_NAME = "the name of an event hub, such as orders"
NAMESPACE = "the host name of a namespace, such as NAMESPACE.servicebus.windows.net"


@dataclass(frozen=True, slots=True)
class HubAddress(Address):
    """Hub read over AMQP by one consumer group; its `repr` shows no secret.

    Attributes:
        fully_qualified_namespace: as the client and every checkpoint store spell it.
        eventhub_name: as typed.
        consumer_group: the group that reads the events.
        connection_string: includes the key or signature; "" where there is a credential.
        settings: further keywords of `EventHubConsumerClient`, for example
            `custom_endpoint_address`, `use_tls` and `transport_type`; also a `credential` object.
            Reads and sends are retried until their own time limit, whatever the client's settings
            of retries are; `retry_total`, if it is here, limits the retries in a row.
        credential: from which `credential_of` creates the credential when a client is opened. ""
            where there is a connection string or a credential object.
        unreachable_timeout: seconds for which a refused connection or an unknown host is tried
            again. None: until the time limit of the call.
    """

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str
    connection_string: str = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    credential: CredentialName = field(default="", repr=False)
    unreachable_timeout: float | None = None

    def __post_init__(self) -> None:
        check_types(self, self.connection_string, self.settings)
        if self.unreachable_timeout is not None:
            require_seconds("unreachable_timeout", self.unreachable_timeout)

    @classmethod
    def from_connection_string(
        cls,
        connection_string: str,
        consumer_group: str = DEFAULT_CONSUMER_GROUP,
        *,
        eventhub_name: str | None = None,
        **settings: Any,
    ) -> Self:
        """Create an address from a connection string.

        Args:
            connection_string: of the hub, or of the namespace if `eventhub_name` is passed.
            consumer_group: the group that reads the events.
            eventhub_name: takes precedence over the `EntityPath` of the connection string.
            settings: see the attribute.

        Raises:
            ConfigurationError: it is malformed or names no hub, or the consumer group is not a
                name. The message does not show the connection string.
        """
        parts = ConnectionString.of_hub(connection_string, eventhub_name)
        checked_name("eventhub_name", parts.hub, HUB_NAME)
        group = checked_group("consumer_group", consumer_group)
        return cls(parts.namespace, parts.hub, group, connection_string.strip(), dict(settings))

    @classmethod
    def from_credential(
        cls,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: CredentialName | Credential,
        consumer_group: str = DEFAULT_CONSUMER_GROUP,
        **settings: Any,
    ) -> Self:
        """Create an address from the hub's names and a credential.

        Args:
            fully_qualified_namespace: such as `NAMESPACE.servicebus.windows.net`.
            eventhub_name: as typed.
            credential: an object that the client accepts, such as `DefaultAzureCredential()`. An
                address that is sent to another process, for example to a Spark task, needs a
                string instead, such as the name of a class of azure-identity or a shared access
                signature, or a `CredentialClass` with arguments; see `credential_of`. A class of
                azure-identity logs in in the cloud of the namespace.
            consumer_group: the group that reads the events.
            settings: see the attribute.

        Raises:
            ConfigurationError: a name is empty, or the credential is not usable.
        """
        checked_name("fully_qualified_namespace", fully_qualified_namespace, NAMESPACE)
        checked_name("eventhub_name", eventhub_name, HUB_NAME)
        group = checked_group("consumer_group", consumer_group)
        namespace = host_of(fully_qualified_namespace)
        if not isinstance(credential, str | CredentialClass):
            checked_credential(credential)
            return cls(namespace, eventhub_name, group, "", {**settings, "credential": credential})
        credential = with_login_host(credential, namespace)
        credential_of(credential)
        return cls(namespace, eventhub_name, group, "", dict(settings), credential)

    def open_queries(self) -> HubQueries:
        return ManagementQueries(self)

    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        events = self.read_first(partition_id, start, inclusive, timeout)
        return events.numbers[0] if events else None

    def read_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> Columns | None:
        """Return the first event at an offset or time, perhaps with some after it.

        None as for `ask_first`.
        """
        client = self.open_receiving_client(partition_id)
        receiving = EventStream(client, partition_id, start, inclusive=inclusive, prefetch=1)
        try:
            with explained(self, partition_id), receiving as stream:
                return stream.next(timeout)
        except InvalidCheckpointError:
            return None

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """Open a stream as `Address` does, by the path in `ReadSettings.receive_path`.

        Raises:
            FastPathError: the path is `fast`, and it cannot be used.
        """
        connection = HubConnection(self)
        return HubStream(connection, partition_id, start, until, settings, is_owner=True)

    def connect(self) -> Connection:
        return HubConnection(self)

    def outage(self, what: str, seconds: float) -> Outage:
        """Return what waits out an outage of the hub; see `Outage`."""
        retry_total = self.settings.get("retry_total")
        return Outage(
            what, seconds, unreachable_timeout=self.unreachable_timeout, retry_total=retry_total
        )

    @property
    def chosen_credential(self) -> CredentialName | Credential:
        """Return the credential that `settings` hold, else the name of one."""
        chosen: CredentialName | Credential = self.settings.get("credential", self.credential)
        return chosen

    def open_client(self, **settings: Any) -> EventHubConsumerClient:
        """Open a client of the hub; the caller closes it. `settings` override the address's."""
        return self._open_consumer(EventHubConsumerClient, **settings)

    def open_receiving_client(self, partition_id: str) -> EventHubConsumerClient:
        """Open a client that receives from one partition; the caller closes it."""
        return self._open_consumer(OnePartitionClient, partition_id=partition_id)

    def open_producer(self, **settings: Any) -> EventHubProducerClient:
        """Open a client that sends to the hub; the caller closes it."""
        return self._open(EventHubProducerClient, {**self.settings, **settings})

    def _open_consumer(
        self, kind: type[EventHubConsumerClient], **own: Any
    ) -> EventHubConsumerClient:
        settings = {**STREAM_SETTINGS, **self.settings, **own}
        return self._open(kind, settings | {"consumer_group": self.consumer_group})

    def _open(self, kind: type[Client], settings: dict[str, Any]) -> Client:
        settings = {**settings, "eventhub_name": self.eventhub_name}
        if self.connection_string:
            return kind.from_connection_string(self.connection_string, **settings)
        settings["credential"] = credential_of(settings.get("credential", self.credential))
        return kind(self.fully_qualified_namespace, **settings)


class HubConnection(Connection):
    """Connection of the fast path; on the public one, each stream opens another.

    Args:
        address: the hub.

    Attributes:
        has_stalled: whether a link has stalled; then no further link is tried.
    """

    address: HubAddress

    def __init__(self, address: HubAddress) -> None:
        super().__init__(address)
        self.has_stalled = False
        self._links: LinkSource | None = None

    @property
    def links(self) -> LinkSource:
        """Source of links of the fast path."""
        if self._links is None:
            self._links = LinkSource(self.address.open_client(), self.address.consumer_group)
        return self._links

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """Open a stream as `HubAddress.open_stream` does.

        Raises:
            FastPathError: the path is `fast`, and it cannot be used.
        """
        return HubStream(self, partition_id, start, until, settings)

    @property
    def is_usable(self) -> bool:
        return self._links is None or self._links.is_usable

    def close(self) -> None:
        if self._links is not None:
            self._links.close()


class HubStream(Stream):
    """Stream on the fast path while that is possible, then on the public one.

    The columns are the same on both.

    Args:
        connection: of the hub.
        partition_id: which partition.
        start: sequence number of the first event.
        until: sequence number of the first event after the range.
        settings: their `receive_path` may prescribe one path.
        is_owner: whether the connection is closed with the stream.
    """

    def __init__(
        self,
        connection: HubConnection,
        partition_id: str,
        start: int,
        until: int,
        settings: ReadSettings,
        *,
        is_owner: bool = False,
    ) -> None:
        self._connection, self._address = connection, connection.address
        self._partition_id, self._settings, self._is_owner = partition_id, settings, is_owner
        self._next, self._until = start, until
        what = f"partition {partition_id} of {self._address}"
        self._outage = self._address.outage(what, settings.operation_timeout)
        self._unreadable = ""
        self._stream: Stream
        is_public = settings.receive_path == "public" or (
            settings.receive_path == "auto" and connection.has_stalled
        )
        try:
            self._stream = self._public() if is_public else self._fast()
        except FastPathError as error:
            if settings.receive_path == "fast":
                raise
            self._stream = self._fall_back(error)

    @property
    def trouble(self) -> str:
        # The client cannot read the event either, and its own error does not say that.
        return self._unreadable or self._stream.trouble

    @property
    def is_away(self) -> bool:
        return self._stream.is_away

    def next(self, timeout: float) -> Columns | None:
        with explained(self._address, self._partition_id):
            self._stream.portion = self.portion
            try:
                columns = self._stream.next(timeout)
            except FastPathError as error:
                if self._settings.receive_path == "fast":
                    raise
                self._stream.close()
                self._stream = self._fall_back(error)
                self._stream.portion = self.portion
                columns = self._stream.next(timeout)
            except EventHubError as error:
                wait = self._outage.pause(error)
                if wait is None:
                    raise
                self._stream.close()
                time.sleep(min(wait, timeout))
                self._stream = self._public()
                columns = None
        if columns:
            self._outage.end()
        if columns and columns.numbers[-1] >= self._next:
            self._next, self._unreadable = columns.numbers[-1] + 1, ""
        return columns

    def close(self) -> None:
        self._stream.close()
        if self._is_owner:
            self._connection.close()

    def _fast(self) -> Stream:
        links, begin, end = self._connection.links, self._next, self._until
        return FastStream(
            links, self._partition_id, begin, end, self._settings, self._outage, self._ask_newest
        )

    def _ask_newest(self) -> Future[int]:
        """Ask the hub for its newest event, through the public API: independent of the link."""

        def newest() -> int:
            properties = read_partition(self._address, self._partition_id)
            return -1 if properties.is_empty else properties.next_sequence_number - 1

        return in_daemon_thread(newest)

    def _public(self) -> Stream:
        client, start = self._address.open_receiving_client(self._partition_id), self._next
        prefetch = max(1, min(self._settings.prefetch, self._until - start))
        return EventStream(
            client,
            self._partition_id,
            start,
            prefetch=prefetch,
            until=self._until,
            owner_level=self._settings.owner_level,
            outage=self._outage,
        )

    def _fall_back(self, error: FastPathError) -> Stream:
        """Open the public path; log the reason, as `report_fallback` does."""
        self._connection.has_stalled |= isinstance(error, StalledError)
        slow = "events are received through the client's public API, which is slower"
        report_fallback(log, error, "receiving", slow)
        if isinstance(error, UnreadableFrameError):
            # The client may be unable to read the frame as well, and would not report that.
            self._unreadable = str(error)
        return self._public()
