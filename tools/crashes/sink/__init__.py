"""A pipeline from hub to hub that is killed, and what became of the events.

- `rows`: the events, and what a query must make of them. `pipeline`: the query, and the driver that
  runs it. `scenario`: kills it. `judge`: counts rows.
"""
