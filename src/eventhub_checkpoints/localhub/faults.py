"""Injected faults and the journal of refused links."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.performatives import Error, Source, Target

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.performatives import Attach

JOURNAL_SIZE = 1000


@dataclass(frozen=True, slots=True)
class RefusedLink:
    """Link that the hub refused.

    Attributes:
        time: float seconds since the epoch, UTC.
        container_id: the client's identifier; azure-eventhub puts its consumer's name here.
        address: the requested address.
        condition: for instance "amqp:not-found".
        description: its description.
    """

    time: float
    container_id: str
    address: str
    condition: str
    description: str


def refused_link(container_id: str, attach: Attach, error: Error) -> RefusedLink:
    """Return the journal entry for a refusal."""
    place = attach.source if attach.role else attach.target
    address = place.address if isinstance(place, Source | Target) else None
    return RefusedLink(
        time.time(), container_id, str(address), error.condition, error.description or ""
    )


@dataclass(slots=True)
class Faults:
    """Faults in effect.

    Attributes:
        refusing: whether new connections are dropped at once.
        refusing_tokens: whether every token is refused, as the service refuses a wrong key.
        delay: seconds by which everything is sent later.
        refusals: conditions for the next links, one each.
        journal: recently refused links, by a fault or by the rules.
    """

    refusing: bool = False
    refusing_tokens: bool = False
    delay: float = 0.0
    refusals: deque[Error] = field(default_factory=deque)
    journal: deque[RefusedLink] = field(default_factory=lambda: deque(maxlen=JOURNAL_SIZE))

    def take_refusal(self) -> Error | None:
        """Return and remove the condition for the link being attached, if there is one."""
        return self.refusals.popleft() if self.refusals else None
