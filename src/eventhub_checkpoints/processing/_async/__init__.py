"""Checkpointer, the stores that wrap another, and EventProcessor, for asyncio (edited)."""
