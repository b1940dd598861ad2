"""Queries to a hub's management node, over one connection.

The client opens a connection for each management request, and sleeps between the steps of opening
it: a request takes 0.36 s. This link stays open, and sends any number of requests at once. Where
the client has changed, the hub is queried through the client's public API.

Source: azure-eventhub 5.12.0 and 5.15.1, `_client_base.py` (`_management_request`),
`_pyamqp/management_link.py`.
"""

import time
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.messages import (
    APPLICATION_PROPERTIES,
    PROPERTIES,
    VALUE,
    Message,
    Properties,
)
from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    Accepted,
    Disposition,
    Transfer,
    encode_delivery,
    encode_frame,
)
from eventhub_checkpoints.amqp.types import CodecError, Described
from eventhub_checkpoints.sdk.fallback import UnreadableFrameError
from eventhub_checkpoints.sdk.management import NODE, OfficialManagement, Reply

HUB = ""
"""Query about the hub itself; any other is the id of a partition."""

CORRELATION_ID = 5
"""Index of this field in the section `properties`."""

PIECE = 64
"""Number of requests in one write; the replies that have arrived are read before the next one."""

CHECK_EVERY = 1.0
"""Seconds of silence after which the token and the heartbeat are looked after."""


class Answer(NamedTuple):
    """Answer to a query.

    Attributes:
        status: as in HTTP.
        description: of an error.
        value: the properties, by name; empty if there is an error.
    """

    status: int
    description: str
    value: Mapping[str, Any]


class QueryLink:
    """Link to the management node, for queries and their answers, over one connection.

    Args:
        client: of the hub; it stays open.

    Attributes:
        connection: to be opened before the first query.

    Raises:
        FastPathError: the client has changed.
    """

    def __init__(self, client: EventHubConsumerClient) -> None:
        self.connection = OfficialManagement(client, self._on_reply)
        self._hub = client.eventhub_name
        self._asked: dict[str, str] = {}
        self._answers: dict[str, Answer] = {}
        self._number = 0
        self._unsettled: list[int] = []
        self._parts = b""

    def ask(self, queries: Collection[str], deadline: float) -> dict[str, Answer]:
        """Ask all queries at once.

        Args:
            queries: `HUB`, and ids of partitions.
            deadline: when to stop waiting, by `time.monotonic`.

        Returns:
            The answers that arrived until then.

        Raises:
            Exception: the error that ended the link or the connection; see
                `OfficialConnection.ended_by`.
        """
        self._asked, self._answers = {}, {}
        connection = self.connection
        requests, waiting = Requests(self._hub, connection.token), deque(queries)
        while len(self._answers) < len(queries):
            connection.check()
            self._send(requests, waiting, deadline)
            # Reading would wait for a frame, and so for the answers to what was sent.
            if waiting and connection.may_send and not connection.has_more:
                continue
            if not self._has_read(deadline):
                break
        self._settle()
        return self._answers

    def error_of(self, answer: Answer) -> Exception:
        """Return the client's error for an answer with a status of 400 or above."""
        return self.connection.error_of(answer.status, answer.description)

    def _has_read(self, deadline: float) -> bool:
        """Wait for frames and handle all that have arrived; return whether it is in time.

        A part of a frame counts as something to read: only the clock ends the wait for its rest.
        """
        connection = self.connection
        if not connection.has_more:
            connection.wait(min(max(0.0, deadline - time.monotonic()), CHECK_EVERY))
        if time.monotonic() >= deadline:
            return False
        connection.work()
        while len(self._answers) < len(self._asked) and time.monotonic() < deadline:
            if not connection.has_more:
                break
            connection.read()
        return True

    def _send(self, requests: "Requests", waiting: deque[str], deadline: float) -> None:
        """Send requests as far as the peer's credit and window allow, at most `PIECE`."""
        connection = self.connection
        pieces: list[bytes] = []
        while waiting and len(pieces) < PIECE and connection.may_send:
            self._number += 1
            message_id = f"{self._number:08x}"
            self._asked[message_id] = waiting.popleft()
            transfer = Transfer(
                handle=connection.handle,
                delivery_id=connection.next_delivery_id,
                delivery_tag=self._number.to_bytes(4, "big"),
                message_format=0,
                settled=False,
            )
            request = requests.encode(message_id, self._asked[message_id])
            limit = connection.max_frame_size
            frames = encode_delivery(transfer, connection.channel, request, limit)
            connection.count_request(frames)
            pieces += frames
        if pieces:
            connection.send_within(deadline - time.monotonic(), b"".join(pieces))

    def _on_reply(self, reply: Reply) -> None:
        """Collect the parts of a reply, and keep its answer; called while the connection reads."""
        if reply.unsettled_id is not None:
            self._unsettled.append(reply.unsettled_id)
        self._parts += reply.part
        if not reply.is_last:
            return
        whole, self._parts = self._parts, b""
        message_id, answer = read_reply(whole)
        # A late reply to a query that was given up has no entry.
        if (query := self._asked.get(message_id)) is not None:
            self._answers[query] = answer

    def _settle(self) -> None:
        """Accept the replies that wait for it, and grant credit for further ones."""
        if self._unsettled:
            first, last = self._unsettled[0], self._unsettled[-1]
            accepted = Disposition(
                role=RECEIVER, first=first, last=last, settled=True, state=Accepted()
            )
            self._unsettled = []
            self.connection.send(encode_frame(accepted, self.connection.channel))
        self.connection.renew_credit()


def read_reply(reply: bytes) -> tuple[str, Answer]:
    """Return the id of the message that a reply answers, and the answer.

    Raises:
        UnreadableFrameError: it is not a reply.
    """
    sections: dict[object, Any] = {}
    at = 0
    try:
        while at < len(reply):
            section, at = decode(reply, at)
            if isinstance(section, Described):
                sections[section.descriptor] = section.value
        message_id = sections[PROPERTIES][CORRELATION_ID]
        fields = sections[APPLICATION_PROPERTIES]
        status, description = fields["status-code"], fields.get("status-description")
    except (AttributeError, CodecError, IndexError, KeyError, TypeError) as error:
        raise UnreadableFrameError(
            f"a reply of {NODE} cannot be read: {type(error).__name__} {error}"
        ) from error
    value = sections.get(VALUE)
    return str(message_id), Answer(
        int(status), str(description or ""), value if isinstance(value, dict) else {}
    )


class Requests:
    """Encoder of requests, which differ in their number and partition only.

    Args:
        hub: the hub's name.
        token: proves the right to ask.
    """

    _MESSAGE, _PARTITION = "\x01", "\x7f"

    def __init__(self, hub: str, token: str) -> None:
        self._hub, self._token = hub, token
        self._templates: dict[tuple[int, int], bytes] = {}

    def encode(self, message_id: str, query: str) -> bytes:
        """Return a request, as the client sends it."""
        key = len(message_id), len(query)
        if key not in self._templates:
            self._templates[key] = self._encode(self._MESSAGE * key[0], self._PARTITION * key[1])
        request = self._templates[key].replace(
            self._MESSAGE.encode() * key[0], message_id.encode(), 1
        )
        if not query:
            return request
        return request.replace(self._PARTITION.encode() * key[1], query.encode(), 1)

    def _encode(self, message_id: str, query: str) -> bytes:
        kind = "com.microsoft:partition" if query else "com.microsoft:eventhub"
        fields = {
            "name": self._hub,
            **({"partition": query} if query else {}),
            "security_token": self._token,
            "operation": "READ",
            "type": kind,
        }
        properties = Properties(message_id=message_id)
        return Message(properties=properties, application_properties=fields).encode()
