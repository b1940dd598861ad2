"""Consumers of the processing benchmark, for threads (derived)."""
