"""Table of the private names of azure-eventhub that this package uses.

The fast paths look their names up on the actual objects before they use them; where one is missing,
the public API is used. Processing does without what it cannot read. A name that is still there, but
means something else, shows as a stall; see `stall`.

Source: azure-eventhub 5.12.0 and 5.15.1, `_client_base.py`, `_consumer_client.py`, `_consumer.py`,
`_producer_client.py`, `_producer.py`, `_eventprocessor/event_processor.py` and its aio twin,
`_transport/_pyamqp_transport.py`, and of `_pyamqp`: `client.py`, `_connection.py`, `session.py`,
`link.py`, `receiver.py`, `sender.py`, `management_link.py`, `cbs.py`, `_transport.py`.
"""

from typing import Any, Literal, NamedTuple

from eventhub_checkpoints.sdk.fallback import FastPathError
from eventhub_checkpoints.sdk.versions import VERSION

Internal = Any
"""An object of the client whose type is private, like its names."""

User = Literal["receive", "send", "queries", "public path", "processing"]
"""Part of this package: `receiver`, `sender` and `management` of this folder, `note_errors` of the
first, and what `consumer` and `stack` read.
"""


class PrivateName(NamedTuple):
    """Private name of the client.

    Attributes:
        owner: class of the client whose objects have it; a base class stands for its subclasses.
        name: as the client spells it. Some have no underscore, in a module that is private.
        reason: why it is needed.
        users: who uses it.
    """

    owner: str
    name: str
    reason: str
    users: tuple[User, ...]


RECEIVE: User = "receive"
SEND: User = "send"
QUERIES: User = "queries"
PUBLIC: User = "public path"
PROCESSING: User = "processing"

CLIENT, CONSUMER, PRODUCER = "EventHubConsumerClient", "EventHubConsumer", "EventHubProducer"
LOOP, CONTEXT, HANDLER = "EventProcessor", "PartitionContext", "AMQPClient"

PRIVATE_NAMES = tuple(
    PrivateName(owner, name, reason, tuple(users))
    for owner, name, reason, *users in (
        (CLIENT, "_create_consumer", "makes a receiver without a thread of the client",
         RECEIVE, PUBLIC, PROCESSING),
        (CLIENT, "_create_auth", "the token of the hub, and its renewal", QUERIES),
        (CLIENT, "_address", "the namespace; passed on to the client for management",
         QUERIES, PROCESSING),
        (CLIENT, "_config", "passed on likewise: time-outs, proxy, TLS", QUERIES),
        (CLIENT, "_amqp_transport", "makes the client for management, and its errors", QUERIES),
        (CLIENT, "_consumer_group", "which checkpoints and ownerships are its own", PROCESSING),
        (CLIENT, "_checkpoint_store", "whether it is the store that was passed", PROCESSING),
        (CLIENT, "_partition_ownership_expiration_interval", "when ownerships expire", PROCESSING),
        ("EventHubProducerClient", "_create_producer", "makes a sender that no thread uses", SEND),
        ("PyamqpTransport", "create_mgmt_client", "a connection without a thread", QUERIES),
        ("PyamqpTransport", "get_error", "the client's error for a status code", QUERIES),
        ("PyamqpTransport", "_handle_exception", "makes the public error of an internal one",
         QUERIES),
        (CONSUMER, "_keep_alive", "0: no other thread reads frames", RECEIVE),
        (CONSUMER, "_open", "connects, sends the token, attaches the link, one step per call",
         RECEIVE, PUBLIC, PROCESSING),
        (CONSUMER, "handler_ready", "whether the link is open; False: `_open` attaches the next",
         RECEIVE, PROCESSING),
        (CONSUMER, "running", "whether a link is open or being opened", PUBLIC, PROCESSING),
        (CONSUMER, "_create_handler", "makes the source of the next link", RECEIVE),
        (CONSUMER, "_handler", "the way to the connection; another one for each attempt",
         RECEIVE, PROCESSING),
        (CONSUMER, "_offset", "where a link that is being opened begins", PROCESSING),
        (CONSUMER, "_handle_exception", "makes the public error of an internal one",
         RECEIVE, PUBLIC),
        (PRODUCER, "_keep_alive", "0: no other thread reads frames", SEND),
        (PRODUCER, "_open", "connects, sends the token, attaches the link", SEND),
        (PRODUCER, "_handler", "the way to the connection, the session and the link", SEND),
        (PRODUCER, "_target", "the address of the hub; that of a partition begins with it", SEND),
        (PRODUCER, "_handle_exception", "makes the public error of an internal one", SEND),
        (LOOP, "_eventhub_client", "the client of a handler that runs", PROCESSING),
        (LOOP, "_running", "whether the client was closed while a handler runs", PROCESSING),
        (LOOP, "_consumers", "its receivers: which links are being opened", PROCESSING),
        (LOOP, "start", "its frame on the stack: the loop, and an aio one that sleeps", PROCESSING),
        (LOOP, "_on_event_received", "its frame: the call of a handler", PROCESSING),
        (LOOP, "partition_context", "a variable of that frame: of which partition", PROCESSING),
        (CONTEXT, "_checkpoint_store", "the store of the client that calls", PROCESSING),
        (CONTEXT, "_last_received_event", "which event was received last", PROCESSING),
        (HANDLER, "open", "connects, begins the session, opens the token's link", QUERIES),
        (HANDLER, "close", "ends all of them", QUERIES),
        (HANDLER, "client_ready", "renews the token in time, raises what ended the link",
         RECEIVE, SEND, QUERIES),
        (HANDLER, "_connection", "the way to the transport; it reads frames and heartbeats",
         RECEIVE, SEND, QUERIES),
        (HANDLER, "_session", "its windows and links", RECEIVE, SEND, QUERIES),
        (HANDLER, "_link", "the link of the partition or the hub; None: the next one is attached",
         RECEIVE, SEND),
        (HANDLER, "source", "what the next link reads", RECEIVE),
        (HANDLER, "_cbs_authenticator", "has the token", QUERIES),
        (HANDLER, "_link_credit", "links of partitions are attached like that of the hub", SEND),
        (HANDLER, "_send_settle_mode", "likewise", SEND),
        (HANDLER, "_receive_settle_mode", "likewise", SEND),
        (HANDLER, "_max_message_size", "likewise", SEND),
        (HANDLER, "_link_properties", "likewise", SEND),
        ("CBSAuthenticator", "_token", "every request carries it", QUERIES),
        ("Connection", "listen", "sends heartbeats, handles a frame, raises what ended it",
         RECEIVE, SEND, QUERIES),
        ("Connection", "_transport", "the way of the bytes", RECEIVE, SEND, QUERIES),
        ("Connection", "_incoming_endpoints", "the channel of the session's frames", RECEIVE),
        ("Connection", "_max_frame_size", "no frame may be larger", RECEIVE),
        ("Connection", "_remote_max_frame_size", "no frame may be larger", SEND, QUERIES),
        ("Connection", "_last_frame_received_time", "events are a sign of life, for idle_timeout",
         RECEIVE),
        ("Connection", "_last_frame_sent_time", "a batch is a sign of life, for the peer", SEND),
        ("Session", "channel", "frames are sent on it", RECEIVE, SEND, QUERIES),
        ("Session", "next_incoming_id", "counts transfers, for the window in a flow frame",
         RECEIVE),
        ("Session", "incoming_window", "number of transfers that may still come", RECEIVE),
        ("Session", "target_incoming_window", "the window when it is opened again", RECEIVE),
        ("Session", "next_outgoing_id", "the id of the next delivery", SEND, QUERIES),
        ("Session", "remote_incoming_window", "number of frames that may be sent", SEND, QUERIES),
        ("Session", "create_sender_link", "makes the link of a partition, or of requests",
         SEND, QUERIES),
        ("Session", "create_receiver_link", "makes the link of the replies", QUERIES),
        ("Session", "links", "a detached link is removed, which the client leaves there", RECEIVE),
        ("Session", "_input_handles", "likewise; a peer has few handles", RECEIVE),
        ("Session", "_output_handles", "likewise", RECEIVE),
        ("Link", "attach", "attaches a link", SEND, QUERIES),
        ("Link", "get_state", "whether it is attached; raises what ended it",
         RECEIVE, SEND, QUERIES),
        ("Link", "delivery_count", "counts deliveries, as does the peer", RECEIVE, SEND, QUERIES),
        ("Link", "current_link_credit", "number of deliveries that may be sent", SEND, QUERIES),
        ("ReceiverLink", "remote_handle", "identifies transfers of the link", RECEIVE),
        ("ReceiverLink", "detach", "ends the link, and not its connection", RECEIVE),
        ("ReceiverLink", "flow", "grants credit", RECEIVE, QUERIES),
        ("ReceiverLink", "_incoming_transfer",
         "replaced: the client's keeps the tag of every reply", QUERIES),
        ("SenderLink", "handle", "identifies transfers of the link", SEND, QUERIES),
        ("SenderLink", "remote_max_message_size", "the limit of the hub", SEND),
        ("SenderLink", "_incoming_disposition",
         "replaced: tells whether a request was rejected", QUERIES),
        ("Transport", "read", "replaced or watched: all frames pass through it", RECEIVE, SEND),
        ("Transport", "_read", "reads WebSockets, with their errors", RECEIVE),
        ("Transport", "_read_buffer", "bytes that were read and are not used", RECEIVE, QUERIES),
        ("Transport", "sock", "read from in large pieces, and its time-out while sending",
         RECEIVE, SEND, QUERIES),
        ("Transport", "write", "sends frames", RECEIVE, SEND, QUERIES),
        ("Transport", "close", "the client forgets the socket of a broken connection",
         RECEIVE, SEND, QUERIES),
    )
)  # fmt: skip


def names_of(user: User, *owners: str) -> list[str]:
    """Return the names that a user needs of objects of these classes; of all without any."""
    return [
        private.name
        for private in PRIVATE_NAMES
        if user in private.users and (not owners or private.owner in owners)
    ]


def checked(user: User, part: Internal, *owners: str) -> Internal:
    """Return the same object after checking that it has all the names used of it.

    Args:
        user: which names of the table.
        part: an object of the client.
        owners: its class and base classes, as in the table.

    Raises:
        FastPathError: names are missing; the message lists all of them.
    """
    kind = type(part).__name__
    missing = [f"{kind}.{name}" for name in names_of(user, *owners) if not hasattr(part, name)]
    if missing:
        raise FastPathError(f"azure-eventhub {VERSION} has no {', '.join(missing)}")
    return part
