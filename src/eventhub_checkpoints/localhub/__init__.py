"""A local stand-in for Azure Event Hubs: for trying and testing, never for production.

It speaks AMQP 1.0 to unmodified clients. `eventhub_checkpoints.localhub.LocalHub` runs it in a
thread; `python -m eventhub_checkpoints.localhub --hub orders=8` runs it as a process of its own.

- `local`: the hub, with `operations` and `disturbances` as its methods, and `tls` certificates.
- `server`, `connection`, `wire`: sockets. `session`, `attaching`, `links`, `delivery`: AMQP peers.
- `hubs`, `log`, `events`, `positions`, `readers`, `management`, `clock`: what the service knows.
- `conditions`: refusals. `arguments`: what a program may pass. `faults`: what goes wrong on
  request.
"""

from eventhub_checkpoints.localhub.faults import RefusedLink
from eventhub_checkpoints.localhub.local import LocalHub
from eventhub_checkpoints.localhub.operations import PartitionProperties, Receiver

__all__ = ["LocalHub", "PartitionProperties", "Receiver", "RefusedLink"]
