"""Results and positions in one transaction of a database.

- `foreach_batch`: `ExactlyOnce`. `commit`, `fences`, `positions`: the transaction, and what is new.
- `results`, `staging`, `staging_columns`: rows through the driver, or through a staging table.
- `transactions`: the SQL store.
"""
