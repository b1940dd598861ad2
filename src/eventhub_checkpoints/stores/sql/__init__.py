"""The store on PostgreSQL, MySQL, MariaDB and SQLite.

- `url`: the database, its driver, and the options in the URL's query.
- `tables`: names of the tables, and the migrations that create them.
- `statements`: all statements, their parameters, and rows as records.
- `dialect`: differences between databases; `postgresql`, `mysql`, `sqlite`: one file for each.
- `dead_letters`: statements for the table of dead letters.
- `_async`, `_sync`: the `store`, its `database` with transactions, the `history` of checkpoints,
  `dead_letters`, and SQLAlchemy's `engine`.
"""

from eventhub_checkpoints._shared.drivers import is_installed
from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.stores.backends import SQL

if not is_installed("sqlalchemy"):
    raise MissingDriverError(
        "the SQL store needs SQLAlchemy and a driver: python -m pip install "
        + ", ".join(
            f"'eventhub-checkpoints[{each.extra}]' for {each.title}" for each in SQL.services
        ),
        "sql",
    )
