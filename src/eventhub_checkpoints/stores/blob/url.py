"""Container URLs."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.suggestions import did_you_mean
from eventhub_checkpoints.errors import ConfigurationError

EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (  # published with the emulator and the same everywhere: not a secret
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
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
            raise ConfigurationError(f"no address can be read; expected {EXPECTED}") from None
        names = [name for name in parts.path.split("/") if name]
        has_account = bool(names) and (names[0] == EMULATOR_ACCOUNT or is_ip(parts.hostname))
        account = f"/{names[0]}" if has_account else ""
        container = "/".join(names[1:] if has_account else names)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
        if is_http and "@" in parts.netloc + parts.path:
            raise ConfigurationError(
                f"no user or password belongs into the URL; expected {EXPECTED}"
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

    __str__ = __repr__


def is_ip(host: str | None) -> bool:
    """Return whether the host is an IP address rather than a name."""
    try:
        ip_address(host or "")
    except ValueError:
        return False
    return True


def checked_text(what: str, value: Any) -> str:
    """Return the value if it is a string, and not, for example, an unset environment variable.

    Raises:
        ConfigurationError: it is not a string; only None is shown, because bytes may hold a
            secret.
    """
    if not isinstance(value, str):
        found = "None" if value is None else f"of type {type(value).__name__}"
        raise ConfigurationError(
            f"{what} is {found}; expected a text; is the environment variable set?"
        )
    return value


def checked_connection_string(text: Any) -> str:
    """Return a connection string of a storage account, as the driver accepts it.

    Raises:
        ConfigurationError: it is invalid; the message does not repeat it, because it holds a key.

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
    """Return an account's URL, as the driver accepts it: a host may omit `https://`.

    Raises:
        ConfigurationError: it is invalid; it is not shown, because it may be a connection string.
    """
    if not ACCOUNT.fullmatch(checked_text("the account URL", url).partition("?")[0]):
        raise ConfigurationError(
            "the account URL is no address: expected https://ACCOUNT.blob.core.windows.net; "
            "a connection string goes to from_connection_string"
        )
    check_service(url)
    return str(url)


def check_service(url: str) -> None:
    """Refuse the address of a service other than Blob Storage.

    Raises:
        ConfigurationError: it is such an address.

    Source: Azure Storage, "Storage account overview", "Storage account endpoints".
    """
    if found := OTHER_SERVICE.search(url.partition("?")[0]):
        raise ConfigurationError(
            f"the URL is that of {SERVICES[found[1].lower()]}; expected that of "
            "Blob Storage, https://ACCOUNT.blob.core.windows.net"
        )


def checked_container(name: Any) -> str:
    """Return a container's name if it is valid.

    Raises:
        ConfigurationError: the service would refuse it.

    Source: Azure Storage, "Naming and Referencing Containers, Blobs, and Metadata".
    """
    if not CONTAINER.fullmatch(checked_text("the container name", name)):
        is_one_word = {*":;=@?%"}.isdisjoint(name)  # otherwise it may be a URL with a password
        raise ConfigurationError(
            f"{quoted(name) if is_one_word else 'this'} is no container name: expected 3 to 63 "
            "lower-case letters, digits and single hyphens, without a path"
        )
    return str(name)
