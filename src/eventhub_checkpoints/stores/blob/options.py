"""URLs, connection strings and other constructor arguments that sync and async stores share.

Every function here raises `ConfigurationError` for what it does not accept.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit
from urllib.request import getproxies

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from eventhub_checkpoints._shared.secrets import holds_secret, masked, quoted
from eventhub_checkpoints._shared.settings import StoreSettings, refuse_misspelt
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.backends import BLOB
from eventhub_checkpoints.stores.blob import rest
from eventhub_checkpoints.stores.blob.protocol import EMULATOR_ACCOUNT, EMULATOR_KEY
from eventhub_checkpoints.stores.suggestions import did_you_mean

Client = TypeVar("Client")

EXPECTED = f"{BLOB.schemes['https'].form}[?SAS]"
STRING = "the connection string"
STRING_FORM = (
    "DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=KEY;EndpointSuffix=core.windows.net"
)
OF_ACCOUNT = ("ACCOUNTNAME", "BLOBENDPOINT", "USEDEVELOPMENTSTORAGE")
"""Fields of which the connection string of a storage account has one."""
ACCOUNT = re.compile(
    r"(https?://(?P<url_host>[^/@;=]+)|(?P<host>[^/@;=:]+[.:][^/@;=]+))(/.*)?", re.IGNORECASE
)
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
HOST = re.compile(rb"[A-Za-z0-9._-]*|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
"""A name in ASCII, an address of IPv4, or of IPv6 without brackets."""
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
            _ = parts.port  # raises where it is invalid
            if not HOST.fullmatch((parts.hostname or "").encode("idna")):
                raise ValueError
        except ValueError:  # its message repeats the address, which may hold a password
            raise ConfigurationError(f"the URL cannot be parsed; expected {EXPECTED}") from None
        names = [name for name in parts.path.split("/") if name]
        has_account = names and (names[0] == EMULATOR_ACCOUNT or IP.fullmatch(parts.hostname or ""))
        account = f"/{names[0]}" if has_account else ""
        container = "/".join(names[1:] if has_account else names)
        is_http = parts.scheme in BLOB.schemes and bool(parts.hostname)
        if is_http and "@" in parts.netloc + parts.path:
            raise ConfigurationError(
                f"the URL must not have a user or password; expected {EXPECTED}"
            )
        if is_http and holds_secret(parts.netloc):
            raise ConfigurationError(f"the URL's host is a secret; expected {EXPECTED}")
        if is_http and not container:
            raise ConfigurationError(f"the URL names no container: expected {EXPECTED}")
        if not is_http:
            hint = did_you_mean(url, BLOB.schemes)
            raise ConfigurationError(f"{quoted(url)}: expected {EXPECTED}{hint}")
        check_host(parts.netloc)
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


def checked_account(url: Any) -> str:
    """Return an account's URL, as the driver accepts it: a host may omit `https://`."""
    match = ACCOUNT.fullmatch(checked_text("the account URL", url).partition("?")[0])
    if match is None:
        raise ConfigurationError(
            "the account URL is not an address: expected https://ACCOUNT.blob.core.windows.net; "
            "a connection string goes to from_connection_string"
        )
    check_host(match["url_host"] or match["host"])
    return str(url)


def check_host(host: str) -> None:
    """Refuse a host beyond ASCII, which HTTP clients encode differently, or of another service.

    Source: Azure Storage, "Storage account overview", "Storage account endpoints".
    """
    if not host.isascii():
        raise ConfigurationError(
            "the URL's host has characters that are not ASCII; write it in Punycode, as xn--..."
        )
    if match := OTHER_SERVICE.search(host):
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
    "lean",
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


CONNECT_SECONDS = 10.0
REST_ARGUMENTS = frozenset(
    {
        *("connection_verify", "connection_cert", "proxies", "use_env_settings"),
        *("connection_timeout", "read_timeout", "secondary_hostname"),
    }
)
"""Arguments of the driver's client that requests without the driver honour. The time limits of the
store replace the two timeouts, and a request is never repeated at the secondary endpoint.
"""
ACCOUNT_HOST = re.compile(r"([a-z0-9]{3,24})\.blob\.core\.[a-z.]+(:\d+)?")
SAS_KEYS = re.compile("s[a-z]{1,7}|rsc[cdelt]|[se][pr]k")


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

    def rest(self, api_version: str) -> rest.Container | None:
        """Return how to build requests without the driver; None if only the driver can."""
        url = self.account_url if "://" in self.account_url else f"https://{self.account_url}"
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        host = ACCOUNT_HOST.fullmatch(parts.netloc)
        is_local = parts.hostname in {"localhost", "127.0.0.1"}
        if parts.fragment or (host and path):
            return None
        account = host[1] if host else path.strip("/") if is_local else ""
        try:
            authorization = authorization_of(self.credential, parts.query, account, parts.scheme)
        except NotImplementedError:
            return None
        base = f"{parts.scheme}://{parts.netloc}{path}"
        return rest.Container(base, self.container, authorization, api_version)


def authorization_of(credential: Any, sas: str, account: str, scheme: str) -> rest.Authorization:
    """Return how requests are authorised.

    Args:
        credential: the credential.
        sas: query of the account's URL.
        account: name of the account; `""` if its URL does not show it.
        scheme: of the account's URL.

    Raises:
        NotImplementedError: only the driver knows, or refuses, this.
    """
    if sas and credential is None and is_sas(sas):
        return fixed_sas(sas)
    if sas:
        raise NotImplementedError
    match credential:
        case None:
            return None
        case AzureSasCredential():
            return rest.Sas(lambda: credential.signature.removeprefix("?"))
        case AzureNamedKeyCredential():
            return rest.SharedKey(partial(named_key, credential))
        case {"account_name": str(name), "account_key": str(key), **others} if not others:
            return rest.SharedKey(lambda: (name, key))
        case str() if is_sas(credential.removeprefix("?")):
            return fixed_sas(credential.removeprefix("?"))
        case str() if account:
            return rest.SharedKey(lambda: (account, credential))
    if hasattr(credential, "get_token") and scheme == "https":
        return rest.Token(credential)
    raise NotImplementedError


def named_key(credential: AzureNamedKeyCredential) -> tuple[str, str]:
    """Return the account's name and key as they are now."""
    key = credential.named_key
    return key.name, key.key


def is_sas(query: str) -> bool:
    """Return whether a query has the parameters of a SAS, and no others."""
    keys = [key for key, _ in parse_qsl(query)]
    return "sig" in keys and all(map(SAS_KEYS.fullmatch, keys))


def fixed_sas(query: str) -> rest.Sas:
    """Return a SAS, encoded as the driver does."""
    encoded = "&".join(f"{key}={quote(value, safe='')}" for key, value in parse_qsl(query))
    return rest.Sas(lambda: encoded)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to connect to a server.

    Attributes:
        server: URL of the server.
        proxy: URL of the proxy; None without one.
        authority: file or directory of the certificates that are trusted; True for those that the
            HTTP library trusts, False if the server's certificate is not verified.
        certificate: files of the client's certificate and its key.
        use_environment: whether the environment may name certificates.
    """

    server: str
    proxy: str | None = field(repr=False)
    authority: str | bool
    certificate: tuple[str, ...]
    use_environment: bool

    @classmethod
    def of(cls, arguments: Mapping[str, Any], url: str) -> Self | None:
        """Return the options in the arguments of the driver's client; None if it has others.

        Args:
            arguments: of the driver's client.
            url: of the container.
        """
        proxies = arguments.get("proxies") or {}
        if not arguments.keys() <= REST_ARGUMENTS or not proxies.keys() <= {"http", "https"}:
            return None
        use_environment = arguments.get("use_env_settings", True)
        proxy = proxies.get(url.partition(":")[0])
        if use_environment and not proxy:
            proxy = proxy_of_environment(url)
        certificate = arguments.get("connection_cert") or ()
        return cls(
            "/".join(url.split("/", 3)[:3]),
            proxy,
            arguments.get("connection_verify", True),
            (certificate,) if isinstance(certificate, str) else tuple(certificate),
            use_environment,
        )


def proxy_of_environment(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None if it names none."""
    if not getproxies():
        return None
    from requests.utils import get_environ_proxies, select_proxy

    return select_proxy(url, get_environ_proxies(url))


def parse_connection_string(text: Any) -> tuple[str, Any]:
    """Return the account's URL and the credential that a connection string has.

    Raises:
        ConfigurationError: it is not a connection string of a storage account.

    Source: azure-storage-blob 12.30, `_shared/base_client.py`, `parse_connection_str`.
    """
    parts = [part.partition("=") for part in checked_text(STRING, text).rstrip(";").split(";")]
    fields = {name.strip().upper(): value for name, _, value in parts}
    if "ENDPOINT" in fields:
        raise ConfigurationError(
            f"{STRING} is that of an event hub; expected that of a storage account, {STRING_FORM}"
        )
    is_account = not fields.keys().isdisjoint(OF_ACCOUNT)
    if not is_account or not all(equals for _, equals, _ in parts):
        raise ConfigurationError(
            f"{STRING} cannot be read; expected {STRING_FORM}, as the portal shows it under the "
            "account's access keys"
        )
    if fields.get("USEDEVELOPMENTSTORAGE") == "true":
        return f"http://127.0.0.1:10000/{EMULATOR_ACCOUNT}", EMULATOR_KEY
    account = fields.get("ACCOUNTNAME", "")
    scheme = fields.get("DEFAULTENDPOINTSPROTOCOL", "https")
    suffix = fields.get("ENDPOINTSUFFIX", "core.windows.net")
    url = fields.get("BLOBENDPOINT") or f"{scheme}://{account}.blob.{suffix}"
    if account and "ACCOUNTKEY" in fields:
        return url, {"account_name": account, "account_key": fields["ACCOUNTKEY"]}
    return url, fields.get("SHAREDACCESSSIGNATURE")


def connection_string_for(address: ContainerUrl) -> str | None:
    """Return the connection string in the environment if it is for the same account."""
    text = os.environ.get(CONNECTION_STRING)
    if not text:
        return None
    try:
        url, _ = parse_connection_string(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{CONNECTION_STRING}: {error}") from None
    return text if url.partition("?")[0].rstrip("/") == address.account_url else None
