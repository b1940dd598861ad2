"""This process's memory, for threads (derived)."""
