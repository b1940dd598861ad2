"""Azure Blob Storage, for asyncio (edited)."""
