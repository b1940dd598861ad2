"""Results and positions in one transaction of a database.

- `foreach_batch`: `eventhub_checkpoints.spark.ExactlyOnce`.
- `fences`, `commit`: what is new, and the transaction. `staging`: the rows on their way into it.
"""
