"""Consumers of the processing benchmark, for asyncio (edited)."""
