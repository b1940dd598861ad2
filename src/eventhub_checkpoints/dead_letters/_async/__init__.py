"""Sinks of dead letters, for asyncio (edited)."""
