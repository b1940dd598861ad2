"""The store on PostgreSQL, MySQL, MariaDB and SQLite.

- `url`: the database, its driver, and the options in the URL's query.
- `tables`: names of the tables, and the migrations that create them.
- `statements`: all statements, their parameters, and rows as records.
- `dialect`: differences between databases; `postgresql`, `mysql`, `sqlite`: one file for each.
- `dead_letters`: statements for the table of dead letters.
- `_async`, `_sync`: the `store`, its `database` with transactions, the `history` of checkpoints,
  `dead_letters`, and SQLAlchemy's `engine`.
"""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the SQL store", "sql", "sqlalchemy")
