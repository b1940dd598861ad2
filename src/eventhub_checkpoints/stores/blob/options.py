"""Constructor arguments that sync and async blob stores share."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints._shared.suggestions import refuse_misspelt
from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError
from eventhub_checkpoints.stores.blob.url import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    ContainerUrl,
    checked_connection_string,
)

try:
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.storage.blob import ContainerClient
except ImportError as error:
    raise MissingDriverError.of_extra("the Blob store", "blob") from error

Client = TypeVar("Client")

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
    """Return the store's own settings, and the remaining arguments for the driver's client.

    Raises:
        ConfigurationError: a name is a misspelling of a setting; the driver would ignore it.
    """
    names = StoreSettings.__annotations__.keys()
    settings = {name: arguments[name] for name in names & arguments.keys()}
    client = {name: value for name, value in arguments.items() if name not in names}
    refuse_misspelt(client, [*names, *BLOB_SETTINGS], "setting")
    return StoreSettings(**settings), client  # type: ignore[typeddict-item]  # names are its keys


def check_client(connect: Any, container_client: Any) -> None:
    """Refuse arguments that are not a client, or cannot create one.

    Raises:
        ConfigurationError: an argument is something else.
    """
    if connect is not None and not callable(connect):
        raise ConfigurationError(
            f"connect is {quoted(connect)}; expected a callable that makes a client"
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
        said = masked(str(error)).rstrip(".")
    # Not chained: the driver's own message may repeat a secret.
    raise ConfigurationError(
        f"the client of azure-storage-blob cannot be made: {said}; credential takes an account "
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


def emulator_credential() -> AzureNamedKeyCredential:
    """Return the published key, which every emulator accepts."""
    return AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)


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


def ways_to_a_credential(address: ContainerUrl) -> str:
    """Return the message for a missing credential."""
    return (
        f"no credential for {address.account_url}: pass credential=, put a SAS into the URL, "
        f"set {CONNECTION_STRING} for that account, or install azure-identity"
    )
