"""What two AMQP peers say about connections, sessions, links and deliveries.

Source: OASIS AMQP 1.0, part 2, section 2.7.
"""

from dataclasses import dataclass

from .composites import (
    Composite,
    binary,
    boolean,
    composite,
    mapping,
    nested,
    string,
    symbols,
    ubyte,
    uint,
    ulong,
    ushort,
)
from .endpoints import Error

UINT_MAX = 0xFFFF_FFFF

SENDER, RECEIVER = False, True
"""The two roles of a link endpoint, as they stand in attach and disposition."""


@composite(0x10, "amqp:open:list")
@dataclass(slots=True, kw_only=True)
class Open(Composite):
    """Begin a connection. Units: `idle_time_out` milliseconds, `max_frame_size` bytes."""

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
    """Tell a session's windows and, with a handle, a link's credit."""

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
    """Tell the outcome of the deliveries `first` to `last`."""

    role: boolean = RECEIVER
    first: uint = 0
    last: uint | None = None
    settled: boolean = False
    state: nested[Composite] | None = None
    batchable: boolean = False


@composite(0x16, "amqp:detach:list")
@dataclass(slots=True, kw_only=True)
class Detach(Composite):
    """Detach a link, for ever where `closed` is set."""

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
