"""Redis, for threads (derived)."""
