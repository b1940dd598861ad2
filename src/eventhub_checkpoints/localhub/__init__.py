"""A local stand-in for Azure Event Hubs: for trying and testing, never for production.

It speaks AMQP 1.0 to unmodified clients. `eventhub_checkpoints.localhub.LocalHub` runs it in a
thread; `python -m eventhub_checkpoints.localhub --hub orders=8` runs it as a separate process.

- `local`: `LocalHub`. `arguments`: validation of what a program passes. `tls`: certificates.
- `emulator`: the configuration file of Azure's emulator.
- `server`, `connection`: sockets, and faults on request. `session`, `links`, `delivery`: AMQP
  peers. `management`: the nodes `$management` and `$cbs`. `tokens`: which of them are accepted.
- `hubs`, `events`: what is stored. `readers`: epochs and start positions. `conditions`: refusals.
"""

from eventhub_checkpoints.localhub.emulator import EmulatorConfig, read_emulator_config
from eventhub_checkpoints.localhub.events import StoredEvent
from eventhub_checkpoints.localhub.local import LocalHub, PartitionProperties, Receiver
from eventhub_checkpoints.localhub.server import RefusedLink

__all__ = [
    "EmulatorConfig",
    "LocalHub",
    "PartitionProperties",
    "Receiver",
    "RefusedLink",
    "StoredEvent",
    "read_emulator_config",
]
