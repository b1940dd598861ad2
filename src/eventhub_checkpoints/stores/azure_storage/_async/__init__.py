"""Connections to Azure Storage, for asyncio (edited)."""
