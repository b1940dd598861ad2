"""Cassandra, for asyncio (edited)."""
