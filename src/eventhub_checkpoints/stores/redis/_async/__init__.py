"""Redis, for asyncio (edited)."""
