"""Credentials by name: an option is a string, and so is what is sent to a Spark task."""

import importlib
import inspect
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from inspect import iscoroutinefunction
from typing import Any

from azure.core.credentials import (
    AccessToken,
    AzureNamedKeyCredential,
    AzureSasCredential,
    TokenCredential,
)

from eventhub_checkpoints._shared.clouds import login_options
from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints._shared.error_messages import described, unmasked_message
from eventhub_checkpoints._shared.secrets import MASK, masked
from eventhub_checkpoints._shared.settings import kind_of, nearest
from eventhub_checkpoints.errors import ConfigurationError

SIGNATURE = "SharedAccessSignature "
KEY = "SharedAccessKey="
EXPECTED = (
    "expected the name of a class of azure-identity, such as DefaultAzureCredential or "
    "ManagedIdentityCredential, or package.module:Class for a class of your own"
)
ENDING = "Credential"
OF_IDENTITY = (
    *("DefaultAzureCredential", "EnvironmentCredential", "ManagedIdentityCredential"),
    *("WorkloadIdentityCredential", "ClientSecretCredential", "CertificateCredential"),
    *("ClientAssertionCredential", "AzurePipelinesCredential", "AzureCliCredential"),
    *("AzureDeveloperCliCredential", "AzurePowerShellCredential", "InteractiveBrowserCredential"),
)
"""Classes of azure-identity, for suggestions where the package is not installed."""

LOG_IN = (
    *("DefaultAzureCredential", "EnvironmentCredential", "WorkloadIdentityCredential"),
    *("ClientSecretCredential", "CertificateCredential", "ClientAssertionCredential"),
    *("AzurePipelinesCredential", "InteractiveBrowserCredential"),
)
"""Classes of it that log in at a host of the cloud; the others get their tokens on this machine.

Source: azure-identity 1.27, the keyword argument `authority`.
"""

OWN = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)")
"""A class or function that the user has written, as `package.module:name`."""

RENEW_BEFORE = 300.0
"""Seconds before its expiry at which a token of a function is replaced."""

SHORTEST_SECRET = 4
"""Characters; to mask shorter arguments would make a message unreadable."""

Credential = TokenCredential | AzureSasCredential | AzureNamedKeyCredential


@dataclass(frozen=True, slots=True, repr=False)
class CredentialClass:
    """Class or function from which each process creates a credential; its `repr` shows no secret.

    Attributes:
        name: of a class of azure-identity; or `package.module:name` of a class, or of a function
            that returns a credential or an `AccessToken`.
        arguments: keyword arguments, by name.
    """

    name: str
    arguments: tuple[tuple[str, str], ...] = ()


CredentialName = str | CredentialClass
"""What can be sent to another process in place of a credential."""


def credential_of(credential: CredentialName | Credential) -> Credential:
    """Return a credential, created if it is passed by name; see `named_credential`."""
    if isinstance(credential, str | CredentialClass):
        return named_credential(credential)
    return credential


def with_login_host(named: CredentialName, host: str) -> CredentialName:
    """Return a named credential with the argument that lets it log in in the cloud of a host."""
    kind = CredentialClass(named) if isinstance(named, str) else named
    options = login_options(host) if kind.name in LOG_IN else {}
    if options.keys() <= dict(kind.arguments).keys():
        return named
    return CredentialClass(kind.name, (*kind.arguments, *options.items()))


@cache
def named_credential(named: CredentialName) -> Credential:
    """Return the credential that a name denotes, the same object throughout the process.

    A credential caches its tokens, so a worker requests a token once, not once per task.

    Args:
        named: a class or function; its name, if it needs no arguments; a whole
            `SharedAccessSignature sr=...`; or `SharedAccessKeyName=...;SharedAccessKey=...`.

    Raises:
        ConfigurationError: it is none of these. The message shows no secret.
    """
    if isinstance(named, CredentialClass):
        return create(named)
    if named.startswith(SIGNATURE):
        return AzureSasCredential(named)
    if KEY in named:
        return named_key(named)
    return create(CredentialClass(named))


def create(kind: CredentialClass) -> Credential:
    """Create a credential.

    Raises:
        ConfigurationError: there is no such class or function, it does not accept the arguments,
            or what it returns is not a credential.
    """
    own = OWN.fullmatch(kind.name)
    make = import_own(own[1], own[2]) if own else identity_class(kind.name)
    result = call(kind, make)
    if isinstance(result, AccessToken):
        return FunctionCredential(lambda: call(kind, make), result)
    if not callable(getattr(result, "get_token", None)):
        raise ConfigurationError(
            f"the credential {kind.name} is of type {kind_of(result)}, which has no get_token; "
            "expected a credential such as those of azure-identity, or a function that returns an "
            "azure.core.credentials.AccessToken"
        )
    return checked_credential(result)


def call(kind: CredentialClass, make: Callable[..., Any]) -> Any:
    """Return what a class or function returns for its arguments.

    Raises:
        ConfigurationError: it does not accept them, or has raised an error. Not chained: the
            frames of the error hold the arguments.
    """
    arguments = dict(kind.arguments)
    try:
        inspect.signature(make).bind(**arguments)
        return make(**arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {unmasked_message(error)}"
    for value in arguments.values():
        text = text.replace(value, MASK) if len(value) >= SHORTEST_SECRET else text
    raise ConfigurationError(
        f"the credential {kind.name} cannot be created ({masked(text)}). Its arguments are Spark "
        "options, such as credential.tenant_id; without options, use one that reads them from its "
        "environment, such as EnvironmentCredential or DefaultAzureCredential"
    )


class FunctionCredential:
    """Credential whose tokens a function returns, called again before a token expires.

    Args:
        function: returns a token for `https://eventhubs.azure.net/`.
        token: the first one.
    """

    def __init__(self, function: Callable[[], AccessToken], token: AccessToken) -> None:
        self._function, self._token = function, token
        self._lock = threading.Lock()

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Return a token, whatever the scopes."""
        del scopes
        with self._lock:
            if self._token.expires_on - time.time() < RENEW_BEFORE:
                self._token = self._function()
            return self._token


def checked_credential(credential: Any) -> Credential:
    """Return a credential object after checking that the client can use it.

    Raises:
        ConfigurationError: it is not, or it is from azure.identity.aio. Only its type is shown.
    """
    is_key = isinstance(credential, AzureSasCredential | AzureNamedKeyCredential)
    get_token = getattr(credential, "get_token", None)
    if iscoroutinefunction(get_token):
        raise ConfigurationError(
            f"credential is a {kind_of(credential)}, which is asynchronous; expected one of "
            "azure.identity: the events are received by threads"
        )
    if not is_key and not callable(get_token):
        kind = "None" if credential is None else f"of type {kind_of(credential)}"
        raise ConfigurationError(f"credential is {kind}; {EXPECTED}, or such an object")
    return credential  # type: ignore[no-any-return]  # it has get_token


def named_key(text: str) -> AzureNamedKeyCredential:
    """Return a credential from name and key of a shared access policy.

    Raises:
        ConfigurationError: one of them is missing, or the text is malformed.
    """
    parts = ConnectionString.parse(text, "the credential")
    if parts.key_name and parts.key:
        return AzureNamedKeyCredential(parts.key_name, parts.key)
    raise ConfigurationError(
        "the credential needs a name and a key; expected "
        "SharedAccessKeyName=...;SharedAccessKey=..."
    )


def import_own(module: str, name: str) -> Callable[..., Any]:
    """Return a class or function that the user has written.

    Raises:
        ConfigurationError: the module cannot be imported, or has no such class or function.
    """
    try:
        factory = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise ConfigurationError(
            f"the module {module} of the credential cannot be imported "
            f"({described(error)}); Spark's driver and each executor "
            "need it on their PYTHONPATH"
        ) from error
    if not callable(factory):
        raise ConfigurationError(f"the module {module} has no class or function {name}; {EXPECTED}")
    return factory  # type: ignore[no-any-return]  # it can be called


def nearest_class(name: str, known: Iterable[str]) -> str | None:
    """Return the class that was probably meant, compared without the ending that all have."""
    stems = {each.removesuffix(ENDING): each for each in known}
    stem = re.sub(r"cred\w*$", "", name.rpartition(".")[2], flags=re.IGNORECASE)
    meant = nearest(stem, stems)
    return None if meant is None else stems[meant]


def identity_class(name: str) -> Any:
    """Return the class of azure-identity with this name, which ends in `Credential`.

    Raises:
        ConfigurationError: that package is missing, or has no such class.
    """
    if not (name.isidentifier() and name.endswith(ENDING)):
        # Not shown: the value may be a secret put here by mistake.
        meant = nearest_class(name, OF_IDENTITY)
        if meant is None:
            raise ConfigurationError(f"the credential is not a name; {EXPECTED}")
        raise ConfigurationError(
            f"the credential is not the name of a class of azure-identity; did you mean {meant}?"
        )
    try:
        module = importlib.import_module("azure.identity")
    except ImportError as error:
        raise ConfigurationError(
            f"the credential {name} needs its package: python -m pip install azure-identity"
        ) from error
    if not hasattr(module, name):
        meant = nearest_class(name, (each for each in dir(module) if each.endswith(ENDING)))
        hint = EXPECTED if meant is None else f"did you mean {meant}?"
        raise ConfigurationError(f"azure-identity has no class {name}; {hint}")
    return getattr(module, name)
