"""URLs, connection strings and other constructor arguments that sync and async stores share.

Every function here raises `ConfigurationError` for what it does not accept.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from azure.storage.blob import ContainerClient

from eventhub_checkpoints._shared.secrets import holds_secret, masked, quoted
from eventhub_checkpoints._shared.settings import StoreSettings, did_you_mean, refuse_misspelt
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.blob.protocol import EMULATOR_ACCOUNT

Client = TypeVar("Client")

EXPECTED = "https://ACCOUNT.blob.core.windows.net/CONTAINER[?SAS]"
STRING = "the connection string"
STRING_FORM = (
    "DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=KEY;EndpointSuffix=core.windows.net"
)
ACCOUNT = re.compile(r"https?://[^/@;=]+(/.*)?|[^/@;=:]+[.:][^/@;=]+(/.*)?", re.IGNORECASE)
OTHER_SERVICE = re.compile(
    r"\.(dfs|queue|table|file|servicebus)\.(?:core|storage|windows|chinacloudapi|usgovcloudapi)\.",
    re.IGNORECASE,
)
SERVICES = {
    "dfs": "the account's Data Lake Storage",
    "queue": "the account's queues",
    "table": "the account's tables",
    "file": "the account's file shares",
    "servicebus": "an Event Hubs namespace",
}
IP = re.compile(r"[\d.]+|.*:.*")
CONTAINER = re.compile(r"\$root|(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class ContainerUrl:
    """Components of a container's URL.

    Attributes:
        account_url: without container and query.
        container: the container's name.
        sas: the query, with its signature; `""` if there is none. Never shown.
    """

    account_url: str
    container: str
    sas: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse `https://ACCOUNT.blob.core.windows.net/CONTAINER[?SAS]`.

        The account of an emulator, and of a host that is an IP address, is the path's first part.

        Raises:
            ConfigurationError: it is not such a URL, or the container's name is invalid.
        """
        checked_text("the container's URL", url)
        try:
            parts = urlsplit(url)
        except ValueError:  # its message repeats the address, which may hold a password
            raise ConfigurationError(f"the URL cannot be parsed; expected {EXPECTED}") from None
        names = [name for name in parts.path.split("/") if name]
        has_account = names and (names[0] == EMULATOR_ACCOUNT or IP.fullmatch(parts.hostname or ""))
        account = f"/{names[0]}" if has_account else ""
        container = "/".join(names[1:] if has_account else names)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
        if is_http and "@" in parts.netloc + parts.path:
            raise ConfigurationError(
                f"the URL must not have a user or password; expected {EXPECTED}"
            )
        if is_http and holds_secret(parts.netloc):
            raise ConfigurationError(f"the URL's host is a secret; expected {EXPECTED}")
        if is_http and not container:
            raise ConfigurationError(f"the URL names no container: expected {EXPECTED}")
        if not is_http:
            hint = did_you_mean(url, ("http",))
            raise ConfigurationError(f"{quoted(url)}: expected {EXPECTED}{hint}")
        check_service(parts.netloc)
        checked_container(container)
        return cls(f"{parts.scheme}://{parts.netloc}{account}", container, parts.query)

    @property
    def is_emulator(self) -> bool:
        """Return whether the emulator's published key is accepted."""
        return self.account_url.endswith(f"/{EMULATOR_ACCOUNT}")

    def __repr__(self) -> str:
        return f"ContainerUrl({self.account_url}/{self.container})"


def checked_text(what: str, value: Any) -> str:
    """Return the value if it is a string, and not, for example, an unset environment variable."""
    if not isinstance(value, str):
        kind = "None" if value is None else f"of type {type(value).__name__}"
        raise ConfigurationError(
            f"{what} is {kind}; expected a string; is the environment variable set?"
        )
    return value


def checked_connection_string(text: Any) -> str:
    """Return a connection string of a storage account, as the driver accepts it.

    Source: azure-storage-blob 12.30, `_shared/base_client.py`, `parse_connection_str`.
    """
    parts = [part.partition("=") for part in checked_text(STRING, text).rstrip(";").split(";")]
    names = {name.strip().lower() for name, _, _ in parts}
    if "endpoint" in names:
        raise ConfigurationError(
            f"{STRING} is that of an event hub; expected that of a storage account, {STRING_FORM}"
        )
    is_account = not names.isdisjoint({"accountname", "blobendpoint", "usedevelopmentstorage"})
    if not is_account or not all(equals for _, equals, _ in parts):
        raise ConfigurationError(
            f"{STRING} cannot be read; expected {STRING_FORM}, as the portal shows it under the "
            "account's access keys"
        )
    return str(text)


def checked_account(url: Any) -> str:
    """Return an account's URL, as the driver accepts it: a host may omit `https://`."""
    if not ACCOUNT.fullmatch(checked_text("the account URL", url).partition("?")[0]):
        raise ConfigurationError(
            "the account URL is not an address: expected https://ACCOUNT.blob.core.windows.net; "
            "a connection string goes to from_connection_string"
        )
    check_service(url)
    return str(url)


def check_service(url: str) -> None:
    """Refuse the address of a service other than Blob Storage.

    Source: Azure Storage, "Storage account overview", "Storage account endpoints".
    """
    if match := OTHER_SERVICE.search(url.partition("?")[0]):
        raise ConfigurationError(
            f"the URL is that of {SERVICES[match[1].lower()]}; expected that of "
            "Blob Storage, https://ACCOUNT.blob.core.windows.net"
        )


def checked_container(name: Any) -> str:
    """Return a container's name if it is valid.

    Source: Azure Storage, "Naming and Referencing Containers, Blobs, and Metadata".
    """
    if not CONTAINER.fullmatch(checked_text("the container name", name)):
        is_one_word = {*":;=@?%"}.isdisjoint(name)  # otherwise it may be a URL with a password
        raise ConfigurationError(
            f"{quoted(name) if is_one_word else 'this'} is not a container name: expected 3 to 63 "
            "lower-case letters, digits and single hyphens, without a path"
        )
    return str(name)


BLOB_SETTINGS = (
    "api_version",
    "secondary_hostname",
    "container_client",
    "connect",
    "create_container",
    "name_case",
)
CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"


def separated(arguments: dict[str, Any]) -> tuple[StoreSettings, dict[str, Any]]:
    """Return the store's own settings, and the remaining arguments for the driver's client."""
    names = StoreSettings.__annotations__.keys()
    settings = {name: arguments[name] for name in names & arguments.keys()}
    client = {name: value for name, value in arguments.items() if name not in names}
    refuse_misspelt(client, [*names, *BLOB_SETTINGS], "a setting")
    return StoreSettings(**settings), client  # type: ignore[typeddict-item]  # names are its keys


def check_client(connect: Any, container_client: Any) -> None:
    """Refuse arguments that are not a client, or cannot create one."""
    if connect is not None and not callable(connect):
        raise ConfigurationError(
            f"connect is {quoted(connect)}; expected a callable that returns a client"
        )
    if container_client is not None and not hasattr(container_client, "list_blobs"):
        raise ConfigurationError(
            f"container_client is of type {type(container_client).__name__}; "
            "expected a ContainerClient of azure-storage-blob"
        )


def made(make: Callable[..., Client], *args: Any, **kwargs: Any) -> Client:
    """Create the driver's client.

    Raises:
        ConfigurationError: the driver refused the arguments.
    """
    try:
        return make(*args, **kwargs)
    except (ValueError, TypeError) as error:
        reason = masked(str(error)).rstrip(".")
    # Not chained: the driver's own message may repeat a secret.
    raise ConfigurationError(
        f"the client of azure-storage-blob cannot be made: {reason}; credential takes an account "
        "key, a SAS, a dict of account_name and account_key, or a credential of azure-identity"
    )


def version_arguments(api_version: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return client arguments that make every request carry this service version.

    The driver refuses versions older than those it is tested with; Azure Stack Hub needs such
    versions, so they are sent as a header.
    """
    headers = {**(arguments.get("headers") or {}), "x-ms-version": api_version}
    try:
        ContainerClient("https://localhost", "version", api_version=api_version).close()
    except ValueError:
        return {**arguments, "headers": headers}
    return {**arguments, "headers": headers, "api_version": api_version}


def connection_string_for(address: ContainerUrl) -> str | None:
    """Return the connection string in the environment if it is for the same account."""
    text = os.environ.get(CONNECTION_STRING)
    if not text:
        return None
    try:
        checked_connection_string(text)
        client = made(ContainerClient.from_connection_string, text, address.container)
    except ConfigurationError as error:
        raise ConfigurationError(f"{CONNECTION_STRING}: {error}") from None
    with client:
        same = client.url.partition("?")[0] == f"{address.account_url}/{address.container}"
    return text if same else None
