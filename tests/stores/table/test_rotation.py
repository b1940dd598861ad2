"""Credentials that are rotated while a store is used, on an Azurite with TLS and tokens."""

import time
from collections.abc import Iterator

import pytest

from azurite import TABLE
from backends import Variant
from eventhub_checkpoints.aio.table import TableCheckpointStore as AioTableCheckpointStore
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreAccessError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.table import TableCheckpointStore
from rotating_storage import (
    Account,
    azurite_with_two_keys,
    every,
    fresh_sas_of_tables,
    rotating,
)

# Signatures and tokens expire in real time.
pytestmark = pytest.mark.long

PARTITIONS = 16
KINDS = {"sync": TableCheckpointStore, "aio": AioTableCheckpointStore}
ROTATED = [("key", "sync"), ("key", "aio"), ("SAS", "sync"), ("token", "aio")]


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with azurite_with_two_keys(TABLE) as account:
        yield account


@pytest.mark.parametrize(("kind", "variant"), ROTATED)
def test_a_credential_is_rotated_under_load(
    account: Account, kind: str, variant: Variant, loop: Loop, scope: Scope
) -> None:
    secret = rotating(kind, variant, fresh_sas_of_tables)
    store = KINDS[variant](
        account.url, account.container, secret.credential, connection_verify=account.ca_file
    )
    client = Client(store, scope, loop)
    rows = client.claim_ownership([client.proposal(str(n), "me") for n in range(PARTITIONS)])
    rounds = 0
    ends = time.monotonic() + secret.validity + 1.5
    with every(0.25, secret.replace) as rotation:
        while rounds < 4 or time.monotonic() < ends:
            rows = client.claim_ownership(rows)
            assert len(rows) == PARTITIONS
            client.save("0", rounds)
            assert len(client.list_checkpoints()) == 1
            rounds += 1
    assert rotation.times > 1
    # Without a valid secret the account refuses, so the ones before were the rotated ones.
    secret.spoil()
    with pytest.raises(StoreAccessError):
        client.list_checkpoints()
    client.close()
