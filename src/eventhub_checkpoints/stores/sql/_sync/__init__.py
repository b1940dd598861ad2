"""PostgreSQL and SQLite, for threads (derived)."""
