"""Connections to Azure Storage, for threads (derived)."""
