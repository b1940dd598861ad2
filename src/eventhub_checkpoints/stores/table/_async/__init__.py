"""Azure Table Storage, for asyncio (edited)."""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Table store", "table", "aiohttp")
