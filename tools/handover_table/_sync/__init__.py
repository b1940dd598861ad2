"""Consumers, with the synchronous client (derived)."""
