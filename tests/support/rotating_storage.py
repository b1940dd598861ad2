"""A storage account whose credentials a test rotates: an Azurite with TLS, two keys and tokens."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient, TableSasPermissions, generate_table_sas
from azure.storage.blob import ContainerClient, generate_container_sas

from azurite import BLOB, OPTIONS, AzuritePackage, Emulated, find_node
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT

KEYS = tuple(base64.b64encode(name * 4).decode() for name in (b"first", b"other"))
LIFETIME = 6.0
"""Seconds; a SAS expires at a whole second, so it may live for one second less."""


class Account(NamedTuple):
    """An account with two keys that accepts tokens too.

    Attributes:
        url: of the account's service.
        container: an empty one; for tables, a table.
        ca_file: certificate of its authority.
    """

    url: str
    container: str
    ca_file: str


@contextmanager
def azurite_with_two_keys(service: Emulated = BLOB) -> Iterator[Account]:
    """Run an Azurite with TLS and an empty container; skip the test if Node.js is missing."""
    node = find_node()
    if node is None:
        pytest.skip("Node.js is missing, which runs Azurite with TLS and two keys")
    authority = SelfMadeAuthority(["127.0.0.1"])
    folder = authority.ca_file.removesuffix("/ca.pem")
    azurite = AzuritePackage(
        node,
        service,
        options=f"{OPTIONS} --oauth basic --cert {folder}/server.pem --key {folder}/server.key",
        env={"AZURITE_ACCOUNTS": f"{EMULATOR_ACCOUNT}:{':'.join(KEYS)}"},
    )
    try:
        azurite.install()
        endpoint = azurite.start().replace("http:", "https:")  # tables are said to be at http:
        account = Account(endpoint, "positions", authority.ca_file)
        tls: dict[str, Any] = {"connection_verify": account.ca_file}
        if service == BLOB:
            with ContainerClient(account.url, account.container, KEYS[0], **tls) as container:
                container.create_container()
        else:
            key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[0])
            with TableClient(account.url, account.container, credential=key, **tls) as table:
                table.create_table()
        yield account
    finally:
        azurite.stop()
        authority.close()


def fresh_sas() -> str:
    return generate_container_sas(
        EMULATOR_ACCOUNT,
        "positions",
        account_key=KEYS[0],
        permission="rcwl",
        expiry=datetime.now(UTC) + timedelta(seconds=LIFETIME),
    )


def fresh_sas_of_tables() -> str:
    return generate_table_sas(
        AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[0]),
        "positions",
        permission=TableSasPermissions.from_string("rau"),
        expiry=datetime.now(UTC) + timedelta(seconds=LIFETIME),
    )


def fresh_token() -> AccessToken:
    """Make a token that Azurite accepts; it does not check signatures, but the time."""
    now = int(time.time())
    expiry = now + int(LIFETIME)
    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/tenant/",
        "iat": now,
        "nbf": now,
        "exp": expiry,
    }
    parts = [{"alg": "HS256", "typ": "JWT"}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return AccessToken(".".join([*coded, "c2ln"]).replace("=", ""), expiry)


class Tokens:
    """Token credential as azure-identity's: it keeps a token until it is replaced."""

    def __init__(self) -> None:
        self.token = fresh_token()

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return self.token


class AioTokens(Tokens):
    async def get_token(self, *_: str, **__: Any) -> AccessToken:  # type: ignore[override]
        return self.token

    async def close(self) -> None:
        """Hold nothing open."""


class Rotating(NamedTuple):
    """A credential whose secret is replaced.

    Attributes:
        replace: puts another valid secret in its place.
        spoil: puts one in its place that is not valid: the first one, which has expired, or any.
        validity: seconds for which a secret is valid; 0 if it is so without end.
    """

    credential: Any
    replace: Callable[[], None]
    spoil: Callable[[], None]
    validity: float


def rotating(kind: str, variant: str, sas: Callable[[], str] = fresh_sas) -> Rotating:
    if kind == "SAS":
        first = sas()
        signature = AzureSasCredential(first)
        return Rotating(
            signature,
            lambda: signature.update(sas()),
            lambda: signature.update(first),
            LIFETIME,
        )
    if kind == "key":
        key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, KEYS[0])
        other = {KEYS[0]: KEYS[1], KEYS[1]: KEYS[0]}
        neither = base64.b64encode(b"neither").decode()
        return Rotating(
            key,
            lambda: key.update(EMULATOR_ACCOUNT, other[key.named_key.key]),
            lambda: key.update(EMULATOR_ACCOUNT, neither),
            0.0,
        )
    tokens = AioTokens() if variant == "aio" else Tokens()
    expired = tokens.token
    return Rotating(
        tokens,
        lambda: setattr(tokens, "token", fresh_token()),
        lambda: setattr(tokens, "token", expired),
        LIFETIME,
    )


@contextmanager
def every(seconds: float, action: Callable[[], None]) -> Iterator[SimpleNamespace]:
    """Repeat an action in another thread; gives how often it was done."""
    done, ended = SimpleNamespace(times=0), threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()
            done.times += 1

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()
