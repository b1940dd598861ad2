"""The store on PostgreSQL and SQLite.

- `url`: the database, its driver and what may stand in the URL's query.
- `tables`, `migrations`: tables and rows, and their versions. `statements`: all SQL.
- `errors`: SQLSTATEs and SQLite's result codes. `timeouts`: cutting off a silent PostgreSQL.
- `sqlite`: connections to a file, and its lock.
- `_async`, `_sync`: the `store`, its `database` with transactions, and the driver's `engine`.
"""
