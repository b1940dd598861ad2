"""URLs and connection strings of the services of an Azure Storage account.

Every function here raises `ConfigurationError` for what it does not accept.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from azure.core.credentials import AzureNamedKeyCredential

from eventhub_checkpoints._shared.clouds import (
    PUBLIC,
    in_cloud_of,
    is_event_hubs,
    storage_host,
)
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.azure_storage.authorization import (
    Authorization,
    TextToSign,
    authorization_of,
    is_sas,
)
from eventhub_checkpoints.stores.backends import TABLE, Backend
from eventhub_checkpoints.stores.connections import default_credential
from eventhub_checkpoints.stores.suggestions import did_you_mean

EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (  # published with the emulator and the same everywhere: not a secret
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
STRING = "the connection string"
SUFFIX = f"core.{PUBLIC.domain}"
STRING_FORM = (
    f"DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=KEY;EndpointSuffix={SUFFIX}"
)
ACCOUNT = re.compile(
    r"(https?://(?P<url_host>[^/@;=]+)|(?P<host>[^/@;=:]+[.:][^/@;=]+))(/.*)?", re.IGNORECASE
)
SERVICES = {
    "blob": "the account's blobs",
    "dfs": "the account's Data Lake Storage",
    "queue": "the account's queues",
    "table": "the account's tables",
    "file": "the account's file shares",
}
ANY_SERVICE = re.compile(rf"\.({'|'.join(SERVICES)})\.(?:core|storage)\.", re.IGNORECASE)
"""In the host names of every cloud, also of those whose domain is not known."""
IP = re.compile(r"[\d.]+|.*:.*")
HOST = re.compile(rb"[A-Za-z0-9._-]*|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
"""A name in ASCII, an address of IPv4, or of IPv6 without brackets."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of a storage account.

    Attributes:
        backend: the class of its stores, whose name is that of the service in host names and
            connection strings.
        resource: what a URL names, after the account.
        names: pattern of the names of resources; `name_rule` says it in messages.
        contents: what a SAS of the service is for.
        rights: what a credential needs for each operation of its requests; `role` has them all.
        deletion: for how long the service refuses a resource that is being deleted.
        text_to_sign: what the signature of a request covers.
        schemes: of the URLs of the service itself.
    """

    backend: Backend
    resource: str
    names: re.Pattern[str]
    name_rule: str
    contents: str
    rights: Mapping[str, str]
    role: str
    deletion: str
    text_to_sign: TextToSign
    schemes: Collection[str] = ("https", "http")

    @property
    def name(self) -> str:
        """Return its name in host names and connection strings."""
        return self.backend.name

    @property
    def title(self) -> str:
        """Return its name in messages."""
        return self.backend.services[0].title

    @property
    def emulator_port(self) -> int | None:
        """Return the port at which the emulator serves it."""
        return self.backend.services[0].emulator_port

    @property
    def form(self) -> str:
        """Return what the URL of a resource looks like, with placeholders."""
        return self.backend.services[0].form

    @property
    def account_form(self) -> str:
        """Return what the URL of an account looks like."""
        return f"https://ACCOUNT.{self.name}.{SUFFIX}"

    def checked_name(self, name: Any) -> str:
        """Return the name of a resource if it is valid."""
        if not self.names.fullmatch(checked_text(f"the {self.resource} name", name)):
            is_one_word = {*":;=@?%"}.isdisjoint(name)  # otherwise it may be a URL with a password
            raise ConfigurationError(
                f"{quoted(name) if is_one_word else 'this'} is not a {self.resource} name: "
                f"expected {self.name_rule}, without a path"
            )
        return str(name)

    def lacks(self, operation: str) -> str:
        """Return that a credential lacks the right to an operation, for messages."""
        right = self.rights[operation]
        return f"the credential lacks {right}; the role '{self.role}' has all that is needed"

    def described(self, address: str) -> str:
        """Return a resource and its account, for messages.

        Args:
            address: the URL of the resource, encoded, without a SAS.
        """
        account, _, name = address.rpartition("/")
        return f"{self.resource} {unquote(name)!r} of {account}"


@dataclass(frozen=True, slots=True)
class ResourceUrl:
    """Components of the URL of a container, or of what another service has in its place.

    Attributes:
        account_url: without the resource and the query.
        name: of the resource.
        sas: the query, with its signature; `""` if there is none. Never shown.
    """

    account_url: str
    name: str
    sas: str

    @classmethod
    def parse(cls, url: str, service: Service) -> Self:
        """Parse `https://ACCOUNT.blob.core.windows.net/CONTAINER[?SAS]`, or another service's.

        The account of an emulator, and of a host that is an IP address, is the path's first part.
        """
        expected = f"{service.form}[?SAS]"
        checked_text(f"the {service.resource}'s URL", url)
        try:
            parts = urlsplit(url)
            _ = parts.port  # raises where it is invalid
            if not HOST.fullmatch((parts.hostname or "").encode("idna")):
                raise ValueError
        except ValueError:  # its message repeats the address, which may hold a password
            raise ConfigurationError(f"the URL cannot be parsed; expected {expected}") from None
        expected = in_cloud_of(parts.hostname or "", expected)
        names = [name for name in parts.path.split("/") if name]
        has_account = names and (names[0] == EMULATOR_ACCOUNT or IP.fullmatch(parts.hostname or ""))
        account = f"/{names[0]}" if has_account else ""
        name = "/".join(names[1:] if has_account else names)
        is_http = parts.scheme in service.schemes and bool(parts.hostname)
        if is_http and "@" in parts.netloc + parts.path:
            raise ConfigurationError(
                f"the URL must not have a user or password; expected {expected}"
            )
        if is_http and holds_secret(parts.netloc):
            raise ConfigurationError(f"the URL's host is a secret; expected {expected}")
        if is_http and parts.fragment:
            raise ConfigurationError(
                f"the URL has a #, and what follows it is in no {service.resource}'s name and no "
                f"SAS; expected {expected}"
            )
        if is_http and not name:
            raise ConfigurationError(f"the URL names no {service.resource}: expected {expected}")
        if not is_http:
            hint = did_you_mean(url, service.schemes)
            raise ConfigurationError(f"{quoted(url)}: expected {expected}{hint}")
        check_host(parts.netloc, service)
        service.checked_name(name)
        return cls(f"{parts.scheme}://{parts.netloc}{account}", name, parts.query)

    @property
    def host(self) -> str:
        """Return the host of the account, with its port."""
        return urlsplit(self.account_url).netloc

    @property
    def is_emulator(self) -> bool:
        """Return whether the emulator's published key is accepted."""
        return self.account_url.endswith(f"/{EMULATOR_ACCOUNT}")

    def __repr__(self) -> str:
        return f"ResourceUrl({self.account_url}/{self.name})"


class Login(NamedTuple):
    """An account, and how to log in to it; never shown.

    Attributes:
        account_url: with or without a SAS.
        credential: None if the URL has it.
        opened: credentials that were opened here, for the store to close.
    """

    account_url: str
    credential: Any
    opened: tuple[Any, ...] = ()


def login_to(address: ResourceUrl, credential: Any, service: Service, identity: str) -> Login:
    """Return the first login that there is.

    In this order: the credential, the URL's SAS, the published key for an emulator's address, the
    connection string in the environment if it is for the same account, and the default credential.

    Args:
        address: of a container or a table.
        credential: what the caller has passed, or None.
        service: the service.
        identity: `azure.identity` or `azure.identity.aio`, where the default credential is.

    Raises:
        ConfigurationError: there is none of these.
    """
    url = address.account_url
    if credential is not None:
        return Login(url, credential)
    if address.sas:
        return Login(f"{url}?{address.sas}", None)
    if address.is_emulator:
        return Login(url, AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY))
    if text := connection_string_for(address, service):
        return Login(*parse_connection_string(text, service))
    otherwise = (
        f"no credential for {url}: pass credential=, put a SAS into the URL, "
        f"set {CONNECTION_STRING} for that account, or install azure-identity"
    )
    opened = default_credential(identity, address.host, otherwise)
    return Login(url, opened, (opened,))


def checked_text(what: str, value: Any) -> str:
    """Return the value if it is a string, and not, for example, an unset environment variable."""
    if not isinstance(value, str):
        kind = "None" if value is None else f"of type {type(value).__name__}"
        raise ConfigurationError(
            f"{what} is {kind}; expected a string; is the environment variable set?"
        )
    return value


def checked_account(url: Any, service: Service) -> str:
    """Return an account's URL, as the driver accepts it: a host may omit `https://`."""
    match = ACCOUNT.fullmatch(checked_text("the account URL", url).partition("?")[0])
    if match is None:
        raise ConfigurationError(
            f"the account URL is not an address: expected {service.account_form}; "
            "a connection string goes to from_connection_string"
        )
    check_host(match["url_host"] or match["host"], service)
    return str(url)


def check_host(host: str, service: Service) -> None:
    """Refuse a host beyond ASCII, which HTTP clients encode differently, or of another service.

    Source: Azure Storage, "Storage account overview", "Storage account endpoints".
    """
    if not host.isascii():
        raise ConfigurationError(
            "the URL's host has characters that are not ASCII; write it in Punycode, as xn--..."
        )
    match = ANY_SERVICE.search(host)
    other = "an Event Hubs namespace" if is_event_hubs(host) else None
    if match and match[1].lower() != service.name:
        other = SERVICES[match[1].lower()]
    if other:
        form = in_cloud_of(host, service.account_form)
        if other == SERVICES["table"]:
            of_table = in_cloud_of(host, TABLE.schemes["table"].form)
            form += f"; for tables, open_store takes {of_table}"
        raise ConfigurationError(
            f"the URL is that of {other}; expected that of {service.title}, {form}"
        )


def with_account_name(account_url: str, credential: Any, service: Service) -> Any:
    """Return an account key with the account's name, if the driver does not find it in the host.

    Source: azure-storage-blob 12.31.1, `_shared/base_client.py`: it looks for `.blob.core.` only,
    which a host in an Azure DNS zone does not have.
    """
    host = account_url.partition("://")[2] or account_url
    match = re.match(rf"{storage_host(service.name)}(?=[:/?]|$)", host)
    is_key = isinstance(credential, str) and not is_sas(credential.removeprefix("?"))
    if match is None or f".{service.name}.core." in match[0] or not is_key:
        return credential
    return {"account_name": match[1], "account_key": credential}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service of an account, and how requests to it are authorised.

    Attributes:
        url: of the account, encoded, without a SAS.
        authorization: None for what is public.
    """

    url: str
    authorization: Authorization

    @classmethod
    def of(cls, account_url: str, credential: Any, service: Service) -> Self | None:
        """Return where to send requests without the driver; None if only the driver knows that.

        Args:
            account_url: with or without `https://` and a SAS.
            credential: any that the driver of the service accepts.
            service: the service.
        """
        url = account_url if "://" in account_url else f"https://{account_url}"
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        host = re.fullmatch(rf"{storage_host(service.name)}(:\d+)?", parts.netloc)
        is_local = parts.hostname in {"localhost", "127.0.0.1"}
        if parts.fragment or (host and path):
            return None
        account = host[1] if host else path.strip("/") if is_local else ""
        try:
            authorization = authorization_of(
                credential, parts.query, account, parts.scheme, service.text_to_sign
            )
        except NotImplementedError:
            return None
        return cls(f"{parts.scheme}://{parts.netloc}{path}", authorization)


def parse_connection_string(text: Any, service: Service) -> tuple[str, Any]:
    """Return the URL of an account's service, and the credential that a connection string has.

    Source: azure-storage-blob 12.30, `_shared/base_client.py`, `parse_connection_str`.
    """
    parts = [part.partition("=") for part in checked_text(STRING, text).rstrip(";").split(";")]
    fields = {name.strip().upper(): value for name, _, value in parts}
    endpoint = f"{service.name.upper()}ENDPOINT"
    if "ENDPOINT" in fields:
        raise ConfigurationError(
            f"{STRING} is that of an event hub; expected that of a storage account, {STRING_FORM}"
        )
    is_account = not fields.keys().isdisjoint({"ACCOUNTNAME", endpoint, "USEDEVELOPMENTSTORAGE"})
    if not is_account or not all(equals for _, equals, _ in parts):
        raise ConfigurationError(
            f"{STRING} cannot be read; expected {STRING_FORM}, as the portal shows it under the "
            "account's access keys"
        )
    if fields.get("USEDEVELOPMENTSTORAGE") == "true":
        return (
            f"http://127.0.0.1:{service.emulator_port}/{EMULATOR_ACCOUNT}",
            EMULATOR_KEY,
        )
    account = fields.get("ACCOUNTNAME", "")
    scheme = fields.get("DEFAULTENDPOINTSPROTOCOL", "https")
    suffix = fields.get("ENDPOINTSUFFIX", SUFFIX)
    url = fields.get(endpoint) or f"{scheme}://{account}.{service.name}.{suffix}"
    if account and "ACCOUNTKEY" in fields:
        return url, {"account_name": account, "account_key": fields["ACCOUNTKEY"]}
    return url, fields.get("SHAREDACCESSSIGNATURE")


def connection_string_for(address: ResourceUrl, service: Service) -> str | None:
    """Return the connection string in the environment if it is for the same account."""
    text = os.environ.get(CONNECTION_STRING)
    if not text:
        return None
    try:
        url, _ = parse_connection_string(text, service)
    except ConfigurationError as error:
        raise ConfigurationError(f"{CONNECTION_STRING}: {error}") from None
    return text if url.partition("?")[0].rstrip("/") == address.account_url else None
