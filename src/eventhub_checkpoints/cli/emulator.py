"""The blob storage emulator, whoever runs it: its address, its published key, its options."""

import urllib.error
import urllib.request

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.blob.url import EMULATOR_ACCOUNT, EMULATOR_KEY

AZURITE_VERSION = "3.35.0"
START_SECONDS = 60
# Node's default of 5 s closes idle connections just when a client that polls uses them again.
OPTIONS = (
    "--inMemoryPersistence --skipApiVersionCheck --disableTelemetry --silent "
    "--blobKeepAliveTimeout 120"
)


class AzuriteError(CheckpointStoreError):
    """Azurite could not be installed or started."""


class AzuriteMissingError(AzuriteError):
    """A part that Azurite needs is not here; the message says which, and how to get it."""


def connection_string(endpoint: str) -> str:
    """The connection string of an emulator at this address, with the emulator's published key."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};"
        f"AccountKey={EMULATOR_KEY};BlobEndpoint={endpoint};"
    )


def answers(endpoint: str) -> bool:
    """Whether something speaks HTTP there; a refusal is an answer too."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{endpoint}?comp=list", timeout=5).close()
    except urllib.error.HTTPError as refused:
        refused.close()
    except OSError:
        return False
    return True
