"""Synchronous shells, most of them derived from `_async`."""
