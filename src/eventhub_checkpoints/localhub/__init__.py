"""A local stand-in for Azure Event Hubs: for trying and testing, never for production.

It speaks AMQP 1.0 to unmodified clients. `LocalHub` runs it in a thread;
`python -m eventhub_checkpoints.localhub --hub orders=8` runs it as a process of its own.

Inside, from the outside in: `local` holds the hub, with `operations` and `disturbances` as its
methods, `background` its thread and `tls` its certificates. `server`, `connection` and `wire` speak
to sockets; `session`, `attaching`, `links` and `delivery` to peers. `hubs`, `log`, `events`,
`positions`, `readers`, `addresses` and `management` are what the service knows, `clock` the time,
`conditions` what it says when it refuses, `arguments` what it takes from a program, `faults` what
goes wrong on request.
"""

from .faults import RefusedLink
from .local import LocalHub
from .operations import PartitionProperties, Receiver

__all__ = ["LocalHub", "PartitionProperties", "Receiver", "RefusedLink"]
