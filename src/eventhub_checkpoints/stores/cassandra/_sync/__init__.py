"""Cassandra, for threads (derived)."""
