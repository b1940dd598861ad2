"""Credentials that are rotated while a store is used, on an Azurite with TLS and tokens."""

import time
from collections.abc import Iterator

import pytest

from eventhub_checkpoints.errors import StoreAccessError
from rotating_storage import Account, azurite_with_two_keys, every, rotating

# Signatures and tokens expire in real time.
pytestmark = pytest.mark.long

PARTITIONS = 16


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with azurite_with_two_keys() as account:
        yield account


# A replaced key is refused at once, so all paths show it. Signatures and tokens have to expire,
# which the driver's own path leaves to azure-storage-blob: ours show it, each in one variant.
ROTATED = [
    *[("key", variant) for variant in ("sync", "aio", "sync-driver", "aio-driver")],
    *[("SAS", "sync"), ("token", "aio")],
]


@pytest.mark.parametrize(("kind", "variant"), ROTATED, indirect=["variant"])
def test_a_credential_is_rotated_under_load(variant, account, kind) -> None:
    secret = rotating(kind, variant.name)
    client = variant.client(
        variant.store(
            account.url, account.container, secret.credential, connection_verify=account.ca_file
        )
    )
    rows = client.claim_ownership(client.proposals(range(PARTITIONS), "me"))
    rounds = 0
    ends = time.monotonic() + secret.validity + 1.5
    with every(0.25, secret.replace) as rotation:
        while rounds < 4 or time.monotonic() < ends:
            rows = client.claim_ownership(rows)
            assert len(rows) == PARTITIONS
            client.update_checkpoint(
                {**client.scope.as_dict(), "partition_id": "0", "offset": "1", "sequence_number": 1}
            )
            assert len(client.list_checkpoints()) == 1
            rounds += 1
    assert rotation.times > 1
    # Without a valid secret the account refuses, so the ones before were the rotated ones.
    secret.spoil()
    if kind == "key" and not variant.lean:
        # azure-storage-blob reads the key when its client is made.
        assert client.list_checkpoints()
        return
    with pytest.raises(StoreAccessError):
        client.list_checkpoints()
