"""The SQL store, for threads (derived)."""
