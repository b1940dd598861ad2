"""Asynchronous shells; `_sync` has the synchronous ones."""
