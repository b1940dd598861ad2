"""Pipelines from hub to hub that are killed, and what became of the events.

- `rows`: the events, and what a query must make of them. `pipeline`: the query, and the driver that
  runs it. `__main__`: kills it. `judge`: counts rows.
"""
