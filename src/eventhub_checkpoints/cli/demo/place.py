"""Where hub and checkpoints are, as every program of the demo is told: by its environment."""

import os
from dataclasses import dataclass, field
from typing import Self

from eventhub_checkpoints.errors import ConfigurationError

HUB_VARIABLE = "EVENTHUB_CONNECTION_STRING"
STORE_VARIABLE = "CHECKPOINT_STORE"
CONSUMER_GROUP = "$Default"


@dataclass(frozen=True, slots=True)
class Place:
    """A hub, and the store with its checkpoints.

    Attributes:
        connection_string: of the hub.
        store_url: of the store; it may hold a password.
    """

    connection_string: str
    store_url: str = field(repr=False)

    @classmethod
    def from_environment(cls) -> Self:
        """The place that the two variables name.

        Raises:
            ConfigurationError: one of them is not set.
        """
        return cls(hub_from_environment(), from_environment(STORE_VARIABLE))

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a program that is to work here."""
        return {HUB_VARIABLE: self.connection_string, STORE_VARIABLE: self.store_url}


def hub_from_environment() -> str:
    """The connection string of the hub; raises as `from_environment`."""
    return from_environment(HUB_VARIABLE)


def from_environment(name: str) -> str:
    """What a variable holds.

    Raises:
        ConfigurationError: it is not set.
    """
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(f"the environment variable {name} is not set")
    return value
