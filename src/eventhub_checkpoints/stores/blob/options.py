"""The constructor's arguments that sync and async stores share.

Every function here raises `ConfigurationError` for what it does not accept.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import unquote_plus

from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import StoreSettings, nearest, refuse_misspelt
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.azure_storage.account import ResourceUrl
from eventhub_checkpoints.stores.blob.protocol import SERVICE, checked_prefix
from eventhub_checkpoints.stores.connections import given_once

Client = TypeVar("Client")


def container_url(url: str, prefix: str | None = None) -> tuple[ResourceUrl, str | None]:
    """Parse `https://ACCOUNT.blob.core.windows.net/CONTAINER[?SAS]`.

    Returns:
        The URL without `prefix=` in its query; and that prefix, or the argument.
    """
    address = ResourceUrl.parse(url, SERVICE)
    pairs = [pair for pair in address.sas.split("&") if pair]
    own = [pair for pair in pairs if pair.partition("=")[0] == "prefix"]
    if len(own) > 1:
        raise ConfigurationError("prefix is in the URL more than once; give it once")
    of_url = unquote_plus(own[0].partition("=")[2]) if own else None
    rest = [pair for pair in pairs if pair not in own]
    for pair in rest:
        name = pair.partition("=")[0]
        if name.isidentifier() and nearest(name, ["prefix"]):
            raise ConfigurationError(
                f"the URL's query has {quoted(name)}; expected a SAS, or prefix=NAME in lower case"
            )
    chosen = given_once("prefix", prefix, of_url)
    checked_prefix(chosen)  # here, because a missing credential would be told first
    return replace(address, sas="&".join(rest)), chosen


BLOB_SETTINGS = (
    "api_version",
    "secondary_hostname",
    "container_client",
    "connect",
    "create_container",
    "name_case",
    "prefix",
    "lean",
)


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
        reason = message_of(error).rstrip(".")
    # Not chained: the driver's own message may repeat a secret.
    raise ConfigurationError(
        f"the client of azure-storage-blob cannot be made: {reason}; credential takes an account "
        "key, a SAS, a dict of account_name and account_key, or a credential of azure-identity"
    )


@dataclass(frozen=True, slots=True)
class ContainerLogin:
    """The container to connect to.

    Attributes:
        account_url: with or without `https://` and a SAS.
        container: the container's name.
        credential: any that azure-storage-blob accepts.
    """

    account_url: str = field(repr=False)
    container: str
    credential: Any = field(repr=False)

    def client(self, kind: Callable[..., Client], **arguments: Any) -> Client:
        """Create the driver's client.

        Raises:
            ConfigurationError: the driver refused the arguments.
        """
        return made(kind, self.account_url, self.container, self.credential, **arguments)

    def service(self, kind: Callable[..., Client], **arguments: Any) -> Client:
        """Create the driver's client of the account.

        Raises:
            ConfigurationError: the driver refused the arguments.
        """
        return made(kind, self.account_url, self.credential, **arguments)
