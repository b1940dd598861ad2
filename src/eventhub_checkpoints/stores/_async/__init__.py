"""Checkpoint stores: the base class and the five backends, for asyncio (edited)."""
