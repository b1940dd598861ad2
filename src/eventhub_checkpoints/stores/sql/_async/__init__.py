"""PostgreSQL and SQLite, for asyncio (edited)."""
