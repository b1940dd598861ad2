"""The SQL store, for asyncio (edited)."""
