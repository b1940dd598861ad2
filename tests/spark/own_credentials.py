"""Credentials as a user writes them, in a module that Spark's processes can import."""

import os
from typing import Any, NoReturn

from azure.core.credentials import AccessToken

FAR = 4_102_444_800
"""Seconds since the epoch: 2100."""


class Vault:
    """Credential that needs arguments, and checks that they have arrived."""

    def __init__(self, tenant_id: str, client_secret: str) -> None:
        self._is_right = (tenant_id, client_secret) == ("contoso", os.environ["VAULT_SECRET"])

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Return a token, if the arguments were right."""
        assert self._is_right
        return AccessToken("token", FAR)


class AioVault:
    """Credential for the asynchronous client."""

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Return a token."""
        return AccessToken("token", FAR)


calls = 0


def token(expires_on: str = str(FAR)) -> AccessToken:
    """Return a token, as the connector's callback does."""
    global calls
    calls += 1
    return AccessToken(f"token {calls}", int(expires_on))


def refuse(client_secret: str) -> NoReturn:
    """Fail with an error that repeats the secret."""
    raise KeyError(f"nobody has the secret {client_secret}")


def text() -> str:
    """Return something that is not a token."""
    return "eyJ0eXAi"
