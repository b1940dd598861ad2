"""The store on PostgreSQL and SQLite.

- `url`, `options`: the database, its driver and what may stand in the URL's query.
- `tables`, `migrations`: the tables and their versions. `statements`: all SQL. `rows`: results.
- `errors`: SQLSTATEs and SQLite's result codes. `timeouts`: cutting off a silent PostgreSQL.
- `sqlite`: connections to a file, and its lock.
- `_async`, `_sync`: the `store`, its `database`, the driver's `engine`, `calls` on one connection,
  and `transactions` of the caller.
"""
