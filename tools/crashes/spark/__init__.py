"""Drivers of queries that are killed at every stage, and what became of events and positions.

- `cells`: the stages, and where a query dies. `driver`, `sinks`: the process with the queries.
  `rounds`: kills it, and starts the next. `judge`: compares. `scenario`: the command.
"""
