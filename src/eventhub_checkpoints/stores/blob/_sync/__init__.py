"""Azure Blob Storage, for threads (derived)."""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Blob store", "blob", "azure.storage.blob")
