"""Credentials of Azure Storage: account keys, shared access signatures, and tokens.

Source: Azure Storage REST API, "Authorize with Shared Key"; azure-storage-blob 12.31.1.
"""

import binascii
import hmac
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError

from eventhub_checkpoints.stores.azure_storage.messages import Request, Response

REFRESH_BEFORE = 300.0
"""Seconds before its expiry at which a token is replaced, as azure-core does."""
TOKEN_SCOPE = "https://storage.azure.com/.default"
SAS_KEYS = re.compile("tn|s[a-z]{1,7}|rsc[cdelt]|[se][pr]k")

TextToSign = Callable[[str, Request], str]
"""Returns what a signature covers, from the account's name and the request."""


@dataclass(frozen=True, slots=True)
class SharedKey:
    """Account key.

    Attributes:
        pair: returns the account's name and its key, which may be replaced at any time.
        text_to_sign: as the service demands it; tables have another than blobs.
    """

    pair: Callable[[], tuple[str, str]] = field(repr=False)
    text_to_sign: TextToSign

    def sign(self, request: Request) -> None:
        """Add the signature of the request to its headers.

        Raises:
            ClientAuthenticationError: the key is not valid base64.
        """
        account, key = self.pair()
        try:
            secret = b64decode(key, validate=False)
        except (binascii.Error, ValueError):
            raise AzureSigningError("the account key is not valid base64") from None
        digest = hmac.digest(secret, self.text_to_sign(account, request).encode(), sha256)
        request.headers["Authorization"] = f"SharedKey {account}:{b64encode(digest).decode()}"


class AzureSigningError(ClientAuthenticationError):
    """The request cannot be signed."""


def text_to_sign(account: str, request: Request) -> str:
    """Return what the signature of a request to blobs, queues or files covers."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers["content-length"] = str(len(request.body) or "")
    standard = (
        *("content-encoding", "content-language", "content-length", "content-md5", "content-type"),
        *("date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
    )
    lines = [request.method, *(headers.get(name, "") for name in standard)]
    lines += [f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-ms-")]
    path = request.resource.split("/", 3)[3]
    lines.append(f"/{account}/{path}")
    lines += [f"{name}:{request.query[name]}" for name in sorted(request.query)]
    return "\n".join(lines)


def text_to_sign_of_tables(account: str, request: Request) -> str:
    """Return what the signature of a request to tables covers: less than that of the others.

    Only a parameter `comp` would be a part of it, and no request to a table or an entity has one.

    Source: Azure Storage REST API, "Authorize with Shared Key", "Table service".
    """
    headers = request.headers
    path = request.resource.split("/", 3)[3]
    lines = [request.method, "", headers.get("Content-Type", ""), headers["x-ms-date"]]
    return "\n".join([*lines, f"/{account}/{path}"])


@dataclass(frozen=True, slots=True)
class Sas:
    """Shared access signature.

    Attributes:
        query: returns its encoded query, which may be replaced at any time.
    """

    query: Callable[[], str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """Credential that issues tokens, such as those of azure-identity."""

    credential: Any = field(repr=False)


Authorization = SharedKey | Sas | Token | None


def authorized(request: Request, authorization: Authorization) -> str:
    """Sign the request if the credential is a key; return its URL, with the SAS if it is one."""
    if isinstance(authorization, SharedKey):
        authorization.sign(request)
    if isinstance(authorization, Sas):
        return f"{request.url}{'&' if request.query else '?'}{authorization.query()}"
    return request.url


def authorization_of(
    credential: Any, sas: str, account: str, scheme: str, text_to_sign: TextToSign
) -> Authorization:
    """Return how requests are authorised.

    Args:
        credential: the credential.
        sas: query of the account's URL.
        account: name of the account; `""` if its URL does not show it.
        scheme: of the account's URL.
        text_to_sign: of the service.

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
            return Sas(lambda: credential.signature.removeprefix("?"))
        case AzureNamedKeyCredential():
            return SharedKey(partial(named_key, credential), text_to_sign)
        case {"account_name": str(name), "account_key": str(key), **others} if not others:
            return SharedKey(lambda: (name, key), text_to_sign)
        case str() if is_sas(credential.removeprefix("?")):
            return fixed_sas(credential.removeprefix("?"))
        case str() if account:
            return SharedKey(lambda: (account, credential), text_to_sign)
    if hasattr(credential, "get_token") and scheme == "https":
        return Token(credential)
    raise NotImplementedError


def named_key(credential: AzureNamedKeyCredential) -> tuple[str, str]:
    """Return the account's name and key as they are now."""
    key = credential.named_key
    return key.name, key.key


def is_sas(query: str) -> bool:
    """Return whether a query has the parameters of a SAS, and no others."""
    keys = [key for key, _ in parse_qsl(query)]
    return "sig" in keys and all(map(SAS_KEYS.fullmatch, keys))


def fixed_sas(query: str) -> Sas:
    """Return a SAS, encoded as the driver does."""
    encoded = "&".join(f"{key}={quote(value, safe='')}" for key, value in parse_qsl(query))
    return Sas(lambda: encoded)


class TokenCache:
    """Token of a credential, until shortly before it expires.

    Attributes:
        scope: resource of the tokens.
        options: more arguments of `get_token`, such as the tenant that the service named.
    """

    def __init__(self) -> None:
        self.scope = TOKEN_SCOPE
        self.options: dict[str, str] = {}
        self._token = ""
        self._refresh_at = 0.0

    @property
    def current(self) -> str:
        """Return the token; `""` if a new one is needed."""
        return self._token if time.time() < self._refresh_at else ""

    def keep(self, token: Any) -> str:
        """Store a new token, and return it."""
        self._token = str(token.token)
        self._refresh_at = token.expires_on - REFRESH_BEFORE
        return self._token

    def follow(self, response: Response) -> bool:
        """Use the tenant and resource that a 401 names; return whether it names others."""
        challenge = response.headers.get("WWW-Authenticate", "")
        if response.status_code != 401 or not challenge.startswith("Bearer "):
            return False
        words = challenge.removeprefix("Bearer ").replace(",", " ").split()
        named = {key: value.strip('"') for key, _, value in (word.partition("=") for word in words)}
        if not {"authorization_uri", "resource_id"} <= named.keys():
            return False
        try:
            tenant = urlsplit(named["authorization_uri"]).path.split("/")[1:2]
        except ValueError:
            return False
        if not tenant:
            return False
        scope, options = f"{named['resource_id']}/.default", {"tenant_id": tenant[0]}
        if (scope, options) == (self.scope, self.options):
            return False
        self.scope, self.options, self._token, self._refresh_at = scope, options, "", 0.0
        return True
