"""Azure Blob Storage, for asyncio (edited)."""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Blob store", "blob", "azure.storage.blob", "aiohttp")
