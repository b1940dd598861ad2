"""Connection strings of a hub or its namespace: the one parser, and what it says of others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlsplit

from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError

WHAT = "the connection string"
FORM = (
    "Endpoint=sb://NAMESPACE.servicebus.windows.net/;SharedAccessKeyName=...;SharedAccessKey=...;"
    "EntityPath=HUB"
)
NAMES = {
    name.lower(): name
    for name in (
        *("Endpoint", "SharedAccessKeyName", "SharedAccessKey", "SharedAccessSignature"),
        "EntityPath",
    )
}
"""The parts that are read, by their names in lower case; others are ignored."""

IOT_HUB = frozenset({"hostname", "deviceid", "gatewayhostname"})
IS_OF_IOT_HUB = (
    "is that of an IoT Hub itself, which no client of Event Hubs can use; copy the Event "
    "Hub-compatible endpoint of the same hub, which the portal shows under Hub settings, Built-in "
    "endpoints, and which begins with Endpoint=sb://"
)
STORAGE = frozenset({"accountname", "accountkey", "blobendpoint", "usedevelopmentstorage"})


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
    def parse(cls, text: Any, what: str = WHAT) -> Self:
        """Return the parts of a string that the client can read; any of them may be missing.

        Args:
            text: of any type.
            what: how the message refers to it.

        Raises:
            ConfigurationError: it is malformed, or that of another service. The message does not
                show it.

        Source: azure-core 1.36, `utils/_connection_string_parser.py`; azure-eventhub 5.15.1,
        `_client_base.py`, `_parse_conn_str`, which does not find a name with a blank before it,
        and refuses an endpoint without a scheme.
        """
        if fault := next(faults(text), None):
            raise ConfigurationError(f"{what} {fault}")
        fields = {name.lower(): value for name, value in parts_of(text)}
        return cls(
            urlsplit(fields.get("endpoint", "")).netloc,
            *(
                fields.get(name, "")
                for name in (
                    *("entitypath", "sharedaccesskeyname", "sharedaccesskey"),
                    "sharedaccesssignature",
                )
            ),
        )

    @classmethod
    def with_secret(cls, text: Any, what: str = WHAT) -> Self:
        """Return the parts of a string with a namespace, and a key or a signature.

        Raises:
            ConfigurationError: as for `parse`, or a part is missing.
        """
        parts = cls.parse(text, what)
        needed = {"Endpoint": parts.namespace}
        if not parts.signature:
            needed |= {"SharedAccessKeyName": parts.key_name, "SharedAccessKey": parts.key}
        if missing := [name for name, value in needed.items() if not value]:
            raise ConfigurationError(f"{what} has no {' and no '.join(missing)}; expected {FORM}")
        return parts

    @classmethod
    def of_hub(cls, text: Any, eventhub_name: str | None = None, what: str = WHAT) -> Self:
        """Return the parts, as `with_secret` does; `hub` is `eventhub_name` if that is passed.

        Raises:
            ConfigurationError: as for `with_secret`, or neither names a hub.
        """
        parts = cls.with_secret(text, what)
        if not (hub := eventhub_name or parts.hub):
            raise ConfigurationError(
                f"{what} of {parts.namespace} names no hub; add ;EntityPath=HUB to it, or pass the "
                "name of the hub beside it"
            )
        return replace(parts, hub=hub)


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each part, as they are written."""
    for part in text.strip().rstrip(";").split(";"):
        name, _, value = part.partition("=")
        yield name, value


def faults(text: object) -> Iterator[str]:
    """Yield what is wrong with a connection string, the most telling first; never a value of it."""
    if not isinstance(text, str):
        kind = "None" if text is None else f"of type {kind_of(text)}"
        yield f"is {kind}; expected a string, {FORM}"
        return
    if not text.strip():
        yield f"is empty; is the environment variable set? Expected {FORM}"
        return
    parts = list(parts_of(text))
    names = [name.strip().lower() for name, _ in parts]
    if not IOT_HUB.isdisjoint(names):
        yield IS_OF_IOT_HUB
    if not STORAGE.isdisjoint(names):
        yield f"is that of a storage account; expected that of an event hub, {FORM}"
    if text.strip()[0] in "'\"":
        yield "is in quotation marks, which are no part of it; leave them out"
    if any(each != each.strip() for part in parts for each in part):
        yield (
            "has a blank or a line break beside a ; or a =, which the client does not skip; leave "
            "it out"
        )
    for name, value in parts:
        if not name or not value:
            known = NAMES.get(name.lower())
            part = f"no value for {known}" if known else "a part that is not NAME=VALUE"
            yield f"is malformed: it has {part}; expected {FORM}"
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield f"is malformed: it has {NAMES.get(twice, 'a name')} twice; expected {FORM}"
    endpoint = dict(zip(names, (value for _, value in parts), strict=True)).get("endpoint")
    if endpoint is not None and not has_host(endpoint):
        yield f"has an Endpoint that does not begin with sb:// and a host; expected {FORM}"


def has_host(endpoint: str) -> bool:
    """Return whether the client finds a host in an endpoint."""
    try:
        return bool(urlsplit(endpoint).netloc)
    except ValueError:  # brackets that are not those of an IPv6 address
        return False


def host_of(endpoint: str) -> str:
    """Return the host of an endpoint, and its port if it has one, with or without a scheme.

    Documents of the JVM connector append the hub: `sb://NAMESPACE/HUB`.
    """
    return endpoint.split("://", 1)[-1].partition("/")[0].strip()
