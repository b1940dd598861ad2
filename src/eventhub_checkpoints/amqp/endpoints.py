"""What links connect, and what becomes of a delivery: termini, outcomes and errors.

Source: OASIS AMQP 1.0, part 2, section 2.8.14; part 3, sections 3.4 and 3.5; part 4, section 4.5.
"""

from dataclasses import dataclass

from .composites import (
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
    uint,
    ulong,
)


@composite(0x1D, "amqp:error:list")
@dataclass(slots=True, kw_only=True)
class Error(Composite):
    """A condition and its text."""

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
    """Outcome: processed."""


@composite(0x25, "amqp:rejected:list")
@dataclass(slots=True, kw_only=True)
class Rejected(Composite):
    """Outcome: invalid."""

    error: nested[Error] | None = None


@composite(0x26, "amqp:released:list")
@dataclass(slots=True, kw_only=True)
class Released(Composite):
    """Outcome: not processed."""


@composite(0x27, "amqp:modified:list")
@dataclass(slots=True, kw_only=True)
class Modified(Composite):
    """Outcome: not processed, and changed."""

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
    """Where the messages of a link come from."""

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
    """Where the messages of a link go."""

    address: anything = None
    durable: uint = 0
    expiry_policy: symbol = "session-end"
    timeout: uint = 0
    dynamic: boolean = False
    dynamic_node_properties: mapping | None = None
    capabilities: symbols = ()
