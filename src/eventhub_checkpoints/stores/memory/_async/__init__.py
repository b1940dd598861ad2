"""This process's memory, for asyncio (edited)."""
