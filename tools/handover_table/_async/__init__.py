"""Consumers, with the asynchronous client (edited)."""
