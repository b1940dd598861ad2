"""The frames of the security layer.

Source: OASIS AMQP 1.0, part 5, section 5.3.3.
"""

from dataclasses import dataclass

from .composites import (
    Composite,
    binary,
    composite,
    string,
    symbol,
    symbols,
    ubyte,
)


@composite(0x40, "amqp:sasl-mechanisms:list")
@dataclass(slots=True, kw_only=True)
class SaslMechanisms(Composite):
    """The server's offer."""

    sasl_server_mechanisms: symbols = ()


@composite(0x41, "amqp:sasl-init:list")
@dataclass(slots=True, kw_only=True)
class SaslInit(Composite):
    """The client's choice."""

    mechanism: symbol = ""
    initial_response: binary | None = None
    hostname: string | None = None


@composite(0x42, "amqp:sasl-challenge:list")
@dataclass(slots=True, kw_only=True)
class SaslChallenge(Composite):
    """A server's question."""

    challenge: binary | None = None


@composite(0x43, "amqp:sasl-response:list")
@dataclass(slots=True, kw_only=True)
class SaslResponse(Composite):
    """A client's answer."""

    response: binary | None = None


@composite(0x44, "amqp:sasl-outcome:list")
@dataclass(slots=True, kw_only=True)
class SaslOutcome(Composite):
    """How the exchange ended: 0 is ok, 1 refused, 2 to 4 a system error."""

    code: ubyte = 0
    additional_data: binary | None = None
