"""Link to a hub's management node on the official client's connection.

The client opens a connection for each management request, and sleeps between the steps of opening
it: a request takes 0.36 s. This link stays open, and sends any number of requests at once.

`PRIVATE_NAMES` lists what it uses of the client and why. Where a name is missing, the hub is
queried through the client's public API.

Source: azure-eventhub 5.12.0 and 5.15.1, `_client_base.py` (`_management_request`),
`_transport/_pyamqp_transport.py`, `_pyamqp/client.py`, `cbs.py`, `management_link.py`,
`session.py`, `sender.py`, `receiver.py`.
"""

import selectors
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import ConnectError, EventHubError

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
    encode_frame,
)
from eventhub_checkpoints.amqp.types import CodecError, Described
from eventhub_checkpoints.receive.amqp.private_parts import (
    Internal,
    OfficialConnection,
    PrivateName,
    UnreadableFrameError,
    changed,
    check_version,
    checked,
)

PRIVATE_NAMES = tuple(
    PrivateName(*row)
    for row in (
        ("client", "_create_auth", "the token of the hub, and its renewal"),
        ("client", "_address", "passed on to the client for management"),
        ("client", "_config", "likewise: time-outs, proxy, TLS"),
        ("client", "_amqp_transport", "makes the client for management, and its errors"),
        ("amqp", "create_mgmt_client", "a connection of its own, without a thread"),
        ("amqp", "get_error", "the client's error for a status code"),
        ("amqp", "_handle_exception", "makes the public error of an internal one"),
        ("handler", "open", "connects, begins the session, opens the token's link"),
        ("handler", "close", "ends all of them"),
        ("handler", "client_ready", "sends and renews the token, raises what ended its link"),
        ("handler", "_connection", "the way to the transport; it reads frames and heartbeats"),
        ("handler", "_session", "its windows and links"),
        ("handler", "_cbs_authenticator", "has the token"),
        ("authenticator", "_token", "every request carries it"),
        ("connection", "listen", "sends heartbeats, handles a frame, raises what ended it"),
        ("connection", "_transport", "the way of the bytes"),
        ("connection", "_remote_max_frame_size", "no frame may be larger"),
        ("session", "channel", "requests are sent on it"),
        ("session", "next_outgoing_id", "the id of the next delivery"),
        ("session", "remote_incoming_window", "number of frames that may be sent"),
        ("session", "create_sender_link", "makes the link of the requests"),
        ("session", "create_receiver_link", "makes the link of the replies"),
        ("link", "attach", "attaches a link"),
        ("link", "get_state", "whether it is attached; raises what ended it"),
        ("link", "delivery_count", "counts deliveries, as does the peer"),
        ("link", "current_link_credit", "number of deliveries that may be sent"),
        ("requests", "handle", "identifies transfers of the link"),
        ("requests", "_incoming_disposition", "replaced: tells whether a request was rejected"),
        ("replies", "_incoming_transfer", "replaced: the client's keeps the tag of every reply"),
        ("replies", "flow", "grants credit"),
        ("transport", "write", "sends requests"),
        ("transport", "sock", "waited for, and its time-out while sending"),
        ("transport", "close", "the client forgets the socket of a broken connection"),
        ("transport", "_read_buffer", "bytes of a WebSocket's message that are not used yet"),
    )
)

NODE = "$management"
HUB = ""
"""Question about the hub itself; any other is the id of a partition."""

ATTACHED = 3
UNSETTLED, FIRST = 0, 0
"""Settle modes of the client's own links to the node."""

CORRELATION_ID = 5
"""Index of this field in the section `properties`."""

REPLY_CREDIT = 10_000
FRAME_OVERHEAD = 64
"""Bytes of a frame before its part of a request: the frame's head and a transfer, at most."""

PIECE = 64
"""Number of requests in one write; the replies that have arrived are read before the next one."""

CHECK_EVERY = 1.0
"""Seconds of silence after which the token and the heartbeat are looked after."""


class Answer(NamedTuple):
    """Answer to a question.

    Attributes:
        status: as in HTTP.
        description: of an error.
        value: the properties, by name; empty if there is an error.
    """

    status: int
    description: str
    value: Mapping[str, Any]


class ManagementOwner:
    """The client for management, with the methods that a consumer or a producer has.

    Args:
        client: stays open.

    Raises:
        FastPathError: the client has changed.
    """

    def __init__(self, client: EventHubConsumerClient) -> None:
        self._client: Internal = checked("client", client, PRIVATE_NAMES)
        self.amqp = checked("amqp", self._client._amqp_transport, PRIVATE_NAMES)
        try:
            self._handler = self.amqp.create_mgmt_client(
                self._client._address,
                mgmt_auth=self._client._create_auth(),
                config=self._client._config,
            )
        except TypeError as error:
            raise changed(error) from error

    def _handle_exception(self, error: Exception, *, is_consumer: bool) -> Exception:
        # The client's function expects no public error where there is no consumer.
        if isinstance(error, EventHubError):
            return error
        public: Exception = self.amqp._handle_exception(
            error, self._client, is_consumer=is_consumer
        )
        return public

    def close(self) -> None:
        """End the session and the connection."""
        self._handler.close()


class ManagementLink(OfficialConnection):
    """Requests to the management node and their replies, over one connection.

    Args:
        client: of the hub; it stays open.

    Raises:
        FastPathError: the client has changed.
    """

    _owner: ManagementOwner

    def __init__(self, client: EventHubConsumerClient) -> None:
        check_version()
        super().__init__(ManagementOwner(client), is_consumer=True)
        self._hub = client.eventhub_name
        self._asked: dict[str, str] = {}
        self._answers: dict[str, Answer] = {}
        self._number = 0
        self._unsettled: list[int] = []
        self._parts = b""
        self._rejection = ""

    def open(self, is_wanted: Callable[[], bool]) -> bool:
        """Connect, send the token and attach; see `OfficialConnection.open`."""
        handler = self._handler = checked("handler", self._owner._handler, PRIVATE_NAMES)
        handler.open()
        while not handler.client_ready():
            if not is_wanted():
                return False
        self._session = checked("session", handler._session, PRIVATE_NAMES)
        self._connection = checked("connection", handler._connection, PRIVATE_NAMES)
        self._transport = checked("transport", self._connection._transport, PRIVATE_NAMES)
        self._authenticator = checked("authenticator", handler._cbs_authenticator, PRIVATE_NAMES)
        modes = {"send_settle_mode": UNSETTLED, "rcv_settle_mode": FIRST}
        # Without a credit of its own, the client's link shows the peer's.
        requests = self._session.create_sender_link(
            NODE, source_address=NODE, link_credit=0, **modes
        )
        replies = self._session.create_receiver_link(
            NODE,
            target_address=NODE,
            link_credit=REPLY_CREDIT,
            on_transfer=self._on_transfer,
            **modes,
        )
        for link in (requests, replies):
            checked("link", link, PRIVATE_NAMES)
        self._requests = checked("requests", requests, PRIVATE_NAMES)
        self._replies = checked("replies", replies, PRIVATE_NAMES)
        self._requests._incoming_disposition = self._on_disposition
        self._replies._incoming_transfer = self._on_transfer
        self._replies.attach()
        self._requests.attach()
        while any(link.get_state().value != ATTACHED for link in (self._requests, self._replies)):
            if not is_wanted():
                return False
            self._connection.listen(wait=False)
        self._selector.register(self._transport.sock, selectors.EVENT_READ)
        return True

    def ask(self, questions: Collection[str], deadline: float) -> dict[str, Answer]:
        """Ask all questions at once.

        Args:
            questions: `HUB`, and ids of partitions.
            deadline: when to stop waiting, by `time.monotonic`.

        Returns:
            The answers that arrived until then.

        Raises:
            Exception: the error that ended the link or the connection; see `ended_by`.
        """
        self._asked, self._answers = {}, {}
        requests, waiting = Requests(self._hub, self._authenticator._token), deque(questions)
        while len(self._answers) < len(questions):
            self._check()
            self._send(requests, waiting, deadline)
            # Reading would wait for a frame, and so for the answers to what was sent.
            if waiting and self._may_send and not self.has_more:
                continue
            if not self._has_read(deadline):
                break
        self._settle()
        return self._answers

    def error_of(self, answer: Answer) -> Exception:
        """Return the client's error for an answer with a status of 400 or above."""
        error = self._owner.amqp.get_error(answer.status, answer.description)
        return self._owner._handle_exception(error, is_consumer=True)

    @property
    def has_more(self) -> bool:
        """Return whether something can be read at once, also of a message of a WebSocket."""
        unused = self._transport._read_buffer
        return unused.tell() < unused.getbuffer().nbytes or super().has_more

    @property
    def _may_send(self) -> bool:
        """Return whether the peer's credit and window allow a request."""
        return bool(
            self._session.remote_incoming_window > 0 and self._requests.current_link_credit > 0
        )

    def _has_read(self, deadline: float) -> bool:
        """Wait for frames and handle all that have arrived; return whether it is in time.

        A part of a frame counts as something to read: only the clock ends the wait for its rest.
        """
        if not self.has_more:
            left = max(0.0, deadline - time.monotonic())
            self._selector.select(min(left, CHECK_EVERY))
        if time.monotonic() >= deadline:
            return False
        self.work()
        while len(self._answers) < len(self._asked) and time.monotonic() < deadline:
            if not self.has_more:
                break
            self._connection.listen(wait=False)
        return True

    def _check(self) -> None:
        """Raise the error that ended a link, or for which a request was not accepted."""
        if self._rejection:
            raise ConnectError(f"a request was not accepted: {self._rejection}")
        if any(link.get_state().value != ATTACHED for link in (self._requests, self._replies)):
            raise ConnectError(f"a link to {NODE} was detached")

    def _send(self, requests: "Requests", waiting: deque[str], deadline: float) -> None:
        """Send requests as far as the peer's credit and window allow, at most `PIECE`."""
        link, session = self._requests, self._session
        room = int(self._connection._remote_max_frame_size) - FRAME_OVERHEAD
        frames: list[bytes] = []
        while waiting and len(frames) < PIECE and self._may_send:
            self._number += 1
            message_id = f"{self._number:08x}"
            self._asked[message_id] = waiting.popleft()
            payload = requests.encode(message_id, self._asked[message_id])
            for begin in range(0, len(payload), room):
                frame = Transfer(
                    handle=link.handle,
                    delivery_id=session.next_outgoing_id,
                    delivery_tag=self._number.to_bytes(4, "big"),
                    message_format=0,
                    settled=False,
                    more=begin + room < len(payload),
                )
                frames.append(encode_frame(frame, session.channel, payload[begin : begin + room]))
                session.remote_incoming_window -= 1
            link.delivery_count += 1
            link.current_link_credit -= 1
            session.next_outgoing_id += 1
        if frames:
            self._write(b"".join(frames), deadline)

    def _write(self, data: bytes, deadline: float) -> None:
        sock = self._transport.sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        # The client's time-out is meant for reading: a fifth of a second for a frame.
        before = sock.gettimeout()
        sock.settimeout(max(before or 0.0, deadline - time.monotonic()))
        try:
            self.send(data)
        finally:
            sock.settimeout(before)

    def _on_transfer(self, frame: list[Any]) -> None:
        """Handle a transfer of the link of replies; called by the client's session."""
        delivery_id, is_settled, more, payload = frame[1], frame[4], frame[5], frame[11]
        if delivery_id is not None and not is_settled:
            self._unsettled.append(delivery_id)
        self._parts += bytes(payload)
        if more:
            return
        self._replies.delivery_count += 1
        self._replies.current_link_credit -= 1
        reply, self._parts = self._parts, b""
        message_id, answer = read_reply(reply)
        # A late reply to a question that was given up has no entry.
        if (question := self._asked.get(message_id)) is not None:
            self._answers[question] = answer

    def _on_disposition(self, frame: list[Any]) -> None:
        """Handle the peer's outcome of requests; called by the client's session."""
        is_settled, outcome = frame[3], frame[4]
        if is_settled and outcome and "accepted" not in outcome:
            self._rejection = str(outcome)

    def _settle(self) -> None:
        """Accept the replies that wait for it, and grant credit for further ones."""
        if self._unsettled:
            first, last = self._unsettled[0], self._unsettled[-1]
            accepted = Disposition(
                role=RECEIVER, first=first, last=last, settled=True, state=Accepted()
            )
            self._unsettled = []
            self.send(encode_frame(accepted, self._session.channel))
        if self._replies.current_link_credit < REPLY_CREDIT // 2:
            self._replies.flow(link_credit=REPLY_CREDIT)


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

    def encode(self, message_id: str, question: str) -> bytes:
        """Return a request, as the client sends it."""
        key = len(message_id), len(question)
        if key not in self._templates:
            self._templates[key] = self._encode(self._MESSAGE * key[0], self._PARTITION * key[1])
        request = self._templates[key].replace(
            self._MESSAGE.encode() * key[0], message_id.encode(), 1
        )
        if not question:
            return request
        return request.replace(self._PARTITION.encode() * key[1], question.encode(), 1)

    def _encode(self, message_id: str, question: str) -> bytes:
        kind = "com.microsoft:partition" if question else "com.microsoft:eventhub"
        fields = {
            "name": self._hub,
            **({"partition": question} if question else {}),
            "security_token": self._token,
            "operation": "READ",
            "type": kind,
        }
        properties = Properties(message_id=message_id)
        return Message(properties=properties, application_properties=fields).encode()
