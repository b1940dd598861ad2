"""AMQP performatives, with their termini, outcomes and SASL frames."""

from dataclasses import dataclass

from eventhub_checkpoints.amqp.composites import (
    Composite,
    anything,
    binary,
    boolean,
    composite,
    mapping,
    nested,
    string,
    symbol,
    symbols,
    ubyte,
    uint,
    ulong,
    ushort,
)


@composite(0x1D, "amqp:error:list")
@dataclass(slots=True, kw_only=True)
class Error(Composite):
    """Error condition and its description."""

    condition: symbol = "amqp:internal-error"
    description: string | None = None
    info: mapping | None = None


@composite(0x23, "amqp:received:list")
@dataclass(slots=True, kw_only=True)
class Received(Composite):
    """Delivery state: how much of a delivery has arrived."""

    section_number: uint = 0
    section_offset: ulong = 0


@composite(0x24, "amqp:accepted:list")
@dataclass(slots=True, kw_only=True)
class Accepted(Composite):
    """Outcome: the message was processed."""


@composite(0x25, "amqp:rejected:list")
@dataclass(slots=True, kw_only=True)
class Rejected(Composite):
    """Outcome: the message is invalid."""

    error: nested[Error] | None = None


@composite(0x26, "amqp:released:list")
@dataclass(slots=True, kw_only=True)
class Released(Composite):
    """Outcome: the message was not processed."""


@composite(0x27, "amqp:modified:list")
@dataclass(slots=True, kw_only=True)
class Modified(Composite):
    """Outcome: the message was not processed, and was changed."""

    delivery_failed: boolean = False
    undeliverable_here: boolean = False
    message_annotations: mapping | None = None


@composite(0x30, "amqp:declared:list")
@dataclass(slots=True, kw_only=True)
class Declared(Composite):
    """Outcome of a transaction's declaration."""

    txn_id: binary | None = None


@composite(0x34, "amqp:transactional-state:list")
@dataclass(slots=True, kw_only=True)
class TransactionalState(Composite):
    """Delivery state inside a transaction."""

    txn_id: binary | None = None
    outcome: nested[Composite] | None = None


@composite(0x28, "amqp:source:list")
@dataclass(slots=True, kw_only=True)
class Source(Composite):
    """Source terminus: where the messages of a link come from."""

    address: anything = None
    durable: uint = 0
    expiry_policy: symbol = "session-end"
    timeout: uint = 0
    dynamic: boolean = False
    dynamic_node_properties: mapping | None = None
    distribution_mode: symbol | None = None
    filters: mapping | None = None
    default_outcome: nested[Composite] | None = None
    outcomes: symbols = ()
    capabilities: symbols = ()


@composite(0x29, "amqp:target:list")
@dataclass(slots=True, kw_only=True)
class Target(Composite):
    """Target terminus: where the messages of a link go."""

    address: anything = None
    durable: uint = 0
    expiry_policy: symbol = "session-end"
    timeout: uint = 0
    dynamic: boolean = False
    dynamic_node_properties: mapping | None = None
    capabilities: symbols = ()


UINT_MAX = 0xFFFF_FFFF

SENDER, RECEIVER = False, True
"""Roles of a link endpoint, as encoded in attach and disposition."""


@composite(0x10, "amqp:open:list")
@dataclass(slots=True, kw_only=True)
class Open(Composite):
    """Open a connection. Units: `idle_time_out` milliseconds, `max_frame_size` bytes."""

    container_id: string = ""
    hostname: string | None = None
    max_frame_size: uint = UINT_MAX
    channel_max: ushort = 65535
    idle_time_out: uint | None = None
    outgoing_locales: symbols = ()
    incoming_locales: symbols = ()
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x11, "amqp:begin:list")
@dataclass(slots=True, kw_only=True)
class Begin(Composite):
    """Begin a session on a channel. Units: windows count transfer frames."""

    remote_channel: ushort | None = None
    next_outgoing_id: uint = 0
    incoming_window: uint = 0
    outgoing_window: uint = 0
    handle_max: uint = UINT_MAX
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x12, "amqp:attach:list")
@dataclass(slots=True, kw_only=True)
class Attach(Composite):
    """Attach a link to a session; `role` is `SENDER` or `RECEIVER`."""

    name: string = ""
    handle: uint = 0
    role: boolean = SENDER
    snd_settle_mode: ubyte = 2
    rcv_settle_mode: ubyte = 0
    source: nested[Composite] | None = None
    target: nested[Composite] | None = None
    unsettled: mapping | None = None
    incomplete_unsettled: boolean = False
    initial_delivery_count: uint | None = None
    max_message_size: ulong | None = None
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x13, "amqp:flow:list")
@dataclass(slots=True, kw_only=True)
class Flow(Composite):
    """Report a session's windows and, with a handle, a link's credit."""

    next_incoming_id: uint | None = None
    incoming_window: uint = 0
    next_outgoing_id: uint = 0
    outgoing_window: uint = 0
    handle: uint | None = None
    delivery_count: uint | None = None
    link_credit: uint | None = None
    available: uint | None = None
    drain: boolean = False
    echo: boolean = False
    properties: mapping | None = None


@composite(0x14, "amqp:transfer:list")
@dataclass(slots=True, kw_only=True)
class Transfer(Composite):
    """Carry a message, or a part of one where `more` is set; the payload follows the list."""

    handle: uint = 0
    delivery_id: uint | None = None
    delivery_tag: binary | None = None
    message_format: uint | None = None
    settled: boolean | None = None
    more: boolean = False
    rcv_settle_mode: ubyte | None = None
    state: nested[Composite] | None = None
    resume: boolean = False
    aborted: boolean = False
    batchable: boolean = False


@composite(0x15, "amqp:disposition:list")
@dataclass(slots=True, kw_only=True)
class Disposition(Composite):
    """Report the outcome of the deliveries `first` to `last`."""

    role: boolean = RECEIVER
    first: uint = 0
    last: uint | None = None
    settled: boolean = False
    state: nested[Composite] | None = None
    batchable: boolean = False


@composite(0x16, "amqp:detach:list")
@dataclass(slots=True, kw_only=True)
class Detach(Composite):
    """Detach a link, permanently if `closed` is set."""

    handle: uint = 0
    closed: boolean = False
    error: nested[Error] | None = None


@composite(0x17, "amqp:end:list")
@dataclass(slots=True, kw_only=True)
class End(Composite):
    """End a session."""

    error: nested[Error] | None = None


@composite(0x18, "amqp:close:list")
@dataclass(slots=True, kw_only=True)
class Close(Composite):
    """Close a connection."""

    error: nested[Error] | None = None


@composite(0x40, "amqp:sasl-mechanisms:list")
@dataclass(slots=True, kw_only=True)
class SaslMechanisms(Composite):
    """Mechanisms that the server offers."""

    sasl_server_mechanisms: symbols = ()


@composite(0x41, "amqp:sasl-init:list")
@dataclass(slots=True, kw_only=True)
class SaslInit(Composite):
    """Mechanism that the client chooses."""

    mechanism: symbol = ""
    initial_response: binary | None = None
    hostname: string | None = None


@composite(0x42, "amqp:sasl-challenge:list")
@dataclass(slots=True, kw_only=True)
class SaslChallenge(Composite):
    """Challenge from the server."""

    challenge: binary | None = None


@composite(0x43, "amqp:sasl-response:list")
@dataclass(slots=True, kw_only=True)
class SaslResponse(Composite):
    """Response from the client."""

    response: binary | None = None


@composite(0x44, "amqp:sasl-outcome:list")
@dataclass(slots=True, kw_only=True)
class SaslOutcome(Composite):
    """Result of the exchange: 0 is ok, 1 refused, 2 to 4 a system error."""

    code: ubyte = 0
    additional_data: binary | None = None
