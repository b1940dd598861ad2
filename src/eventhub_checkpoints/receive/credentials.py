"""Credentials by name: an option is a string, and so is what is sent to a Spark task."""

import importlib
from functools import cache
from inspect import iscoroutinefunction
from typing import Any

from azure.core.credentials import (
    AzureNamedKeyCredential,
    AzureSasCredential,
    TokenCredential,
)
from azure.core.utils import parse_connection_string

from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError

SIGNATURE = "SharedAccessSignature "
KEY = "SharedAccessKey="
EXPECTED = (
    "expected the name of a class of azure-identity, such as DefaultAzureCredential or "
    "ManagedIdentityCredential"
)

Credential = TokenCredential | AzureSasCredential | AzureNamedKeyCredential


@cache
def credential_of(text: str) -> Credential:
    """Return the credential that a string denotes, the same object throughout the process.

    A class of azure-identity is created without arguments and caches its tokens, so a worker
    requests a token once, not once per task.

    Args:
        text: the name of such a class; a whole `SharedAccessSignature sr=...`; or
            `SharedAccessKeyName=...;SharedAccessKey=...`.

    Raises:
        ConfigurationError: it is none of these. The message shows no secret.
    """
    if text.startswith(SIGNATURE):
        return AzureSasCredential(text)
    if KEY in text:
        return named_key(text)
    try:
        credential: TokenCredential = identity_class(text)()
    except TypeError as error:
        raise ConfigurationError(
            f"the credential {text} cannot be made without arguments; use one that reads them "
            "from its environment, such as EnvironmentCredential or DefaultAzureCredential"
        ) from error
    return credential


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
        ConfigurationError: one of them is missing.
    """
    try:
        parts = parse_connection_string(text)
        return AzureNamedKeyCredential(parts["sharedaccesskeyname"], parts["sharedaccesskey"])
    except (ValueError, KeyError, TypeError):
        # Not chained: the parser's frames hold the key.
        pass
    raise ConfigurationError(
        "the credential is malformed; expected SharedAccessKeyName=...;SharedAccessKey=..."
    )


def identity_class(name: str) -> Any:
    """Return the class of azure-identity with this name, which ends in `Credential`.

    Raises:
        ConfigurationError: that package is missing, or has no such class.
    """
    if not (name.isidentifier() and name.endswith("Credential")):
        # Not shown: the value may be a secret put here by mistake.
        raise ConfigurationError(f"the credential is not a name; {EXPECTED}")
    try:
        module = importlib.import_module("azure.identity")
    except ImportError as error:
        raise ConfigurationError(
            f"the credential {name} needs its package: python -m pip install azure-identity"
        ) from error
    if not hasattr(module, name):
        raise ConfigurationError(f"azure-identity has no class {name}; {EXPECTED}")
    return getattr(module, name)
