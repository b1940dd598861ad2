"""A connection of a local hub that falls silent while others go on."""

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.connection import Connection
from eventhub_checkpoints.localhub.server import Faults

LATE = 3600.0
"""Seconds by which what the hub says on such a connection is delayed."""


def silence(hub: LocalHub, connection: Connection) -> None:
    """Let the hub say nothing more on one of its connections; it answers on new ones."""
    hub._call(lambda _: setattr(connection._wire, "_faults", Faults(delay=LATE)))
