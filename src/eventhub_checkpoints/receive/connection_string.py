"""Connection strings of a hub or its namespace."""

from dataclasses import dataclass
from typing import Self

from azure.core.utils import parse_connection_string

from eventhub_checkpoints.errors import ConfigurationError


@dataclass(frozen=True, slots=True, repr=False)
class ConnectionString:
    """Parts of a connection string, without a `repr`, because one is a secret; `""` if missing.

    Attributes:
        namespace: host of the endpoint, and its port if it has one.
        hub: the `EntityPath`.
        key_name: name of the shared access policy.
        key: of that policy.
        signature: instead of a key.
    """

    namespace: str
    hub: str
    key_name: str
    key: str
    signature: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts; None if this is not a connection string of any service."""
        try:
            parts = parse_connection_string(text)
        except (ValueError, AttributeError):
            # An error raised here would hold the parser's frames, and with them the key.
            return None
        return cls(
            host_of(parts.get("endpoint", "")),
            parts.get("entitypath", ""),
            parts.get("sharedaccesskeyname", ""),
            parts.get("sharedaccesskey", ""),
            parts.get("sharedaccesssignature", ""),
        )

    @classmethod
    def with_secret(cls, text: str) -> Self:
        """Return the parts of one that names a namespace and holds a key or a signature.

        Raises:
            ConfigurationError: it is another one, or malformed; the message does not show it.
        """
        parts = cls.parse(text)
        if parts and parts.namespace and (parts.signature or (parts.key_name and parts.key)):
            return parts
        raise ConfigurationError(
            "the connection string is malformed; expected Endpoint=sb://NAMESPACE/;"
            "SharedAccessKeyName=...;SharedAccessKey=...;EntityPath=HUB"
        )


def host_of(endpoint: str) -> str:
    """Return the host of an endpoint, and its port if it has one, as the client does.

    Documents of the JVM connector append the hub: `sb://NAMESPACE/HUB`.
    """
    return endpoint.split("://", 1)[-1].partition("/")[0].strip()
