"""Connection of the client to a hub's management node, for requests that this package encodes."""

import selectors
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import ConnectError, EventHubError

from eventhub_checkpoints.sdk.connection import ATTACHED, OfficialConnection
from eventhub_checkpoints.sdk.fallback import changed, check_version
from eventhub_checkpoints.sdk.private_names import CLIENT, HANDLER, QUERIES, Internal, checked

NODE = "$management"

UNSETTLED, FIRST = 0, 0
"""Settle modes of the client's own links to the node."""

REPLY_CREDIT = 10_000


class Reply(NamedTuple):
    """Transfer of the link of replies.

    Attributes:
        unsettled_id: of a delivery that waits to be accepted; None: it does not.
        is_last: whether the delivery ends with this frame.
        part: of its payload.
    """

    unsettled_id: int | None
    is_last: bool
    part: bytes


class ManagementOwner:
    """The client for management, with the methods that a consumer or a producer has.

    Args:
        client: stays open.
    """

    def __init__(self, client: EventHubConsumerClient) -> None:
        self._client: Internal = checked(QUERIES, client, CLIENT)
        self.amqp = checked(QUERIES, self._client._amqp_transport, "PyamqpTransport")
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


class OfficialManagement(OfficialConnection):
    """Links of requests and of replies, over one connection.

    Args:
        client: of the hub; it stays open.
        on_reply: called with each transfer of the link of replies, while the connection reads.
    """

    _owner: ManagementOwner

    def __init__(self, client: EventHubConsumerClient, on_reply: Callable[[Reply], None]) -> None:
        check_version()
        super().__init__(ManagementOwner(client), is_consumer=True)
        self._on_reply = on_reply
        self._rejection = ""

    def open(self, is_wanted: Callable[[], bool]) -> bool:
        """Connect, send the token and attach; see `OfficialConnection.open`."""
        handler = self._handler = checked(QUERIES, self._owner._handler, HANDLER)
        handler.open()
        while not handler.client_ready():
            if not is_wanted():
                return False
        self._session = checked(QUERIES, handler._session, "Session")
        self._connection = checked(QUERIES, handler._connection, "Connection")
        self._transport = checked(QUERIES, self._connection._transport, "Transport")
        self._authenticator = checked(QUERIES, handler._cbs_authenticator, "CBSAuthenticator")
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
        self._requests = checked(QUERIES, requests, "Link", "SenderLink")
        self._replies = checked(QUERIES, replies, "Link", "ReceiverLink")
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

    @property
    def token(self) -> str:
        """Return the token that every request carries."""
        return str(self._authenticator._token)

    @property
    def max_frame_size(self) -> int:
        """Return the largest frame that the peer accepts, in bytes."""
        return int(self._connection._remote_max_frame_size)

    @property
    def channel(self) -> int:
        """Return the channel of the session."""
        return int(self._session.channel)

    @property
    def handle(self) -> int:
        """Return the handle of the link of requests."""
        return int(self._requests.handle)

    @property
    def next_delivery_id(self) -> int:
        """Return the id of the next request."""
        return int(self._session.next_outgoing_id)

    @property
    def may_send(self) -> bool:
        """Return whether the peer's credit and window allow a request."""
        return bool(
            self._session.remote_incoming_window > 0 and self._requests.current_link_credit > 0
        )

    @property
    def has_more(self) -> bool:
        """Return whether something can be read at once, also of a message of a WebSocket."""
        unused = self._transport._read_buffer
        return unused.tell() < unused.getbuffer().nbytes or super().has_more

    def wait(self, seconds: float) -> None:
        """Wait until something can be read, at most so long."""
        self._selector.select(seconds)

    def read(self) -> None:
        """Handle at most one frame."""
        self._connection.listen(wait=False)

    def check(self) -> None:
        """Raise the error that ended a link, or for which a request was not accepted."""
        if self._rejection:
            raise ConnectError(f"a request was not accepted: {self._rejection}")
        if any(link.get_state().value != ATTACHED for link in (self._requests, self._replies)):
            raise ConnectError(f"a link to {NODE} was detached")

    def count_request(self, frames: Sequence[bytes]) -> None:
        """Count a request that is going to be sent in these frames."""
        self._session.remote_incoming_window -= len(frames)
        self._session.next_outgoing_id += 1
        self._requests.delivery_count += 1
        self._requests.current_link_credit -= 1

    def renew_credit(self) -> None:
        """Grant credit for further replies if half of it is used."""
        if self._replies.current_link_credit < REPLY_CREDIT // 2:
            self._replies.flow(link_credit=REPLY_CREDIT)

    def error_of(self, status: int, description: str) -> Exception:
        """Return the client's error for a reply with a status of 400 or above."""
        error = self._owner.amqp.get_error(status, description)
        return self._owner._handle_exception(error, is_consumer=True)

    def _on_transfer(self, frame: list[Any]) -> None:
        """Handle a transfer of the link of replies; called by the client's session."""
        delivery_id, is_settled, more, payload = frame[1], frame[4], frame[5], frame[11]
        if not more:
            self._replies.delivery_count += 1
            self._replies.current_link_credit -= 1
        self._on_reply(Reply(None if is_settled else delivery_id, not more, bytes(payload)))

    def _on_disposition(self, frame: list[Any]) -> None:
        """Handle the peer's outcome of requests; called by the client's session."""
        is_settled, outcome = frame[3], frame[4]
        if is_settled and outcome and "accepted" not in outcome:
            self._rejection = str(outcome)
