"""The backends by name; each in a file of its own."""

from backends.base import COLOURS, Backend, Colour, OwnServer, Place, ServerMissingError

__all__ = ["BACKENDS", "COLOURS", "Backend", "Colour", "OwnServer", "Place", "ServerMissingError"]

BACKENDS: dict[str, type[Backend]] = {}
