"""Hub and store of the demo's programs, from environment variables."""

import os
from dataclasses import dataclass, field
from typing import Self

from eventhub_checkpoints.errors import ConfigurationError

HUB_VARIABLE = "EVENTHUB_CONNECTION_STRING"
STORE_VARIABLE = "CHECKPOINT_STORE"
CONSUMER_GROUP = "$Default"


@dataclass(frozen=True, slots=True)
class Place:
    """Hub, and the store with its checkpoints.

    Attributes:
        connection_string: of the hub.
        store_url: of the store; it may contain a password.
    """

    connection_string: str
    store_url: str = field(repr=False)

    @classmethod
    def from_environment(cls) -> Self:
        """Return the place that the two variables name.

        Raises:
            ConfigurationError: a variable is not set.
        """
        return cls(hub_from_environment(), from_environment(STORE_VARIABLE))

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for a program that uses this place."""
        return {HUB_VARIABLE: self.connection_string, STORE_VARIABLE: self.store_url}


def hub_from_environment() -> str:
    """Return the connection string of the hub; raises as `from_environment`."""
    return from_environment(HUB_VARIABLE)


def from_environment(name: str) -> str:
    """Return the value of a variable.

    Raises:
        ConfigurationError: it is not set.
    """
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(f"the environment variable {name} is not set")
    return value
