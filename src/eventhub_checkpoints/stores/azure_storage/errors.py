"""Errors of this package from those of azure-core, and from what a service refused."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from eventhub_checkpoints._shared.connection_errors import innermost, is_untrusted, why_unreached
from eventhub_checkpoints._shared.error_messages import message_of, unmasked_message
from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.azure_storage.account import Service
from eventhub_checkpoints.stores.azure_storage.messages import Refusal
from eventhub_checkpoints.stores.connections import shows_secret

NOT_VALID_HERE = "the credential is not valid for it, or network rules shut this machine out"
FORBIDDEN = {
    "AccountIsDisabled": "the storage account is disabled, as when its subscription has ended; "
    "enable it. The credential is not the reason",
    "InsufficientAccountPermissions": "the storage account allows no such request now, as while "
    "reading or writing is switched off. The credential is not the reason",
    "AuthorizationProtocolMismatch": "the SAS or the account allows HTTPS only; use https://",
    "AuthorizationFailure": NOT_VALID_HERE,
    "AuthorizationSourceIPMismatch": NOT_VALID_HERE,
    "KeyBasedAuthenticationNotPermitted": "the account allows no shared key; use an Entra "
    "credential",
}
"""What codes of status 403 mean at every service and for every operation.

Source: Azure Storage, "Common REST API error codes", "SAS error codes", "Troubleshoot 403 errors".
"""


def failure(
    refusal: Refusal,
    address: str,
    service: Service,
    forbidden: Mapping[str, str] = MappingProxyType({}),
) -> StoreError:
    """Return the error for a request that was not carried out, with the service's as its cause.

    Args:
        refusal: the response; its operation is a key of the service's `rights`.
        address: URL of the container or table, without a SAS.
        service: the service.
        forbidden: what more codes of status 403 mean at this service.
    """
    error = _failure(refusal, service.described(address), service, forbidden)
    cause = refusal.cause
    error.__cause__ = None if shows_secret(cause) else cause
    return error


def _failure(
    refusal: Refusal, where: str, service: Service, forbidden: Mapping[str, str]
) -> StoreError:
    status, code, operation = refusal.status, refusal.code, refusal.operation
    answer = f"{status} {code}".strip()
    resource = service.resource
    if code == f"{resource.capitalize()}BeingDeleted" and operation == f"create the {resource}":
        return StoreUnavailableError(
            f"{where} is being deleted ({answer}), which takes {service.deletion} or longer: wait "
            f"until then, or name another {resource}"
        )
    if code == f"{resource.capitalize()}BeingDeleted":
        return StoreNotReadyError(
            f"{where} is being deleted ({answer}): create it again with store.create(), which "
            f"waits for the end of that, or name another {resource}"
        )
    if code == f"{resource.capitalize()}NotFound":
        return StoreNotReadyError(
            f"{where} does not exist ({answer}): create it with store.create(), "
            f"create_{resource}=True or create = true in a configuration"
        )
    # The code comes with 401 for an expired token, and with 400 for a malformed header.
    if status in {401, 403} or code == "InvalidAuthenticationInfo":
        refused = (
            f"the credential was refused to {operation}; is it valid, unexpired, of this account?"
        )
        reason = _why_forbidden(code, operation, service) or forbidden.get(code) or refused
        return StoreAccessError(f"{where}: {reason} ({answer})")
    if status in {408, 429} or status >= 500:
        return StoreUnavailableError(f"{where}: the service answered {answer}")
    hint = "" if code else f"; is the URL that of {service.title}, and is a proxy in the way?"
    request = f"request to {operation}" if " " in operation else operation
    return StoreError(f"{where}: the service answered {answer} to a {request}{hint}")


def _why_forbidden(code: str, operation: str, service: Service) -> str | None:
    if code == "AuthorizationPermissionMismatch":
        return service.lacks(operation)
    if code in {"AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch"}:
        return f"the SAS is not for {service.contents}; make one for the {service.resource}"
    return FORBIDDEN.get(code)


def refusal_of(error: HttpResponseError, operation: str) -> Refusal:
    """Return the service's response that a driver has raised.

    Raises:
        HttpResponseError: the error itself, if it tells of no response of the service.
    """
    code = driver_code(error)
    response: Any = error.response
    # The token provider or the request signing failed; any status may accompany it.
    is_of_token = isinstance(error, ClientAuthenticationError) and not code
    if error.status_code is None or response is None or is_of_token:
        raise error
    return Refusal(operation, error.status_code, code, response.headers, error)


def driver_code(error: HttpResponseError) -> str:
    """Return the error code that a driver has put into its error; `""` if there is none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def mapped(error: Exception, where: str) -> StoreError:
    """Convert an error of azure-core that tells of no response of the service.

    Args:
        error: of the driver, or raised by the connections.
        where: what was asked, for messages.
    """
    shown = f"{message_of(error)} ({type(error).__name__})"
    if isinstance(error, ClientAuthenticationError):
        if type(error).__name__ == "AzureSigningError":
            shown = (
                "the account key is not valid base64; copy it again from the account's access keys"
            )
        return StoreAccessError(f"{where}: {shown}")
    if not isinstance(error, (AzureError, OSError)):
        return StoreError(f"{where}: {shown}")
    if is_untrusted(error):
        return StoreAccessError(
            f"{where}: its certificate is not trusted: name the file of its authority as "
            f"connection_verify=FILE ({message_of(innermost(error))})"
        )
    return StoreUnavailableError(f"{where}: {unreached(error)}")


def unreached(error: AzureError | OSError) -> str:
    """Return the cause of a missing response, without the request that the driver repeats."""
    cause = innermost(error)
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    message = message_of(cause) or "no answer"
    through = "through a proxy, " if "proxy" in unmasked_message(error).lower() else ""
    reason = why_unreached(error) or f"the connection failed: {message} ({type(cause).__name__})"
    return through + reason
