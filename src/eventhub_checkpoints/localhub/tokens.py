"""Tokens that clients present: who has signed them, and when they expire.

Source: Service Bus access control with shared access signatures; azure-eventhub 5.15.1,
`_pyamqp/utils.py`, `generate_sas_token`; error texts from public traces of the service.
"""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

SIGNATURE = "SharedAccessSignature "
INVALID_SIGNATURE = "InvalidSignature: The token has an invalid signature."


class TokenError(Exception):
    """The token is not accepted; the message is the service's."""


def expiry_of(token: object, keys: Iterable[str], now: float) -> float:
    """Return when a token expires, in seconds since the epoch.

    A shared access signature must be signed with one of the keys, under any name of a policy. The
    signature of a JWT of Microsoft Entra is not verified.

    Raises:
        TokenError: it is neither of these, has expired at `now`, or is signed with another key.
    """
    text = token if isinstance(token, str) else ""
    try:
        expiry = signed_until(text, keys) if text.startswith(SIGNATURE) else jwt_expiry(text)
        at = datetime.fromtimestamp(expiry, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    except (LookupError, TypeError, ValueError, OverflowError, OSError, RecursionError):
        raise TokenError("MalformedToken: The token is malformed.") from None
    if expiry <= now:
        raise TokenError(f"ExpiredToken: The token is expired. Expiration time: '{at}'")
    return expiry


def signed_until(token: str, keys: Iterable[str]) -> float:
    """Return the expiry of a shared access signature."""
    pairs = token.removeprefix(SIGNATURE).split("&")
    fields = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
    signed = f"{fields['sr']}\n{fields['se']}".encode()
    signature = unquote_plus(fields["sig"])
    expected = (
        base64.b64encode(hmac.digest(key.encode(), signed, "sha256")).decode() for key in keys
    )
    if not any(hmac.compare_digest(each, signature) for each in expected):
        raise TokenError(INVALID_SIGNATURE)
    return float(fields["se"])


def jwt_expiry(token: str) -> float:
    """Return the expiry of a JWT, whose signature is not verified."""
    _, claims, _ = token.split(".")
    return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
