"""Event hub on the simulated clock, read by the client of azure-eventhub for asyncio.

The client is the real one: its load balancing, its tasks and its buffers run as they are. Only the
AMQP link is replaced, by one that takes events from lists.
"""

import asyncio
import time
from collections.abc import Iterable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from azure.eventhub._constants import PROP_OFFSET, PROP_SEQ_NUMBER, PROP_TIMESTAMP
from azure.eventhub._pyamqp.error import AMQPConnectionError, AMQPLinkError, ErrorCondition
from azure.eventhub._pyamqp.message import Message
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.aio._consumer_async import EventHubConsumer
from azure.eventhub.exceptions import ConnectError

NAMESPACE, HUB = "simulated.servicebus.windows.net", "orders"
EVENT_BYTES = 100
OPENING = 0.1
"""Seconds until a link is open, unless a test sets others."""
ARGUMENT_ERROR = b"com.microsoft:argument-error"
IDLE = 1.0
"""Seconds between two looks of a link whether it was closed."""


def message(
    number: int, body: bytes, properties: dict[str, str] | None, enqueued_time: float
) -> Message:
    """Return an event as it arrives."""
    return Message(
        data=[body],
        message_annotations={
            PROP_SEQ_NUMBER: number,
            PROP_OFFSET: str(number * EVENT_BYTES).encode(),
            PROP_TIMESTAMP: round(enqueued_time * 1000),
        },
        application_properties={
            key.encode(): value.encode() for key, value in (properties or {}).items()
        },
    )


class SimulatedLink:
    """As much of a receive client of AMQP as the SDK's receiver calls."""

    def __init__(self, receiver: "SimulatedReceiver", first: int) -> None:
        self._receiver = receiver
        self._hub = receiver.hub
        self._next = first
        self.partition_id = receiver.partition_id
        self.consumer_group = receiver.consumer_group
        self.opened_at = time.monotonic()
        self.is_mute = receiver.hub.opens_mute
        self.error: Exception | None = None
        self.changed = asyncio.Event()

    def begin(self, position: object) -> None:
        """Begin at a position.

        Raises:
            AMQPLinkError: it is not one of the hub.
        """
        events = self._hub.events[self.partition_id]
        try:
            self._next = first_of(position, events)
        except ValueError:
            self._hub.refusals += 1
            raise AMQPLinkError(
                condition=ARGUMENT_ERROR,
                description=f"The supplied offset '{position}' is invalid. The last offset in the "
                f"system is '{(len(events) - 1) * EVENT_BYTES}'",
            ) from None

    async def do_work_async(self, batch: int) -> bool:
        """Deliver what there is, or wait a moment for more."""
        self.changed.clear()
        if self.error is not None:
            raise self.error
        events = self._hub.events[self.partition_id]
        if self.is_mute or self._next >= len(events):
            try:
                async with asyncio.timeout(IDLE):
                    await self.changed.wait()
            except TimeoutError:
                pass
            return True
        for event in events[self._next : self._next + batch]:
            await self._receiver.deliver(event)
            self._next += 1
        return True

    def fail(self, error: Exception) -> None:
        self.error = error
        self.changed.set()

    async def close_async(self) -> None:
        self._hub.links.discard(self)
        self._hub.history.append((time.monotonic(), "detached", self.partition_id))
        if look := self._hub.keep_alive:
            await asyncio.sleep(look - (time.monotonic() - self.opened_at) % look)


class SimulatedReceiver(EventHubConsumer):
    """The SDK's receiver of a partition, over a simulated link."""

    hub: "SimulatedHub"
    consumer_group: str
    partition_id: str

    async def _open(self) -> None:
        if self.running:
            return
        await asyncio.sleep(self.hub.opening)
        if self.hub.is_away:
            raise AMQPConnectionError(ErrorCondition.SocketError, description="the hub is away")
        link = SimulatedLink(self, 0)
        self._handler = link  # type: ignore[assignment]
        link.begin(self._offset)
        if self._owner_level is not None:
            self.hub.disconnect(self.partition_id, self.consumer_group)
        self.hub.links.add(link)
        self.hub.history.append((time.monotonic(), "attached", self.partition_id))
        self.running = True

    async def deliver(self, event: Message) -> None:
        await self._amqp_transport.message_received_async(self, event)


def first_of(position: object, events: list[Message]) -> int:
    """Return the index of the first event after a start position: a number, offset or time."""
    if position in ("-1", -1):
        return 0
    if position == "@latest":
        return len(events)
    if isinstance(position, datetime):
        after = round(position.timestamp() * 1000)
        times = [(event.message_annotations or {})[PROP_TIMESTAMP] for event in events]
        return sum(each <= after for each in times)
    if isinstance(position, int):
        return position + 1
    return int(str(position)) // EVENT_BYTES + 1


class SimulatedClient(EventHubConsumerClient):
    """The SDK's client; what it asks the hub is answered at once."""

    hub: "SimulatedHub"

    def _create_consumer(self, *args: Any, **kwargs: Any) -> EventHubConsumer:
        receiver = super()._create_consumer(*args, **kwargs)
        receiver.__class__ = SimulatedReceiver  # type: ignore[type-abstract]
        assert isinstance(receiver, SimulatedReceiver)
        receiver.hub = self.hub
        receiver.consumer_group, receiver.partition_id = args[:2]
        return receiver

    async def get_partition_ids(self) -> list[str]:
        self.hub.answer()
        return list(self.hub.events)

    async def get_partition_properties(self, partition_id: str) -> dict[str, Any]:
        self.hub.answer()
        last = len(self.hub.events[partition_id]) - 1
        return {
            "id": partition_id,
            "last_enqueued_sequence_number": last,
            "last_enqueued_offset": "-1" if last < 0 else str(last * EVENT_BYTES),
            "is_empty": last < 0,
        }


class SimulatedHub:
    """Event hub with a list of events for each partition, numbered from 0.

    Attributes:
        events: the events of each partition.
        links: that are open.
        history: when a link was `attached` or `detached`, and of which partition.
        is_away: whether it neither accepts links nor answers.
        refusals: number of links that were refused.
        opening: seconds until a link is open.
        keep_alive: seconds between two looks of the client's task that keeps a link alive; closing
            the link waits for its next look. 0: closing takes no time.
        opens_mute: whether links that are opened deliver nothing.
    """

    host, port = NAMESPACE, 5671

    def __init__(self, partitions: int = 1) -> None:
        self.events: dict[str, list[Message]] = {str(number): [] for number in range(partitions)}
        self.links: set[SimulatedLink] = set()
        self.history: list[tuple[float, str, str]] = []
        self.is_away = False
        self.refusals = 0
        self.opening = OPENING
        self.keep_alive = 0.0
        self.opens_mute = False

    @property
    def client(self) -> type[SimulatedClient]:
        """The class of the clients that read this hub."""
        return type("Client", (SimulatedClient,), {"hub": self})

    def connection_string(self, eventhub: str) -> str:
        """A connection string, whose key nobody looks at."""
        key = "SharedAccessKeyName=any;SharedAccessKey=any"
        return f"Endpoint=sb://{NAMESPACE}/;{key};EntityPath={eventhub}"

    def answer(self) -> None:
        """Do nothing, unless the hub is away.

        Raises:
            ConnectError: it is.
        """
        if self.is_away:
            raise ConnectError("the hub is away")

    def publish(
        self,
        eventhub: str,
        partition_id: str,
        bodies: Iterable[str],
        properties: dict[str, str] | None = None,
        enqueued_time: datetime | None = None,
    ) -> None:
        """Add events."""
        events = self.events[partition_id]
        at = time.time() if enqueued_time is None else enqueued_time.timestamp()
        for body in bodies:
            events.append(message(len(events), body.encode(), properties, at))
        for link in self.links:
            link.changed.set()

    def add_partitions(self, eventhub: str, count: int) -> None:
        """Add empty partitions."""
        for _ in range(count):
            self.events[str(len(self.events))] = []

    def recreate(self, eventhub: str) -> None:
        """Delete the hub with its events, and create it again."""
        for events in self.events.values():
            events.clear()
        self.drop_connections()

    def partition_properties(self, eventhub: str, partition_id: str) -> Any:
        """What the local hub says of the last event."""
        count = len(self.events[partition_id])
        return SimpleNamespace(last_offset=(count - 1) * EVENT_BYTES if count else -1)

    def receivers(self, eventhub: str) -> list[SimulatedLink]:
        """The links that are open."""
        return list(self.links)

    def mute_receivers(self, eventhub: str, partition_id: str | None = None) -> int:
        """Have links that are open now deliver nothing any more; return their number."""
        muted = [each for each in self.links if partition_id in (None, each.partition_id)]
        for link in muted:
            link.is_mute = True
        return len(muted)

    def disconnect(self, partition_id: str, consumer_group: str) -> None:
        """End the links of a partition and group because of another with an owner level."""
        for link in self.links:
            if (link.partition_id, link.consumer_group) == (partition_id, consumer_group):
                link.fail(
                    AMQPLinkError(ErrorCondition.LinkStolen, description="another link was opened")
                )

    def detach_receivers(self, eventhub: str, condition: str) -> None:
        """End all links with an error."""
        for link in self.links:
            link.fail(AMQPLinkError(condition=condition.encode(), description="by the test"))

    def drop_connections(self) -> int:
        """End all links as a connection that is lost; return their number."""
        for link in self.links:
            link.fail(AMQPConnectionError(ErrorCondition.SocketError, description="by the test"))
        return len(self.links)

    def refuse_connections(self, refuse: bool = True) -> None:
        """Be away, or back."""
        self.is_away = refuse
