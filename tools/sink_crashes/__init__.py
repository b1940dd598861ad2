"""Pipelines from hub to hub that are killed, and what became of the events.

- `pipeline`: the query, and the driver that runs it. `rounds`: kills it. `judge`: counts events.
"""
