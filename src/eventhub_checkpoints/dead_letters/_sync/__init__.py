"""Sinks of dead letters, for threads (derived)."""
